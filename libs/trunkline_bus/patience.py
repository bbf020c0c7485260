"""Waiting out a server that restarts or chooses a leader, for requests that have to end some day."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import nats.errors
from nats.aio.client import Client
from nats.js.errors import ServiceUnavailableError

from trunkline_wire.errors import TrunklineError

T = TypeVar("T")

PATIENCE: Final = 15.0
"""Seconds over which a finite request repeats what a restart or an election left unanswered."""

UNANSWERED: Final = (
    TimeoutError,
    nats.errors.NoRespondersError,
    nats.errors.OutboundBufferLimitError,
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionDrainingError,
    ServiceUnavailableError,
)
"""What a request raises where nobody answered: the server is away, starts, or chooses a leader."""


async def patiently(connection: Client, request: Callable[[], Awaitable[T]], *, patience: float = PATIENCE) -> T:
    """`request()`, repeated while nobody answers, for `patience` seconds; then `log_unavailable`.

    Other refusals of the server are raised as they come (nats.js.errors.APIError).
    """
    deadline = time.monotonic() + patience
    pause = 0.05
    while True:
        try:
            # A request made while the connection is down would be sent later, when nobody waits for it.
            if connection.is_connected:
                return await request()
            why: Exception = nats.errors.ConnectionClosedError()
        except UNANSWERED as error:
            why = error
        if connection.is_closed or time.monotonic() > deadline:
            raise TrunklineError(
                "log_unavailable", "the NATS server does not answer; check that it runs and can be reached"
            ) from why
        await asyncio.sleep(pause)
        pause = min(pause * 2, 1.0)
