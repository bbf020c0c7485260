"""What a dead owner can leave in the log, written by hand, and what the next owner makes of it."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from tests.integration.agentkit.conftest import Host, Start
from tests.integration.agentkit.hand import Hand, those

from trunkline_adapters.app import host_id
from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.place import Place, Record
from trunkline_agentkit.process import AgentProcess, Exit
from trunkline_agentkit.workers import WorkerMark
from trunkline_bus.connection import Bus
from trunkline_bus.writer import SessionWriter
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.processes import kill_all, marked, stop
from trunkline_wire import AgentRef, Data
from trunkline_wire.blocks import TextBlock
from trunkline_wire.commands import Native, Prompt, Resume, SetModel
from trunkline_wire.ids import item_id, new_session_id, uuid7_hex
from trunkline_wire.session import SessionClosed, SessionCreated, SessionOptions, SessionStatus
from trunkline_wire.turn import MessageUser, ToolStarted, TurnStarted
from trunkline_wire.work import CommandAccepted

DEAD = WorkerMark(worker="wrk_" + "0" * 32, pid=2**22 - 1, started=1.0)


class Past:
    """A session as a worker left it that is dead now."""

    def __init__(self, hand: Hand, writer: SessionWriter) -> None:
        self.hand = hand
        self.writer = writer
        self.session = writer.session

    async def accept(self, args: Data) -> str:
        """A command that the dead owner accepted."""
        command = await self.hand.command(self.session, args)
        accepted = CommandAccepted(command=command, verb=args.TYPE, cmd_seq=await self.last_command())
        self.writer.append(accepted, cause=command)
        return command

    async def last_command(self) -> int:
        return (await self.hand.bus.js_cmd.stream_info("COMMANDS")).state.last_seq

    def hand_over(self, command: str, delivery: str = "sent") -> None:
        message = MessageUser(content=[TextBlock(text="say past")], command=command, delivery=delivery)  # pyright: ignore[reportArgumentType]
        self.writer.append(message, item=item_id(self.session, "gone", command))


@pytest_asyncio.fixture
async def past(hand: Hand, bus: Bus, home: Path, tmp_path: Path) -> AsyncIterator[Past]:
    async with new_past(hand, bus, home, tmp_path) as one:
        yield one


@asynccontextmanager
async def new_past(
    hand: Hand, bus: Bus, home: Path, cwd: Path, options: SessionOptions | None = None
) -> AsyncGenerator[Past]:
    created = SessionCreated(
        adapter="demo", cwd=str(cwd), host=host_id(home), workspace="ws_x", options=options or SessionOptions()
    )
    session = new_session_id()
    reference = AgentRef(adapter="demo")
    writer = await SessionWriter.create(bus, created, session=session, worker=DEAD.worker, agent=reference)
    Place(home, session).write(Record(session=session, adapter="demo", cwd=str(cwd), worker=DEAD))
    yield Past(hand, writer)
    await writer.close()


async def test_a_prompt_that_was_accepted_and_not_handed_over_is_handed_over(past: Past, run_host: Host) -> None:
    command = await past.accept(Prompt(content=[TextBlock(text="say late")]))
    await past.writer.flush()
    await run_host()
    events = await past.hand.has(past.session, "turn.completed")
    assert those(events, "message.user", command=command)[0].data.content[0].text == "say late"
    assert len(those(events, "command.accepted", command=command)) == 1
    assert those(events, "command.finished", command=command)
    await past.hand.verify(past.session)


async def test_a_prompt_that_may_have_reached_the_agent_is_not_repeated(past: Past, run_host: Host) -> None:
    command = await past.accept(Prompt(content=[TextBlock(text="say past")]))
    past.hand_over(command)
    await past.writer.flush()
    await run_host()
    events = await past.hand.has(past.session, "command.failed", command=command)
    assert those(events, "command.failed")[0].data.error.code == "outcome_unknown"
    await past.hand.prompt(past.session, "say new")
    events = await past.hand.has(past.session, "turn.completed")
    assert len(those(events, "message.user", command=command)) == 1
    await past.hand.verify(past.session)


async def test_a_prompt_whose_turn_began_is_finished_and_its_turn_aborted(past: Past, run_host: Host) -> None:
    command = await past.accept(Prompt(content=[TextBlock(text="say past")]))
    past.hand_over(command)
    turn, tool = f"tur_{uuid7_hex()}", item_id(past.session, "gone", "t")
    past.writer.append(TurnStarted(number=1), turn=turn, cause=command)
    past.writer.append(ToolStarted(name="run"), turn=turn, item=tool)
    await past.writer.flush()
    await run_host()
    events = await past.hand.has(past.session, "command.finished", command=command)
    assert those(events, "turn.completed", outcome="aborted")[0].turn == turn
    assert those(events, "tool.completed", status="cancelled")[0].item == tool
    await past.hand.verify(past.session)


async def test_idempotent_verbs_are_repeated_and_others_are_unknown(past: Past, run_host: Host) -> None:
    model = await past.accept(SetModel(model="demo-large"))
    native = await past.accept(Native(method="echo"))
    await past.writer.flush()
    await run_host()
    events = await past.hand.has(past.session, "command.finished", command=model)
    events = await past.hand.has(past.session, "command.failed", command=native)
    assert those(events, "session.updated", model="demo-large")
    assert those(events, "command.failed")[0].data.error.code == "outcome_unknown"
    await past.hand.verify(past.session)


async def test_a_first_prompt_that_was_never_handed_over_is(
    hand: Hand, bus: Bus, home: Path, tmp_path: Path, run_host: Host
) -> None:
    async with new_past(hand, bus, home, tmp_path, SessionOptions(prompt="say first")) as past:
        await past.writer.flush()
        await run_host()
        events = await hand.has(past.session, "turn.completed")
        assert those(events, "message.user")[0].data.content[0].text == "say first"
        await hand.verify(past.session)


async def test_starts_that_failed_in_other_epochs_count_for_the_crash_loop(past: Past, run_host: Host) -> None:
    for _ in range(3):
        past.writer.append(SessionStatus(status="starting"))
        past.writer.append(SessionStatus(status="stopped", reason="ended"))
    await past.writer.flush()
    await run_host()
    prompt = await past.hand.prompt(past.session, "say x")
    events = await past.hand.has(past.session, "session.closed")
    assert those(events, "session.closed")[0].data.reason == "crash_loop"
    assert those(events, "command.failed", command=prompt)
    await past.hand.verify(past.session)


async def test_a_session_with_nothing_open_is_left_alone(past: Past, run_host: Host, home: Path) -> None:
    await past.writer.flush()
    await run_host()

    def released() -> bool:
        record = Place(home, past.session).record
        return record is not None and record.worker is None

    await eventually(released, 5)
    assert [event.type for event in await past.hand.events(past.session)] == ["session.created"]


@pytest.mark.parametrize("others", [0, 6], ids=["commands end before it", "commands have grown past it"])
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
async def test_a_record_of_commands_from_a_log_that_was_put_back_makes_no_one_deaf(
    past: Past, run_host: Host, home: Path, closed: bool, others: int
) -> None:
    if closed:
        past.writer.append(SessionClosed(reason="closed"))
    await past.writer.flush()
    record = Record(session=past.session, adapter="demo", cwd=str(home), cmd_seq=5, closed=closed)
    Place(home, past.session).write(record)
    early = await past.hand.command(past.session, Resume() if closed else SetModel(model="demo-small"))
    for _ in range(others):
        await past.hand.command(new_session_id(), SetModel(model="demo-large"))
    await run_host()
    await past.hand.has(past.session, "command.finished", command=early)
    prompt = await past.hand.prompt(past.session, "say heard")
    await past.hand.has(past.session, "command.finished", command=prompt)
    await past.hand.verify(past.session)


async def test_an_id_older_than_a_day_is_expired(past: Past, run_host: Host) -> None:
    await past.writer.flush()
    await run_host()
    old = "cmd_018c8d2d" + "0000" + "7000" + "8" + "0" * 15  # minted in December 2023
    await past.hand.prompt(past.session, "say old", id=old)
    events = await past.hand.has(past.session, "command.rejected", command=old)
    assert those(events, "command.rejected")[0].data.error.code == "expired"


async def test_an_owner_that_was_fenced_stops_its_agent_and_forgets_the_session(
    hand: Hand, bus: Bus, run_host: Host
) -> None:
    host = await run_host()
    session = await hand.create()
    await hand.prompt(session, "slow")
    await hand.has(session, "turn.started")
    reference = AgentRef(adapter="demo")
    rival = await SessionWriter.claim(bus, session, worker="wrk_" + "1" * 32, host="hst_other", agent=reference)
    await hand.prompt(session, "say something")
    await eventually(lambda: host.sessions == [], 10)
    events = await hand.events(session)
    assert all(event.epoch == 2 for event in events if event.seq and event.seq > (rival.seq or 0) - 1)
    await rival.close()


async def test_an_agent_whose_end_can_not_be_learned_leaves_nothing_open(
    hand: Hand, run_host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run_host()
    session = await hand.create()
    command = await hand.prompt(session, "slow 1000")
    await hand.has(session, "turn.started")

    async def fails(agent: AgentProcess, _: float = 5.0) -> Exit:
        agent.kill()
        raise ProcessLookupError(3, "No such process")

    monkeypatch.setattr(AgentProcess, "close", fails)
    kill_all(marked(SESSION_MARK, session))
    events = await hand.has(session, "turn.completed", outcome="aborted")
    assert len(those(events, "command.finished", command=command)) == 1
    await hand.has(session, "session.status", status="stopped")
    monkeypatch.undo()
    await hand.prompt(session, "say again")
    await hand.has(session, "turn.completed", outcome="success")
    await hand.verify(session)


async def open_command(hand: Hand) -> tuple[str, str]:
    """A session and a command that its agent, which hangs, does not answer."""
    session = await hand.create()
    await hand.prompt(session, "say before")
    await hand.has(session, "turn.completed")
    for process in marked(SESSION_MARK, session):
        stop(process.pid)
    command = await hand.command(session, Native(method="echo", params={}))
    await hand.has(session, "command.accepted", command=command)
    return session, command


async def is_unknown(hand: Hand, session: str, command: str) -> None:
    events = await hand.has(session, "command.failed", within=30, command=command)
    assert those(events, "command.failed", command=command)[0].data.error.code == "outcome_unknown"
    await hand.verify(session)


async def test_a_command_that_was_open_when_the_log_fell_silent_gets_its_outcome(
    hand: Hand, run_host: Host, fresh_nats: NatsServer
) -> None:
    await run_host(lease_ttl=2.0)
    session, command = await open_command(hand)
    fresh_nats.pause()
    try:
        await eventually(lambda: not marked(SESSION_MARK, session), 10)
    finally:
        fresh_nats.resume()
    await is_unknown(hand, session, command)


async def test_a_command_that_was_open_at_a_stop_gets_its_outcome_from_the_next_worker(
    hand: Hand, start_worker: Start, run_host: Host, home: Path
) -> None:
    worker = await start_worker(TRUNKLINE_HOME=str(home))
    session, command = await open_command(hand)
    worker.terminate()
    assert await worker.wait() == 0
    await run_host()
    await is_unknown(hand, session, command)
