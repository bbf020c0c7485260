"""Ports for servers that must come back on the same one.

They are taken below the ephemeral range: there no outgoing connection can occupy a port while its server is down.
"""

from __future__ import annotations

import random
import socket

FIRST, LAST = 15_000, 32_000


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on now. Another process may take it before you do: try again then."""
    chance = random.SystemRandom()
    for _ in range(200):
        port = chance.randrange(FIRST, LAST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port between {FIRST} and {LAST} on 127.0.0.1; is something listening on all of them?")
