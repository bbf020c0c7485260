"""Every message of an owner's life is a moment at which its server dies, its line is reset, or another owner claims.

Counted in an undisturbed run, then reached in another, with the message lost, stored without an answer, or answered. A sample of
the points is taken by default, all of them with `-m long`.
"""

import asyncio
import random
from contextlib import AsyncExitStack
from typing import Final, Literal

import pytest
from tests.chaos.fence.ground import Ground, Line, faults, note, texts
from tests.chaos.fence.life import Life, strike, undisturbed

from trunkline_testkit.chaos.points import Point
from trunkline_wire import TrunklineError
from trunkline_wire.session import SessionClosed

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("hasty")]

Act = Literal["kill", "reset", "claim"]
ACTS: Final[tuple[Act, ...]] = ("kill", "reset", "claim")
SAMPLE: Final = 10
AT_A_TIME: Final = 14

WRITTEN: Final = [*((1, f"a{n}") for n in range(6)), (2, "a6")]
BETWEEN: Final = "after message.system #6"
"""The owner has let go, and claims the session anew later."""
UNAWARE: Final = {BETWEEN, "after session.closed #1"}
"""Where another's claim hinders nothing that the owner still has to do."""
MESSAGES: Final = 13
"""Created, six facts, an ask, two deltas, claimed, a fact, closed."""


async def attack(ground: Ground, act: Act, points: list[Point]) -> list[str]:
    """A life for each point, all at once; what went wrong."""
    async with AsyncExitStack() as stack:
        lives: list[tuple[Point, Line, Life]] = []
        for point in points:
            line, bus = await stack.enter_async_context(ground.owner())
            life = Life(bus)
            strike(line, point, life, line.reset if act == "reset" else line.cut)
            lives.append((point, line, life))
        async with asyncio.timeout(100), asyncio.TaskGroup() as group:
            for _, _, life in lives:
                group.create_task(life.run())
            for _, _, life in lives:
                await life.struck.wait()
            claimed = {life.session for _, _, life in lives if act == "claim" and await _claims(ground, life)}
            if act == "kill":
                await ground.kill()
            for _, line, _ in lives:
                line.heal()
        found: list[str] = []
        for point, _, life in lives:
            wrong = await _verdict(ground, life, str(point), heir=life.session in claimed)
            found += [f"{act} {point}: {fault}" for fault in wrong]
        return found


async def _claims(ground: Ground, life: Life) -> bool:
    """Another owner claims the session and writes; False where there is no session yet."""
    try:
        heir = await ground.claim(life.session)
    except TrunklineError as error:
        if error.code == "unknown_session":
            return False
        raise
    heir.append(note("heir"))
    await heir.flush()
    await heir.close()
    return True


async def _verdict(ground: Ground, life: Life, at: str, *, heir: bool) -> list[str]:
    stored = await ground.stored(life.session)
    ids = [one.id for one in stored]
    found = faults(stored)
    if [id for id in ids if id in life.acked] != life.acked:
        found.append("not all that was acknowledged is stored, in order")
    written = texts(stored)
    if not heir:
        if life.outcome != "done":
            found.append(f"its owner was told {life.outcome!r}")
        if written != WRITTEN or stored[-1].type != SessionClosed.TYPE:
            found.append(f"the log holds {written} and ends with {stored[-1].type}")
        return found
    if life.outcome != ("done" if at in UNAWARE else "fenced"):
        found.append(f"the owner that was taken over was told {life.outcome!r}")
    before = next(n for n, (_, text) in enumerate(written) if text == "heir")
    if written != [*WRITTEN[:before], written[before], *([(3, "a6")] if at == BETWEEN else [])]:
        found.append(f"the log holds {written}")
    return found


@pytest.mark.parametrize("seed", [7])
async def test_an_owner_attacked_at_some_of_its_points(ground: Ground, seed: int) -> None:
    points = await undisturbed(ground)
    assert len({point.mark for point in points}) == MESSAGES
    chance = random.Random(seed)
    found: list[str] = []
    for act in ACTS:
        found += await attack(ground, act, chance.sample(points, SAMPLE))
    assert not found, "\n".join(found)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("act", ACTS)
async def test_an_owner_attacked_at_every_point(ground: Ground, act: Act) -> None:
    points = await undisturbed(ground)
    found: list[str] = []
    for begin in range(0, len(points), AT_A_TIME):
        found += await attack(ground, act, points[begin : begin + AT_A_TIME])
    assert not found, "\n".join(found)
