"""A session of an ACP agent in the log: by a command and by a named profile, with a decision, a kill, a resume and a copy."""

from pathlib import Path
from typing import Any

from tests.integration.agentkit.conftest import Host
from tests.integration.agentkit.hand import Hand, those

from trunkline_adapters.acp.adapter import AcpAdapter
from trunkline_testkit.processes import kill_all, marked
from trunkline_wire import NO_NATIVE
from trunkline_wire.blocks import join_text
from trunkline_wire.commands import Close, Fork, Interrupt, SetMode
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionOptions

STAND_IN = Path(__file__).parents[2] / "contract" / "acp_stand_in.py"


def options(tmp_path: Path, **native: Any) -> SessionOptions:
    return SessionOptions(environment={"STAND_IN_STATE": str(tmp_path)}, native=native)


def said(events: list[Any]) -> list[str]:
    return [join_text(event.data.content) for event in those(events, "message.assistant")]


async def run(run_host: Host, **source: str) -> None:
    await run_host({"acp": AcpAdapter({"PATH": "/usr/local/bin:/usr/bin:/bin", **source})})


async def test_a_command_becomes_a_session_with_turns_and_decisions(hand: Hand, run_host: Host, tmp_path: Path) -> None:
    await run(run_host)
    session = await hand.create("acp", options=options(tmp_path, command=[str(STAND_IN)]))
    await hand.prompt(session, "ask ls")
    asked = those(await hand.has(session, "permission.requested"), "permission.requested")[0]
    await hand.decide(asked, option="always")
    await hand.has(session, "turn.completed", outcome="success")
    await hand.command(session, SetMode(mode="ask"))
    second = await hand.prompt(session, "options")
    events = await hand.has(session, "turn.completed", 2)
    assert said(events)[-1] == '{"mode": "ask", "model": "small", "effort": "low"}'
    assert those(events, "turn.started")[1].cause == second
    assert len(those(events, "ask.delivered")) == 1
    assert those(events, "session.created")[0].data.agent is None
    await hand.verify(session)


async def test_a_profile_names_the_sessions_agent_and_a_killed_one_is_taken_up(
    hand: Hand, run_host: Host, tmp_path: Path
) -> None:
    await run(run_host, TRUNKLINE_PROGRAM_ACP_GEMINI=str(STAND_IN))
    session = await hand.create("acp", agent="gemini", options=options(tmp_path))
    await hand.prompt(session, "first")
    events = await hand.has(session, "turn.completed")
    created = those(events, "session.created")[0].data
    assert (created.adapter, created.agent) == ("acp", "gemini")
    assert {event.agent.agent for event in events if event.agent} == {"gemini"}
    kill_all(marked("TRUNKLINE_SESSION", session))
    await hand.has(session, "session.status", status="stopped")
    await hand.prompt(session, "second")
    events = await hand.has(session, "turn.completed", 2)
    assert said(events) == ["first", "second"]
    natives = {event.data.native_session for event in those(events, "session.initialized")}
    assert len(natives) == 1
    await hand.verify(session)


async def test_a_session_is_copied_and_interrupted(hand: Hand, run_host: Host, tmp_path: Path) -> None:
    await run(run_host)
    session = await hand.create("acp", options=options(tmp_path, command=[str(STAND_IN)]))
    await hand.prompt(session, "first")
    await hand.has(session, "turn.completed")
    copy = new_session_id()
    await hand.command(session, Fork(session=copy))
    await hand.has(copy, "session.created")
    await hand.prompt(copy, "long")
    await hand.has(copy, "turn.started")
    await hand.command(copy, Interrupt())
    events = await hand.has(copy, "turn.completed", outcome="interrupted")
    assert len(said(events)) == 1
    originals = await hand.events(session)
    native = those(originals, "session.initialized")[0].data.native_session
    assert those(events, "session.initialized")[0].data.native_session != native
    await hand.command(copy, Close())
    await hand.has(copy, "session.closed")
    await hand.verify(copy)


async def test_a_prompt_after_which_the_agent_dies_without_a_word_is_a_turn_that_was_aborted(
    hand: Hand, run_host: Host, tmp_path: Path
) -> None:
    await run(run_host)
    session = await hand.create("acp", options=options(tmp_path, command=[str(STAND_IN)]))
    prompt = await hand.prompt(session, "vanish 3")
    events = await hand.has(session, "session.status", status="stopped")
    (started,) = those(events, "turn.started")
    (completed,) = those(events, "turn.completed")
    assert (started.cause, started.origin, started.native) == (prompt, None, NO_NATIVE)
    assert (completed.turn, completed.data.outcome, completed.data.error.code) == (
        started.turn,
        "aborted",
        "agent_failed",
    )
    assert those(events, "error")[0].data.details["exit_code"] == 3
    assert [event.data.command for event in those(events, "command.finished")] == [prompt]
    await hand.prompt(session, "second")
    events = await hand.has(session, "turn.completed", outcome="success")
    assert said(events) == ["second"]
    await hand.verify(session)


async def test_an_agent_that_is_not_there_is_an_outcome_that_says_so(
    hand: Hand, run_host: Host, tmp_path: Path
) -> None:
    await run(run_host)
    session = await hand.create("acp", agent="gemini", options=options(tmp_path))
    await hand.prompt(session, "first")
    events = await hand.has(session, "command.failed")
    error = those(events, "command.failed")[0].data.error
    assert error.code == "agent_not_found"
    assert "npm install" in error.message
