"""`python -m tests.chaos.cluster`: everything on a cluster is hit for minutes. Exit code 1 for any violation."""

import argparse
import asyncio
import logging
import random
import sys
from pathlib import Path

from tests.chaos.cluster.run import run

from trunkline_testkit.namespaces import namespaces_allowed


def main() -> None:
    parser = argparse.ArgumentParser(prog="cluster-test", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--pause", type=float, default=20.0, help="seconds between two prompts of a session, at most")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--keep", type=Path, help="where to copy the home directories of a run with violations")
    given = parser.parse_args()
    if not namespaces_allowed():
        sys.exit("this needs root and `ip`: each nats-server gets a network namespace, so that it can be cut off")
    logging.basicConfig(level=logging.CRITICAL)  # that connections break is the point
    result = asyncio.run(run(given.seed, given.minutes * 60, given.sessions, pause=given.pause, keep=given.keep))
    for violation in result.violations:
        sys.stdout.write(f"{violation}\n")
    sys.stdout.write(f"\n{result.text()}\n")
    sys.exit(1 if result.violations else 0)


if __name__ == "__main__":
    main()
