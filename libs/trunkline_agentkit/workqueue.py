"""A durable pull consumer of a work queue, with a pull loop of its own: it recovers from whatever ends a pull.

nats-py's `fetch` stalls for its whole time-out now and then (measured). Here a pull that shows no sign of life for two
heartbeats is simply made again; what was handed out and not acknowledged comes again.
"""

import asyncio
import contextlib
import datetime as dt
import itertools
import logging
from collections.abc import AsyncIterator
from typing import Final

import msgspec
import nats.errors
from nats.aio.msg import Msg
from nats.js.errors import APIError

from trunkline_bus import jsapi, metrics
from trunkline_bus.connection import Bus
from trunkline_bus.patience import UNANSWERED

log = logging.getLogger(__name__)

_S: Final = 1_000_000_000
_BATCH: Final = 8
_EXPIRES: Final = 20
_HEARTBEAT: Final = 2
_SILENT: Final = 2.5 * _HEARTBEAT
_ACK_WAIT: Final = 5
"""Seconds after which work comes again that a worker got and then died or hung with: long before its requester gives up."""
_PAUSE: Final = 0.5
_GOING_ON: Final = frozenset({"404", "408"})


class Work:
    """A message of the queue: `time` when the server stored it, `raw` its body, `again` whether somebody had it before.

    End it with one of the three methods.
    """

    def __init__(self, bus: Bus, message: Msg) -> None:
        self._bus = bus
        self._message = message
        self.raw = message.data
        self.subject = message.subject
        self.headers: dict[str, str] | None = message.headers
        self.time = _stored(message.reply)
        self.again = _deliveries(message.reply) > 1
        if self.again:
            metrics.REDELIVERIES.labels(_stream(message.reply)).inc()

    async def done(self) -> None:
        """It is done and leaves the queue."""
        await self._answer(b"+ACK")

    async def refuse(self) -> None:
        """It can't be done, by anyone: it leaves the queue."""
        await self._answer(b"+TERM")

    async def later(self, seconds: float) -> None:
        """It could not be done now."""
        await self._answer(b"-NAK %b" % msgspec.json.encode({"delay": int(seconds * _S)}))

    async def _answer(self, word: bytes) -> None:
        # Lost, or not sent while the server is away, it costs a redelivery, which the work has to bear anyhow.
        with contextlib.suppress(nats.errors.Error):
            await self._bus.commands.publish(self._message.reply, word)


class WorkQueue:
    """The consumer `durable` of `stream`, which takes what matches `filter`. Iterate `work()`."""

    def __init__(self, bus: Bus, stream: str, durable: str, filter: str) -> None:
        self._bus = bus
        self._stream = stream
        self._durable = durable
        self._filter = filter
        self._arrived: asyncio.Queue[Msg] = asyncio.Queue()

    async def work(self) -> AsyncIterator[Work]:
        """Each message of the queue as it comes, for ever."""
        connection = self._bus.commands
        inbox = connection.new_inbox()
        subscription = await connection.subscribe(f"{inbox}.*", cb=self._arrived.put)
        made = False
        try:
            for number in itertools.count():
                if not made:
                    await self._make()
                    made = True
                try:
                    await self._pull(f"{inbox}.{number}")
                except nats.errors.Error:
                    await asyncio.sleep(_PAUSE)
                    continue
                async for message in self._until_over():
                    if message is None:
                        made = False
                    else:
                        yield Work(self._bus, message)
        finally:
            if not connection.is_closed:
                await subscription.unsubscribe()

    async def _make(self) -> None:
        """Creates the consumer, or finds it as it is; waits for a server that is away."""
        body = {
            "stream_name": self._stream,
            "config": {
                "durable_name": self._durable,
                "filter_subject": self._filter,
                "ack_policy": "explicit",
                "ack_wait": _ACK_WAIT * _S,
                "max_deliver": -1,
                "deliver_policy": "all",
            },
        }
        while True:
            try:
                await jsapi.request(
                    self._bus.js_cmd, f"CONSUMER.CREATE.{self._stream}.{self._durable}.{self._filter}", body
                )
            except (*UNANSWERED, APIError) as error:
                log.warning("queue_unavailable", extra={"queue": self._durable, "error": str(error)})
                await asyncio.sleep(_PAUSE)
            else:
                return

    async def _pull(self, reply: str) -> None:
        request = {"batch": _BATCH, "expires": _EXPIRES * _S, "idle_heartbeat": _HEARTBEAT * _S}
        await self._bus.commands.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._durable}", msgspec.json.encode(request), reply=reply
        )

    async def _until_over(self) -> AsyncIterator[Msg | None]:
        """The messages of one pull; None at its end where the consumer has to be made anew."""
        left = _BATCH
        while left:
            try:
                async with asyncio.timeout(_SILENT):
                    message = await self._arrived.get()
            except TimeoutError:
                yield None  # the server or the consumer may be gone
                return
            status = (message.headers or {}).get("Status")
            if status is None:
                left -= 1
                yield message
            elif status != "100":
                if status not in _GOING_ON:
                    await asyncio.sleep(_PAUSE)
                    yield None
                return


def _numbers(reply: str) -> list[int]:
    """From an acknowledgement's subject (ADR-15): deliveries, stream and consumer sequence, time in ns, what is pending."""
    tokens = reply.split(".")
    return [int(token) for token in (tokens[4:9] if len(tokens) < 12 else tokens[6:11])]


def _stream(reply: str) -> str:
    tokens = reply.split(".")
    return tokens[2] if len(tokens) < 12 else tokens[4]


def _deliveries(reply: str) -> int:
    return _numbers(reply)[0]


def _stored(reply: str) -> dt.datetime:
    return dt.datetime.fromtimestamp(_numbers(reply)[3] / _S, dt.UTC)
