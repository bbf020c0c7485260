"""nats-py's client with quicker ways in and out, which were most of the cost of the log (measured; the version is pinned).

Headers are read in one pass; a frame goes to the socket in the same step where nothing waits before it; a message of a
direct subscription goes to its taker in the step in which it was read, without a queue and a task in between.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from nats.aio.client import Client as _Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport

from trunkline_bus.stored import header_lines

CONGESTED: Final = 64 * 1024
"""Bytes in the socket's own buffer above which frames wait in the client's, which is drained."""

_PLAIN: Final = b"NATS/1.0\r\n"
"""How a block of headers begins that has no status in it."""


@dataclass
class Received(Msg):
    """A message of a direct subscription. `size` counts its bytes as the server's limits do: subjects, headers, body."""

    size: int = 0


Take = Callable[[Received], None]


class Client(_Client):
    def __init__(self) -> None:
        super().__init__()
        self._takers: dict[int, Take] = {}
        self._written = False

    async def subscribe_direct(self, subject: str, take: Take) -> Subscription:
        """Hand each message of `subject` to `take`, which must be quick: nothing else is read meanwhile.

        What has arrived is bounded by what was asked for, so there is no pending limit and nothing is ever dropped.
        """
        subscription = await self.subscribe(subject, cb=_nothing)
        self._takers[subscription._id] = take  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return subscription

    def send(self, frame: bytes) -> None:
        """Send a whole frame of the client protocol, behind all that was sent before. Call it while connected.

        The first frame of a step of the loop goes to the socket at once, what follows in the same step in one write.
        Raises ConnectionError where the socket is closed already.
        """
        loop = asyncio.get_running_loop()
        writer = self._free_writer()
        if writer is None:
            self._pending.append(frame)
            self._pending_data_size += len(frame)
            if self._flush_queue is not None and self._flush_queue.empty():
                self._flush_queue.put_nowait(loop.create_future())
            return
        try:
            writer.write(frame)
        except RuntimeError as error:  # uvloop's, for a transport that is closed
            raise ConnectionResetError(str(error)) from error
        self._written = True
        loop.call_soon(self._step_ended)

    def _free_writer(self) -> asyncio.StreamWriter | None:
        """The socket's writer if nothing waits before it."""
        if self._written or self._pending or not isinstance(self._transport, TcpTransport):
            return None
        writer = self._transport._io_writer  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        free = writer is not None and writer.transport.get_write_buffer_size() <= CONGESTED
        return writer if free else None

    def _step_ended(self) -> None:
        self._written = False

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,  # noqa: ASYNC109 - the client's own signature
        old_style: bool = False,
        headers: dict[str, Any] | None = None,
    ) -> Msg:
        task = asyncio.current_task()
        cancelled = task.cancelling() if task is not None else 0
        try:
            return await super().request(subject, payload, timeout, old_style, headers)
        finally:
            # It waits with asyncio.wait_for, which in Python 3.11 loses a cancellation that comes with the answer.
            if task is not None and task.cancelling() > cancelled:
                raise asyncio.CancelledError

    async def _close(self, status: int, do_cbs: bool = True) -> None:
        try:
            await super()._close(status, do_cbs)
        except OSError:
            # The line broke under the last bytes, and the client stopped half way: its tasks would run on for ever.
            self._status = _Client.DISCONNECTED
            await super()._close(status, do_cbs)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        take = self._takers.get(sid)
        if take is None:
            await super()._process_msg(sid, subject, reply, data, headers)
            return
        self.stats["in_msgs"] += 1
        self.stats["in_bytes"] += len(data)
        if sid not in self._subs:
            return
        block = headers or b""  # None for a message without any, whatever its annotation says
        try:
            if not block:
                lines = None
            elif block.startswith(_PLAIN):
                lines = header_lines(block[len(_PLAIN) :].decode("utf-8", "replace")) or None
            else:
                lines = await self._process_headers(block)
            take(
                Received(
                    _client=self,
                    subject=subject.decode(),
                    reply=reply.decode(),
                    data=data,
                    headers=lines,
                    _sid=sid,
                    size=len(subject) + len(reply) + len(block) + len(data),
                )
            )
        except Exception as error:  # noqa: BLE001 - as the client does with those of callbacks: the rest flows on
            await self._error_cb(error)

    def _remove_sub(self, sid: int, max_msgs: int = 0) -> None:
        self._takers.pop(sid, None)
        super()._remove_sub(sid, max_msgs)

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        # Called by the client for each message with headers. A test proves that it still is.
        return header_lines(raw.decode("utf-8", "replace"))


async def _nothing(_: Any) -> None:
    """Where the client wants a callback that is never called."""
