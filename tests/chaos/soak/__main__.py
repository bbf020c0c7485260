"""`python -m tests.chaos.soak`: the long kill run, on one server and on three. Exit code 1 for any violation."""

import argparse
import asyncio
import logging
import random
import sys
from pathlib import Path

from tests.chaos.soak.soak import Soak


def main() -> None:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="in all; two thirds of them on one server")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--replicas", type=int, choices=(1, 3), help="only on one server, or only on three")
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--keep", type=Path, help="where to copy the home directory of a run with violations")
    given = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)  # that connections break is the point
    shares = (
        {given.replicas: given.kills}
        if given.replicas
        else {1: given.kills * 2 // 3, 3: given.kills - given.kills * 2 // 3}
    )
    broken = False
    texts: list[str] = []
    for replicas, kills in shares.items():
        sys.stdout.write(f"R{replicas}: {kills} kills, --seed {given.seed} --replicas {replicas} --kills {kills}\n")
        soak = Soak(given.seed, replicas, kills, sessions=given.sessions, keep=given.keep)
        report = asyncio.run(soak.run())
        texts.append(report.text())
        broken = broken or bool(report.violations) or report.killed < kills
    sys.stdout.write("\n" + "\n\n".join(texts) + "\n")
    raise SystemExit(1 if broken else 0)


if __name__ == "__main__":
    main()
