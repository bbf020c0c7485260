"""Replicas of the permission service as real processes, quickly: one that has imported it forks another for each line it reads.

Says `started <pid>` and `ready <pid>`, each on a line. Arguments: the server's URL and the home directory.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from trunkline_bus.connection import Bus, BusSettings
from trunkline_permissions.app import permissions
from trunkline_permissions.settings import PermissionsSettings


async def serve(url: str, home: Path) -> None:
    settings = PermissionsSettings(home=home, poll_s=1.0)
    async with Bus.open(BusSettings(url=url)) as bus, permissions(bus, settings) as (decider, _):
        await decider.ready.wait()
        say("ready", os.getpid())
        await asyncio.Event().wait()


def say(word: str, pid: int) -> None:
    os.write(1, f"{word} {pid}\n".encode())


def main(url: str, home: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            asyncio.run(serve(url, Path(home)))
            os._exit(0)
        say("started", pid)


if __name__ == "__main__":
    main(*sys.argv[1:])
