"""Replay equals live: whatever is in the log, and whatever happens to those who project it, no byte differs."""

import asyncio

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.chaos.replay.ground import Ground
from tests.chaos.replay.story import Step, stories

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    # A story that failed is told whole, however long: as an error this would hide how it failed.
    pytest.mark.filterwarnings("ignore:Generating overly large repr"),
]

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""A story takes seconds: to make a failing one smaller would take many minutes."""

EASY = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


async def play(story: list[Step]) -> None:
    async with Ground.open() as ground:
        await ground.play(story)
        await ground.compare()


@given(stories)
@settings(max_examples=3, deadline=None, phases=PHASES, suppress_health_check=EASY)
def test_replay_equals_live(story: list[Step]) -> None:
    asyncio.run(play(story))


@pytest.mark.long
@pytest.mark.timeout(3600)
@given(stories)
@settings(max_examples=200, deadline=None, phases=PHASES, suppress_health_check=EASY)
def test_replay_equals_live_two_hundred_times(story: list[Step]) -> None:
    asyncio.run(play(story))
