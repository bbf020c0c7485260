"""A session's life over a real server and a real (demo) agent's pipes."""

import asyncio
from pathlib import Path

from tests.integration.agentkit.conftest import Host
from tests.integration.agentkit.hand import Hand, those

from trunkline_adapters.app import for_test
from trunkline_agentkit.registry import load
from trunkline_agentkit.settings import OwnerSettings
from trunkline_bus import kv
from trunkline_bus.lease import read_lease
from trunkline_bus.reader import read_session
from trunkline_testkit import eventually
from trunkline_testkit.processes import assert_no_orphans, kill_all, marked
from trunkline_wire import Event, decode_json, encode, make_command, subjects, timestamp
from trunkline_wire.blocks import TextBlock, join_text
from trunkline_wire.commands import (
    Archive,
    Close,
    Compact,
    Fork,
    HandOver,
    Interrupt,
    Kill,
    Native,
    Prompt,
    Rename,
    Reset,
    Resume,
    Rewind,
    SetMode,
    SetModel,
    Steer,
    Unarchive,
)
from trunkline_wire.ids import new_command_id, new_session_id
from trunkline_wire.session import SessionOptions


def types(events: list[Event]) -> list[str]:
    return [event.type for event in events]


def said(events: list[Event]) -> list[str]:
    """What the agent said, message by message."""
    return [join_text(event.data.content) for event in those(events, "message.assistant")]


