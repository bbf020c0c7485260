"""The short form of the soak, for every change: the long one is `just chaos`."""

import os
import random
import sys

import pytest
from tests.chaos.soak.soak import On, Soak

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize(("on", "kills"), [("up", 2), ("R1", 3), ("R3", 2)])
async def test_nothing_is_lost_doubled_or_stuck_whatever_is_killed(on: On, kills: int) -> None:
    """`CHAOS_SEED=N` repeats a plan."""
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
    sys.stdout.write(f"CHAOS_SEED={seed}\n")
    # Another test runs beside it: the limits of recovery are held by the long form, alone on its machine.
    report = await Soak(seed, on, kills, sessions=2, patience=2.0).run()
    assert report.violations == [], report.text()
    assert report.killed == kills
    assert report.counts["gaps"] == 0
