"""`python -m tests.chaos.soak`: the long kill run, on one server and on three. Exit code 1 for any violation."""

import argparse
import asyncio
import logging
import random
import signal
import sys
from pathlib import Path
from typing import Final

from tests.chaos.soak.soak import On, Soak

SHARES: Final[dict[On, int]] = {"up": 15, "R1": 50, "R3": 35}
"""Percent of the kills."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="in all, shared out over `up`, R1 and R3")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--replicas", type=int, choices=(1, 3), help="only services on one server, or only on three")
    parser.add_argument("--up", action="store_true", help="only `trunkline up`, with its supervisor")
    parser.add_argument("--sessions", type=int, default=4, help="more need more cores, or all they show is load")
    parser.add_argument("--keep", type=Path, help="where to copy the home directory of a run with violations")
    given = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)  # that connections break is the point
    shares: dict[On, int] = {on: given.kills * percent // 100 for on, percent in SHARES.items()}
    if given.up or given.replicas:
        shares = {"up" if given.up else "R1" if given.replicas == 1 else "R3": given.kills}
    broken = False
    texts: list[str] = []
    for on, kills in shares.items():
        chosen = "--up" if on == "up" else f"--replicas {on[1]}"
        sys.stdout.write(f"{on}: {kills} kills, to be repeated by --seed {given.seed} {chosen} --kills {kills}\n")
        sys.stdout.flush()
        soak = Soak(given.seed, on, kills, sessions=given.sessions, keep=given.keep)
        try:
            asyncio.run(_run(soak))
        except (KeyboardInterrupt, asyncio.CancelledError):
            sys.stdout.write("\nended early; what was seen so far:\n")
        report = soak.report
        texts.append(report.text())
        broken = broken or bool(report.violations) or report.killed < kills
        if report.killed < kills and not report.violations:
            break
    sys.stdout.write("\n" + "\n\n".join(texts) + "\n")
    raise SystemExit(1 if broken else 0)


async def _run(soak: Soak) -> None:
    """SIGTERM ends it as Ctrl-C does: with all that it started."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await soak.run()


if __name__ == "__main__":
    main()
