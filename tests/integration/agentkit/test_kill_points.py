"""One undisturbed run, then the same with the worker killed after each event of it."""

import pytest
from tests.integration.agentkit.conftest import Start
from tests.integration.agentkit.hand import Hand, those

from trunkline_testkit.processes import assert_no_orphans
from trunkline_wire import Event
from trunkline_wire.commands import Close

PROMPT = "say one; children; ask two; say three"
EVENTS = 15
"""Of the undisturbed run, created to completed; `test_first_prompt_streams_asks_and_completes` names those of a like one."""


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.parametrize("kill_after", range(1, EVENTS + 1))
async def test_the_worker_dies_after_any_event(hand: Hand, start_worker: Start, kill_after: int) -> None:
    worker = await start_worker()
    session = await hand.create()
    command = await hand.prompt(session, PROMPT)
    decided = False
    killed = False
    while not killed:
        events = await hand.until(session, lambda events, decided=decided: _goes_on(events, kill_after, decided))
        if len(events) >= kill_after:
            worker.kill()
            await worker.wait()
            killed = True
        else:
            await hand.decide(those(events, "permission.requested")[0])
            decided = True

    await start_worker()
    await hand.until(session, lambda events: _outcomes(events, command) == 1)
    events = await hand.until(session, _at_rest_or_asking)
    for ask in those(events, "permission.requested"):
        if ask.epoch == max(event.epoch or 0 for event in events) and not those(
            events, "ask.decided", ask=ask.data.ask
        ):
            await hand.decide(ask)
    await hand.until(session, _at_rest)
    again = await hand.prompt(session, "history")
    events = await hand.until(session, lambda events: those(events, "turn.started") and _ended(events, again))

    assert _outcomes(events, command) == 1
    assert len(those(events, "message.user", command=command)) == 1, "handed over once"
    starts, ends = those(events, "turn.started"), those(events, "turn.completed")
    assert len(starts) == len(ends)
    await hand.verify(session)
    await hand.command(session, Close())
    await hand.has(session, "session.closed")
    await assert_no_orphans("TRUNKLINE_SESSION", session)


def _goes_on(events: list[Event], kill_after: int, decided: bool) -> bool:
    return len(events) >= kill_after or (not decided and any(e.type == "permission.requested" for e in events))


def _outcomes(events: list[Event], command: str) -> int:
    ends = ("command.finished", "command.failed", "command.rejected")
    return sum(len(those(events, end, command=command)) for end in ends)


def _at_rest(events: list[Event]) -> bool:
    return len(those(events, "turn.started")) == len(those(events, "turn.completed"))


def _at_rest_or_asking(events: list[Event]) -> bool:
    return _at_rest(events) or events[-1].type == "permission.requested"


def _ended(events: list[Event], command: str) -> bool:
    turns = [e.turn for e in those(events, "turn.started") if e.cause == command]
    return bool(turns) and any(e.turn == turns[-1] for e in those(events, "turn.completed"))
