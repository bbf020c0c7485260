"""The short form of the cluster test: a minute, a few sessions; the long one is `just cluster-test`."""

import os
import random
import sys

import pytest
from tests.chaos.cluster.run import run

from trunkline_testkit.namespaces import namespaces_allowed

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not namespaces_allowed(), reason="needs root, to give each nats-server a network of its own"),
]


async def test_a_cluster_loses_nothing_whatever_is_killed_or_cut_off() -> None:
    """`CHAOS_SEED=N` repeats a plan."""
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
    result = await run(seed, 60.0, 6, pause=3.0)
    sys.stdout.write(f"{result.text()}\n")
    assert result.violations == [], result.text()
    assert sum(map(len, result.struck.values())) >= 4
    assert result.counts["gaps"] == 0
