"""The interleaving that breaks a naive fence.

B claims the session with the next number while A is cut off; A sends its own event of that number, then one more. Nothing of A
may be stored behind the claim, and A has to know that it is fenced: on one server and on three, with the server, or the node
that leads the log, killed before the claim, between the claim and A's event, or between A's two events.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import pytest
from tests.chaos.fence.duel import AWAY, Duel
from tests.chaos.fence.ground import Ground

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("hasty")]

STEPS: Final = ("begin", "leave", "claim", "first", "second", "end")
KILLS: Final = {"nothing dies": None, "before the claim": "claim", "after the claim": "first", "between": "second"}


async def fight(ground: Ground, duels: Sequence[Duel], kill_before: str | None) -> list[str]:
    """All duels in step; the faults of all."""
    try:
        for step in STEPS:
            if step == kill_before:
                await ground.kill()
            async with asyncio.timeout(60):
                await asyncio.gather(*(getattr(duel, step)() for duel in duels))
        return [fault for duel in duels for fault in await duel.verdict()]
    finally:
        for duel in duels:
            await duel.close()


async def test_nothing_of_a_fenced_owner_is_stored_and_it_knows(ground: Ground) -> None:
    faults: list[str] = []
    for name, kill_before in KILLS.items():
        duels = [Duel(ground, away) for away in AWAY]
        faults += [f"{name}: {fault}" for fault in await fight(ground, duels, kill_before)]
    assert not faults, "\n".join(faults)


async def test_a_naive_fence_does_not_hold(ground: Ground) -> None:
    """The test above can fail: with the number as the event's name A takes B's claim for its own event."""
    duel = Duel(ground, "cut", naive=True)
    found = await fight(ground, [duel], None)
    assert any("(1, 'a2')" in fault for fault in found), "A's second event stands behind the claim"
    assert any("A was told 'stored'" in fault for fault in found)
    assert any("of the fenced epoch 1" in fault for fault in found)
