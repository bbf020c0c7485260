"""Requests on the writing connection: one inbox for all answers, and no waiting for a connection that is gone."""

import asyncio
import functools
import itertools
import re
from typing import Final

from trunkline_bus.client import Client, Received
from trunkline_wire import TrunklineError

_Asked = tuple[asyncio.Future[Received], asyncio.TimerHandle]

_SUBJECT: Final = re.compile(r"[^\s\x00-\x1f]+")


class Lost(Exception):  # noqa: N818 - an outcome, no fault
    """The connection went down before the answer came, or was down already: the outcome is unknown."""


class NoAnswer(Exception):  # noqa: N818 - likewise
    """No answer in time: the outcome is unknown."""


class Mux:
    """`ask` sends a request and waits for its answer. When the connection is lost every waiting request fails at once.

    nats-py's own `request` would wait for its full time-out, and costs a task and a timer task for each request.
    """

    def __init__(self, connection: Client) -> None:
        self._connection = connection
        self._prefix = ""
        self._tokens = itertools.count(1)
        self._waiting: dict[str, _Asked] = {}
        self._connected = asyncio.Event()
        self.losses = 0
        """How often the connection went down so far: what was sent without acknowledgement before may be gone."""

    async def open(self) -> None:
        """Subscribe to the inbox; call once, when the connection stands."""
        inbox = self._connection.new_inbox()
        self._prefix = f"{inbox}."
        await self._connection.subscribe_direct(f"{inbox}.*", self._on_answer)
        self._connected.set()

    def lost(self) -> None:
        """The connection is down: whoever waits for an answer gets Lost."""
        self.losses += 1
        self._connected.clear()
        waiting, self._waiting = self._waiting, {}
        for future, timer in waiting.values():
            timer.cancel()
            if not future.done():
                future.set_exception(Lost())
                future.exception()

    def back(self) -> None:
        """The connection stands again, or is closed for good."""
        self._connected.set()

    async def connected(self) -> None:
        """Wait until the connection stands. Raises TrunklineError `log_unavailable` where it never will again."""
        if not self._connection.is_closed:
            await self._connected.wait()
        if self._connection.is_closed:
            raise TrunklineError("log_unavailable", "the connection to NATS was closed for good: restart the process")

    def ask(
        self, subject: str, payload: bytes, headers: dict[str, str] | None = None, *, wait: float
    ) -> "asyncio.Future[Received]":
        """Send a request now; the future is its answer (one without responders is an answer too: `Status` 503).

        It raises NoAnswer after `wait` seconds, and what `send` raises.
        """
        loop = asyncio.get_running_loop()
        token = str(next(self._tokens))
        future: asyncio.Future[Received] = loop.create_future()
        try:
            self.send(subject, payload, headers, reply=self._prefix + token)
        except (Lost, TrunklineError) as error:
            future.set_exception(error)
            future.exception()  # whoever asked may be gone before it waits
        else:
            self._waiting[token] = (future, loop.call_later(wait, self._expire, token))
        return future

    def send(self, subject: str, payload: bytes, headers: dict[str, str] | None = None, *, reply: str = "") -> None:
        """Publish. Raises Lost while the connection is down; TrunklineError `too_large` for a message over the server's
        limit with its headers, `log_unavailable` where the connection is closed, `bad_id` for what is no subject.

        A message over the limit would make the server close the connection, and nats-py checks the payload alone.
        """
        connection = self._connection
        frame = _frame(subject, reply, headers, payload)
        if len(frame) > connection.max_payload:
            raise TrunklineError(
                "too_large", f"a message of {len(frame)} bytes to {subject!r} is over the server's limit"
            )
        if connection.is_closed:
            raise TrunklineError("log_unavailable", "the connection to NATS was closed for good: restart the process")
        if not connection.is_connected:
            raise Lost
        try:
            connection.send(frame)
        except ConnectionError as error:
            raise Lost from error

    def _on_answer(self, message: Received) -> None:
        asked = self._waiting.pop(message.subject[len(self._prefix) :], None)
        if asked is None:
            return  # too late
        future, timer = asked
        timer.cancel()
        if not future.done():
            future.set_result(message)

    def _expire(self, token: str) -> None:
        future, _ = self._waiting.pop(token)
        if not future.done():
            future.set_exception(NoAnswer())
            future.exception()


def _frame(subject: str, reply: str, headers: dict[str, str] | None, payload: bytes) -> bytes:
    """The client protocol's PUB or HPUB."""
    to = _encoded(subject)
    if headers is None:
        return b"PUB %b %b %d\r\n%b\r\n" % (to, reply.encode(), len(payload), payload)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
        raise TrunklineError("bad_params", f"a header for {subject!r} has a line break")
    block = f"NATS/1.0\r\n{lines}\r\n".encode()
    sizes = (len(block), len(block) + len(payload))
    return b"HPUB %b %b %d %d\r\n%b%b\r\n" % (to, reply.encode(), *sizes, block, payload)


@functools.lru_cache(maxsize=1024)
def _encoded(subject: str) -> bytes:
    if _SUBJECT.fullmatch(subject) is None:
        raise TrunklineError("bad_id", f"{subject!r} is no subject: it has a space, a control character, or nothing")
    return subject.encode()