async def test_first_prompt_streams_asks_and_completes(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    assert types(await hand.events(session)) == ["session.created"], "no agent before the first prompt"
    assert marked("TRUNKLINE_SESSION", session) == []

    prompt = await hand.prompt(session, "say hello big world; ask ls -l")
    ask = those(await hand.has(session, "permission.requested"), "permission.requested")[0]
    await hand.decide(ask)
    events = await hand.has(session, "turn.completed")

    assert types(events) == [
        "session.created",
        "command.accepted",
        "session.status",
        "message.user",
        "session.initialized",
        "turn.started",
        "command.finished",
        "message.assistant",
        "tool.started",
        "permission.requested",
        "ask.decided",
        "ask.delivered",
        "tool.completed",
        "turn.completed",
    ]
    started, decided, delivered = events[5], events[10], events[11]
    assert started.cause == prompt
    assert delivered.cause == decided.id
    assert said(events) == ["hello big world"]
    assert {event.turn for event in events[7:10]} == {started.turn}
    assert all(event.source is not None and event.source.actor == "tester" for event in events[5:6] + events[7:10])
    # Native messages 1..6 (initialized, turn, message, tool, ask, tool's end, turn's end), each whole.
    assert [event.origin for event in events if event.origin] == [(n, 1, 1) for n in range(1, 8)]
    await hand.verify(session)


async def test_denied_question_and_background_turn(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    await hand.prompt(session, "ask rm; question Tea?; background 0.05")
    ask = those(await hand.has(session, "permission.requested"), "permission.requested")[0]
    await hand.decide(ask, "deny", message="not here")
    question = those(await hand.has(session, "question.asked"), "question.asked")[0]
    await hand.decide(question, "answered", answers={"Tea?": "yes"})
    events = await hand.has(session, "turn.completed", 2)

    assert those(events, "tool.completed", status="rejected")
    assert said(events) == ['You answered: {"Tea?": "yes"}', "The background task has ended."]
    first, second = those(events, "turn.started")
    assert (first.data.trigger, second.data.trigger) == ("prompt", "background")
    assert (first.data.number, second.data.number) == (1, 2)
    assert second.cause is None
    await hand.verify(session)


async def test_interrupt_ends_the_turn_once_and_withdraws(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    await hand.prompt(session, "say one; ask two; say three")
    events = await hand.has(session, "permission.requested")
    turn = those(events, "turn.started")[0].turn
    stale = await hand.command(session, Interrupt(), target="tur_" + "0" * 32)
    await hand.command(session, Interrupt(), target=turn)
    events = await hand.has(session, "turn.completed")

    assert those(events, "command.rejected", command=stale)[0].data.error.code == "stale_target"
    assert those(events, "turn.completed", outcome="interrupted")
    assert types(events).index("session.status") < types(events).index("turn.completed")
    assert those(events, "session.status", status="interrupting")
    assert those(events, "tool.completed", status="cancelled")
    assert those(events, "ask.withdrawn", why="cancelled")
    await hand.prompt(session, "say still here")
    events = await hand.has(session, "turn.completed", 2)
    assert said(events)[-1] == "still here"
    await hand.verify(session)


async def test_prompts_queue_and_steer(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    await hand.prompt(session, "ask wait; say end")
    ask = those(await hand.has(session, "permission.requested"), "permission.requested")[0]
    queued = await hand.prompt(session, "say queued")
    folded = await hand.prompt(session, "say folded", delivery="steer")
    await hand.has(session, "command.finished", command=folded)
    steer = await hand.command(session, Steer(content=[]), target=ask.turn)
    await hand.has(session, "command.finished", command=steer)
    await hand.decide(ask)
    events = await hand.has(session, "turn.completed", 2)

    users = {event.data.command: event.data.delivery for event in those(events, "message.user")}
    assert (users[queued], users[folded], users[steer]) == ("queued", "steered", "steered")
    assert said(events) == ["folded", "You said: ", "end", "queued"]
    assert those(events, "turn.started")[1].cause == queued
    await hand.verify(session)


async def test_unknown_and_unreadable_messages_are_kept(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    await hand.prompt(session, "novelty; noise; say on")
    events = await hand.has(session, "turn.completed")
    unknown, noise = those(events, "native.message", known=False)
    assert decode_json(bytes(unknown.native)) == {"type": "novelty", "payload": {"a": 1}}
    assert decode_json(bytes(noise.native)) == "*** demo agent: new version available ***"
    assert said(events) == ["on"]
    await hand.verify(session)


async def test_a_message_of_megabytes_arrives(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    await hand.prompt(session, "big 3000000; say after")
    events = await hand.has(session, "turn.completed", 1)
    text = those(events, "message.assistant")[0].data.content[0].text
    assert text.size == 3_000_000
    assert said(events)[-1] == "after"
    await hand.verify(session)


async def test_a_crash_in_mid_turn_is_told_without_secrets_and_the_next_prompt_resumes(
    hand: Hand, run_host: Host
) -> None:
    await run_host()
    session = await hand.create()
    await hand.prompt(session, "say a; crash 3")
    events = await hand.has(session, "session.status", status="stopped")

    error = those(events, "error")[0].data
    assert error.code == "agent_failed"
    assert error.details["exit_code"] == 3
    assert "crashing on demand" in error.details["stderr"]
    assert "sk-demo" not in encode(events).decode()
    assert those(events, "turn.completed", outcome="aborted")
    await hand.prompt(session, "history")
    events = await hand.has(session, "turn.completed", 2)
    assert said(events)[-1] == "prompts:2", "the same native session goes on"
    await hand.verify(session)


async def test_an_agent_that_leaves_after_its_turn_is_no_error(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    await hand.prompt(session, "say bye; leave")
    events = await hand.has(session, "session.status", status="stopped")
    assert those(events, "turn.completed", outcome="success")
    assert those(events, "error") == []
    await hand.verify(session)


async def test_asks_of_a_dead_agent_are_withdrawn(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    await hand.prompt(session, "ask forever")
    ask = those(await hand.has(session, "permission.requested"), "permission.requested")[0]
    kill_all(process for process in marked("TRUNKLINE_SESSION", session) if "demo.agent" in process.command)
    events = await hand.has(session, "session.status", status="stopped")
    assert those(events, "ask.withdrawn", why="agent_died", ask=ask.data.ask)
    assert those(events, "tool.completed", status="cancelled")
    assert those(events, "turn.completed", outcome="aborted")
    await hand.decide(ask)
    await hand.prompt(session, "say next")
    events = await hand.has(session, "turn.completed", 2)
    assert those(events, "ask.delivered") == [], "a decision for an ended ask reaches nobody"
    await hand.verify(session)


async def test_three_ends_before_it_is_ready_close_the_session(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create(options=SessionOptions(native={"exit_at_start": 7}))
    for n in range(1, 4):
        command = await hand.prompt(session, "hello")
        events = await hand.has(session, "error", n)
        failed = those(await hand.has(session, "command.failed", command=command), "command.failed", command=command)
        assert failed[0].data.error.code == "agent_failed"
    events = await hand.has(session, "session.closed")
    closed = those(events, "session.closed")[0].data
    assert (closed.reason, closed.exit_code) == ("crash_loop", 7)
    assert "told to leave at once" in closed.last_error
    await hand.verify(session)


async def test_close_resume_and_commands_to_a_closed_session(hand: Hand, run_host: Host) -> None:
    host = await run_host()
    session = await hand.create()
    await hand.prompt(session, "say one; children; slow")
    await hand.has(session, "message.assistant")
    close = await hand.command(session, Close(reason="enough"))
    events = await hand.has(session, "command.finished", command=close)
    closed = those(events, "session.closed")[0]
    assert closed.data.reason == "enough"
    assert closed.data.cmd_seq == those(events, "command.accepted", command=close)[0].data.cmd_seq
    assert types(events)[-2:] == ["session.closed", "command.finished"], "finished once it is closed"
    await assert_no_orphans("TRUNKLINE_SESSION", session)
    await eventually(lambda: host.sessions == [], 5)

    ignored = await hand.prompt(session, "say unheard")
    resume = await hand.command(session, Resume())
    await hand.prompt(session, "history")
    events = await hand.has(session, "turn.completed", 2)
    assert those(events, "command.rejected", command=ignored)[0].data.error.code == "session_closed"
    assert those(events, "command.finished", command=resume)
    assert those(events, "session.resumed", how="reopened")
    assert said(events)[-1] == "prompts:2"
    await hand.verify(session)


async def test_kill_ends_a_stuck_agent_at_once(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    await hand.prompt(session, "children; silent")
    await hand.has(session, "turn.started")
    kill = await hand.command(session, Kill())
    events = await hand.has(session, "command.finished", command=kill)
    assert those(events, "session.closed")[0].data.reason == "killed"
    assert those(events, "turn.completed", outcome="aborted")
    await assert_no_orphans("TRUNKLINE_SESSION", session)
    await hand.verify(session)


async def test_a_repeated_id_has_one_effect(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    command = await hand.prompt(session, "say once")
    await hand.prompt(session, "say once", id=command)
    await hand.has(session, "turn.completed")
    await hand.prompt(session, "say once", id=command)
    await hand.prompt(session, "history")
    events = await hand.has(session, "turn.completed", 2)
    assert said(events) == ["once", "prompts:2"]
    assert len(those(events, "command.accepted", command=command)) == 1
    await hand.verify(session)


async def test_verbs_that_the_agent_lacks_are_refused_by_capability(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    wanted = {
        await hand.command(session, Compact()): "compaction",
        await hand.command(session, Rewind(to="x")): "rewind",
        await hand.command(session, HandOver(to="terminal")): "terminal",
    }
    events = await hand.has(session, "command.rejected", 3)
    found = {event.data.command: event.data.error for event in those(events, "command.rejected")}
    assert {command: error.details["capability"] for command, error in found.items()} == wanted
    assert {error.code for error in found.values()} == {"unsupported"}


async def test_a_reset_begins_a_new_conversation_in_the_same_session(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    await hand.prompt(session, "say one")
    # It waits for the turn before it, and the prompt behind it waits for it.
    reset = await hand.command(session, Reset())
    await hand.prompt(session, "history")
    events = await hand.has(session, "turn.completed", 2)
    assert said(events) == ["one", "prompts:1"]
    assert those(events, "command.finished", command=reset)
    former, present = (event.data.native_session for event in those(events, "session.initialized"))
    assert former != present
    first, second = those(events, "turn.completed")
    (left,) = those(events, "session.reset", by="tester")
    assert events.index(first) < events.index(left) < events.index(second)
    await hand.verify(session)


async def test_settings_hold_over_a_restart_of_the_agent(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    await hand.command(session, SetModel(model="demo-large"))
    await hand.command(session, Rename(title="A title"))
    await hand.has(session, "command.finished", 2)
    await hand.prompt(session, "say x; leave")
    await hand.has(session, "session.status", status="stopped")
    await hand.prompt(session, "say y")
    events = await hand.has(session, "turn.completed", 2)
    changed = [event.data.model for event in those(events, "session.updated") if event.origin]
    assert changed == ["demo-large", "demo-large"], "both agents were started with the model"
    free = await hand.command(session, SetMode(mode="free"))
    await hand.has(session, "command.finished", command=free)
    await hand.prompt(session, "ask nobody")
    events = await hand.has(session, "turn.completed", 3)
    assert those(events, "permission.requested") == []
    assert those(events, "session.updated", title="A title")
    await hand.verify(session)


async def test_native_requests_return_their_result(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    good = await hand.command(session, Native(method="echo", params={"a": [1]}))
    bad = await hand.command(session, Native(method="nonsense"))
    await hand.has(session, "command.failed", command=bad)
    events = await hand.has(session, "command.finished", command=good)
    assert those(events, "command.finished", command=good)[0].data.result == {"a": [1]}
    assert those(events, "command.failed", command=bad)[0].data.error.code == "bad_params"


async def test_fork_goes_on_from_the_parent_and_leaves_it_alone(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create(title="The parent")
    await hand.prompt(session, "say one")
    await hand.has(session, "turn.completed")
    child = new_session_id()
    fork = await hand.command(session, Fork(session=child, prompt="history"))
    events = await hand.has(session, "command.finished", command=fork)
    assert those(events, "command.finished", command=fork)[0].data.result == {"session": child}
    events = await hand.has(child, "turn.completed")
    assert types(events)[:2] == ["session.created", "session.forked"]
    assert those(events, "session.created")[0].data.parent == session
    assert said(events) == ["prompts:2"]
    await hand.prompt(session, "history")
    parent = await hand.has(session, "turn.completed", 2)
    assert said(parent)[-1] == "prompts:2"
    natives = {those(log, "session.initialized")[0].data.native_session for log in (events, parent)}
    assert len(natives) == 2
    await hand.verify(child)


async def test_archive_lets_go_and_a_prompt_brings_back(hand: Hand, run_host: Host) -> None:
    host = await run_host()
    session = await hand.create()
    await hand.prompt(session, "say one")
    await hand.has(session, "turn.completed")
    await hand.command(session, Archive())
    await hand.has(session, "session.archived")
    await eventually(lambda: host.sessions == [], 5)
    await hand.command(session, Unarchive())
    events = await hand.has(session, "session.resumed", how="unarchived")
    assert those(events, "session.claimed")
    await hand.command(session, Archive())
    await hand.has(session, "session.archived", 2)
    await hand.prompt(session, "say two")
    events = await hand.has(session, "turn.completed", 2)
    assert len(those(events, "session.resumed", how="unarchived")) == 2
    await hand.verify(session)


async def test_an_idle_agent_is_stopped_and_the_session_let_go(hand: Hand, run_host: Host) -> None:
    host = await run_host(idle_after=0.3)
    session = await hand.create(options=SessionOptions(prompt="say one"))
    events = await hand.has(session, "session.status", status="stopped")
    assert those(events, "session.status", status="stopped")[0].data.reason == "idle"
    await eventually(lambda: host.sessions == [], 5)
    assert marked("TRUNKLINE_SESSION", session) == []
    await hand.prompt(session, "history")
    events = await hand.has(session, "turn.completed", 2)
    assert said(events) == ["one", "prompts:2"]
    await hand.verify(session)


async def test_silence_in_a_turn_is_stalled_and_ends_with_the_next_word(hand: Hand, run_host: Host) -> None:
    await run_host(stalled_after=0.2)
    session = await hand.create()
    await hand.prompt(session, "silent")
    events = await hand.has(session, "session.status", status="stalled")
    turn = those(events, "turn.started")[0].turn
    await hand.command(session, Interrupt(), target=turn)
    events = await hand.has(session, "turn.completed")
    assert those(events, "turn.completed", outcome="interrupted")
    await hand.verify(session)


async def test_a_new_native_id_on_resume_is_an_alias(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create(options=SessionOptions(native={"new_id_on_resume": True}))
    for n in range(1, 4):
        await hand.prompt(session, "history; leave")
        await hand.has(session, "turn.completed", n)
        await hand.has(session, "session.status", n, status="stopped")
    events = await hand.events(session)
    natives = [event.data.native_session for event in those(events, "session.initialized")]
    assert len(set(natives)) == 3
    assert said(events) == ["prompts:1", "prompts:2", "prompts:3"]


async def test_what_can_not_be_honoured_is_refused_by_name(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create(options=SessionOptions(max_turns=3, system_prompt="x"))
    events = await hand.has(session, "session.closed", reason="unsupported")
    assert set(those(events, "error")[0].data.details["options"]) == {"max_turns", "system_prompt"}
    session = await hand.create(cwd="/no/such/directory")
    await hand.has(session, "session.closed", reason="bad_directory")


async def test_a_repeated_spawn_is_one_session_and_a_foreign_one_is_refused(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create(id="one")
    await hand.spawn(session=session, id="one")
    await hand.spawn(session=session, id="two")
    other = await hand.create()
    await hand.has(other, "session.created")
    assert types(await hand.events(session)) == ["session.created"]

    async def taken() -> bool:
        return (await hand.bus.js_cmd.stream_info(subjects.SPAWN)).state.messages == 0

    await eventually(taken, 5)


async def test_unreadable_commands_get_an_outcome_or_a_dead_letter(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    subject = subjects.command(session, "tester")
    await hand.bus.js_cmd.publish(subject, b'{"id":"cmd_x","verb":"dance","session":"' + session.encode() + b'"}')
    await hand.bus.js_cmd.publish(subject, b"not json")
    other = make_command(Prompt(content=[]), id=new_command_id(), session=new_session_id(), time=timestamp())
    await hand.bus.js_cmd.publish(subject, encode(other))
    events = await hand.has(session, "command.rejected", 2)
    codes = {event.data.command: event.data.error.code for event in those(events, "command.rejected")}
    assert codes == {"cmd_x": "bad_params", other.id: "bad_params"}

    async def buried() -> bool:
        return (await hand.bus.js_cmd.stream_info(subjects.DEADLETTER)).state.messages == 1

    await eventually(buried, 5)


async def test_the_worker_is_registered_with_its_adapters_and_holds_a_lease(hand: Hand, run_host: Host) -> None:
    host = await run_host()
    entries = await eventually(lambda: kv.entries(hand.bus, subjects.KV_WORKERS), 5)
    value = decode_json(entries[0].value or b"")
    assert (value["worker"], value["host"]) == (host.worker, host.host)
    assert [(adapter["name"], adapter["version"]) for adapter in value["adapters"]] == [("demo", "1")]
    session = await hand.create()
    lease = await eventually(lambda: read_lease(hand.bus, session), 5)
    assert lease.holder["worker"] == host.worker


async def test_a_turn_belongs_to_the_trace_of_its_prompt(hand: Hand, run_host: Host) -> None:
    await run_host()
    session = await hand.create()
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    prompt = make_command(
        Prompt(content=[TextBlock(text="ask x; background")]), id=new_command_id(), session=session, time=timestamp()
    )
    headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    await hand.bus.js_cmd.publish(subjects.command(session, "tester"), encode(prompt), headers=headers)
    ask = those(await hand.has(session, "permission.requested"), "permission.requested")[0]
    await hand.decide(ask)
    await hand.has(session, "turn.completed", 2)
    stored = await read_session(hand.bus, session)
    traced = [one.type for one in stored if trace in (one.headers or {}).get("traceparent", "")]
    assert traced == [
        "command.accepted",
        "session.status",
        "message.user",
        "turn.started",
        "tool.started",
        "permission.requested",
        "tool.completed",
        "turn.completed",
    ]


async def test_a_worker_that_is_to_stop_lets_turns_end(hand: Hand, home: Path) -> None:
    """One session has a turn with an open question, the other rests; what comes meanwhile waits for the next worker."""
    stopping, ready = asyncio.Event(), asyncio.Event()
    host = for_test(hand.bus, home, {"demo": load("demo")}, OwnerSettings(tick=0.05, turns_within=60))
    task = asyncio.create_task(host.run(stopping, ready))
    await ready.wait()
    working, resting = await hand.create(), await hand.create()
    await hand.prompt(resting, "hello")
    await hand.has(resting, "turn.completed")
    await hand.prompt(working, "ask x")
    asked = those(await hand.has(working, "permission.requested"), "permission.requested")[-1]
    stopping.set()
    await eventually(lambda: host.sessions == [working])
    await eventually(lambda: _stopping(hand))
    await hand.prompt(resting, "and then?")
    await hand.decide(asked)
    await task
    assert those(await hand.events(working), "turn.completed", outcome="success")
    assert len(those(await hand.events(resting), "turn.completed")) == 1
    assert await kv.entries(hand.bus, subjects.KV_WORKERS) == []
    await hand.verify(working)


async def _stopping(hand: Hand) -> bool:
    """Whether the only worker says that it takes no sessions any more."""
    (entry,) = await kv.entries(hand.bus, subjects.KV_WORKERS)
    return decode_json(entry.value or b"")["stopping"]


async def test_stopping_the_worker_aborts_turns_and_leaves_nothing(hand: Hand, home: Path) -> None:
    stopping, ready = asyncio.Event(), asyncio.Event()
    host = for_test(hand.bus, home, {"demo": load("demo")}, OwnerSettings(tick=0.05))
    task = asyncio.create_task(host.run(stopping, ready))
    await ready.wait()
    session = await hand.create()
    await hand.prompt(session, "children; ask x")
    await hand.has(session, "permission.requested")
    stopping.set()
    await task
    events = await hand.events(session)
    assert those(events, "turn.completed", outcome="aborted")
    assert those(events, "ask.withdrawn", why="agent_died")
    assert those(events, "error") == [], "it was told to stop: no failure"
    assert marked("TRUNKLINE_SESSION", session) == []
    assert await read_lease(hand.bus, session) is None
    assert await kv.entries(hand.bus, subjects.KV_WORKERS) == []
    await hand.verify(session)
