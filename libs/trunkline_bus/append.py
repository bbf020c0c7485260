"""One optimistic append: sent until its outcome is known, whatever happens to the server in between."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from trunkline_bus import leader, metrics
from trunkline_bus.client import Received
from trunkline_bus.mux import Lost, Mux, NoAnswer
from trunkline_bus.obstacles import Condition, Obstacles
from trunkline_bus.outcome import Message, judge
from trunkline_bus.stored import Stored
from trunkline_wire import TrunklineError
from trunkline_wire.subjects import HEADER_EXPECTED, HEADER_EXPECTED_FILTER, HEADER_ID, HEADER_TYPE

REGRESSED_AFTER_S: Final = 15.0
"""How long a leader may answer with less than was acknowledged before we believe it (an election takes up to 9 s)."""


class Conflict(Exception):  # noqa: N818 - an outcome, no fault
    """Another message stands behind the expected one: this append never happened and never will."""

    def __init__(self, last: Stored) -> None:
        super().__init__(f"the last of the filter is {last.id} at {last.sequence}")
        self.last = last


def begin(mux: Mux, message: Message, expected: int) -> Awaitable[Received]:
    """Send `message` for the first time, now. `store` has to follow with what this returns: the answer is in it."""
    return mux.ask(message.subject, message.payload, _headers(message, expected), wait=leader.ACK_WITHIN_S)


async def store(
    mux: Mux,
    stream: str,
    message: Message,
    *,
    expected: int,
    expected_id: str | None = None,
    condition: Condition = lambda _: None,
    begun: Awaitable[Received] | None = None,
) -> int:
    """Append `message` behind the message `expected` of its filter (0: the first); returns its stream sequence.

    `condition` is told what hinders the append for longer, and None once it no longer does. `begun` is what `begin`
    gave for the same message and `expected`, if it was sent already.
    Raises Conflict; TrunklineError `log_regressed` where the leader has had less than `expected` for
    REGRESSED_AFTER_S; `log_full` or `log_unwritable` after `obstacles.GIVE_UP_AFTER_S`; `log_unavailable` where the
    connection is closed for good; `too_large` for a message over the server's limit.
    """
    obstacles, tries = Obstacles(condition), 0
    while True:
        answer, begun = begun or begin(mux, message, expected), None
        outcome = await _outcome(answer, message, obstacles)
        if isinstance(outcome, int):
            break
        metrics.APPEND_UNKNOWN.labels(outcome).inc()
        if tries or outcome not in ("conflict", "in_flight"):
            await leader.pause(mux, tries)
        tries += 1
        found = await _look_up(mux, stream, message, expected, expected_id)
        if found is not None:
            outcome = found
            break
    obstacles.gone()
    return outcome


def _headers(message: Message, expected: int) -> dict[str, str]:
    headers = {HEADER_ID: message.id, HEADER_TYPE: message.type, HEADER_EXPECTED: str(expected), **message.headers}
    if message.filter != message.subject:
        headers[HEADER_EXPECTED_FILTER] = message.filter
    return headers


async def _outcome(asked: Awaitable[Received], message: Message, obstacles: Obstacles) -> int | str:
    """The sequence when acknowledged, else why the outcome is unknown."""
    try:
        answer = leader.read_ack(await asked)
    except Lost:
        obstacles.forget("log_unwritable")
        return "disconnected"
    except NoAnswer:
        obstacles.stands("log_unwritable", "the log does not answer appends", already=leader.ACK_WITHIN_S)
        return "timeout"
    if isinstance(answer, int):
        return answer
    if answer.err_code == leader.WRONG_LAST:
        return "conflict"
    if answer.err_code == leader.IN_FLIGHT:
        return "in_flight"
    if answer.err_code in leader.FULL:
        obstacles.stands("log_full", f"the log refuses events: {answer}")
        return "full"
    if answer.code == leader.UNAVAILABLE:
        return "unavailable"
    obstacles.stands("log_unwritable", f"the log refuses a {message.type}: {answer}")
    return "refused"


async def _look_up(mux: Mux, stream: str, message: Message, expected: int, expected_id: str | None) -> int | None:
    """Ask the leader: the sequence if the message is stored, None if it is to be sent again. Raises otherwise."""
    loop = asyncio.get_running_loop()
    begin, tries = loop.time(), 1
    while True:
        last = await leader.last_of(mux, stream, message.filter)
        match judge(last, id=message.id, expected=expected, expected_id=expected_id):
            case "stored":
                assert last is not None
                return last.sequence
            case "retry":
                return None
            case "fenced":
                assert last is not None
                raise Conflict(last)
            case "regressed":
                found = last.sequence if last is not None else 0
                if loop.time() - begin > REGRESSED_AFTER_S:
                    raise TrunklineError(
                        "log_regressed",
                        f"the log ends at {found} for {message.filter}, {expected} was acknowledged: "
                        "it was cut off or restored; claim the session anew",
                        filter=message.filter,
                        acknowledged=expected,
                        found=found,
                    )
                await leader.pause(mux, tries)
                tries += 1
