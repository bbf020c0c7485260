"""A session of a headless agent in the log: a process for each turn, an interrupt, a kill, and what comes after it."""

from pathlib import Path
from typing import Any

from tests.integration.agentkit.conftest import Host
from tests.integration.agentkit.hand import Hand, those

from trunkline_adapters.headless.adapter import HeadlessAdapter
from trunkline_testkit.processes import kill_all, marked
from trunkline_wire.blocks import join_text
from trunkline_wire.commands import Close, Interrupt, SetMode
from trunkline_wire.session import SessionOptions

STAND_IN = Path(__file__).parents[2] / "contract" / "headless_stand_in.py"


async def run(run_host: Host) -> None:
    program = {"TRUNKLINE_PROGRAM_HEADLESS_GEMINI": str(STAND_IN), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    await run_host({"headless": HeadlessAdapter(program)})


def options(tmp_path: Path) -> SessionOptions:
    return SessionOptions(environment={"STAND_IN_STATE": str(tmp_path)})


def said(events: list[Any]) -> list[str]:
    return [join_text(event.data.content) for event in those(events, "message.assistant")]


async def test_turns_are_processes_of_one_session(hand: Hand, run_host: Host, tmp_path: Path) -> None:
    await run(run_host)
    session = await hand.create("headless", agent="gemini", options=options(tmp_path))
    await hand.prompt(session, "first")
    await hand.has(session, "turn.completed", outcome="success")
    await hand.command(session, SetMode(mode="plan"))
    second = await hand.prompt(session, "arguments")
    events = await hand.has(session, "turn.completed", 2)
    native = those(events, "session.initialized")[0].data.native_session
    assert said(events)[0] == "first"
    assert native in said(events)[1]
    assert "plan" in said(events)[1]
    assert those(events, "turn.started")[1].cause == second
    assert len(those(events, "session.initialized")) == 1
    await hand.prompt(session, "long")
    await hand.has(session, "turn.started", 3)
    await hand.command(session, Interrupt())
    await hand.has(session, "turn.completed", outcome="interrupted")
    await hand.command(session, Close())
    await hand.has(session, "session.closed")
    await hand.verify(session)


async def test_a_killed_turn_is_aborted_and_the_next_prompt_takes_the_session_up(
    hand: Hand, run_host: Host, tmp_path: Path
) -> None:
    await run(run_host)
    session = await hand.create("headless", agent="gemini", options=options(tmp_path))
    await hand.prompt(session, "first")
    await hand.has(session, "turn.completed", outcome="success")
    await hand.prompt(session, "long")
    await hand.has(session, "turn.started", 2)
    kill_all(marked("TRUNKLINE_SESSION", session))
    await hand.has(session, "turn.completed", outcome="aborted")
    await hand.has(session, "session.status", status="stopped")
    await hand.prompt(session, "third")
    events = await hand.has(session, "turn.completed", 3)
    assert said(events)[-1] == "third"
    assert len({event.data.native_session for event in those(events, "session.initialized")}) == 1
    assert (tmp_path / "sessions").read_text().count("\n") == 1
    await hand.verify(session)


async def test_a_prompt_in_mid_turn_waits_for_its_end(hand: Hand, run_host: Host, tmp_path: Path) -> None:
    await run(run_host)
    session = await hand.create("headless", agent="gemini", options=options(tmp_path))
    await hand.prompt(session, "slow")
    await hand.has(session, "turn.started")
    second = await hand.prompt(session, "next")
    events = await hand.has(session, "turn.completed", 2)
    assert [event.data.outcome for event in those(events, "turn.completed")] == ["success", "success"]
    assert those(events, "turn.started")[1].cause == second
    await hand.verify(session)
