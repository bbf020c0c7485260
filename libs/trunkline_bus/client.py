"""nats-py's client with quicker ways in and out, which were most of the cost of the log (measured; the version is pinned).

A frame goes to the socket in the same step where nothing waits before it; a message of a direct subscription goes to its
taker in the step in which it arrived: no stream, parser, queue or task in between (see `intake`).
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
from nats.aio.client import Client as _Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport
from nats.protocol.parser import AWAITING_CONTROL_LINE

from trunkline_bus.intake import Intake
from trunkline_bus.stored import header_lines

CONGESTED: Final = 64 * 1024
"""Bytes in the socket's own buffer above which frames wait in the client's, which is drained."""

_STATUS_AT: Final = len("NATS/1.0")


class Received(msgspec.Struct, gc=False):
    """A message of a direct subscription. `size` counts its bytes as the server's limits do: subjects, headers, body.

    A status that the server sends in place of a message is in `headers`: `Status` and `Description`.
    """

    subject: str
    reply: str
    headers: dict[str, str] | None
    data: bytes
    size: int


Take = Callable[[Received], None]


class Client(_Client):
    def __init__(self) -> None:
        super().__init__()
        self._takers: dict[int, Take] = {}
        self._failed: set[asyncio.Future[None]] = set()
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

    @property
    def congested(self) -> bool:
        """Whether the server takes nothing at the moment: more than CONGESTED bytes wait for it."""
        if self._pending_data_size > CONGESTED:
            return True
        writer = self._transport._io_writer if isinstance(self._transport, TcpTransport) else None  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return writer is not None and writer.transport.get_write_buffer_size() > CONGESTED

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

    async def _read_loop(self) -> None:
        self._intercept()
        await super()._read_loop()

    def _intercept(self) -> None:
        """Stand between the socket and nats-py's stream; a connection over WebSocket is read by nats-py alone."""
        if not isinstance(self._transport, TcpTransport):
            return
        reader, writer = self._transport._io_reader, self._transport._io_writer  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        assert reader is not None
        assert writer is not None

        def idle() -> bool:
            """Whether nats-py's loop waits for bytes, and holds none."""
            waits = reader._waiter is not None  # noqa: SLF001 # pyright: ignore[reportAttributeAccessIssue]
            empty = not reader._buffer  # noqa: SLF001 # pyright: ignore[reportAttributeAccessIssue]
            return waits and empty and self._ps.state == AWAITING_CONTROL_LINE and not self._ps.buf

        theirs = writer.transport.get_protocol()
        assert isinstance(theirs, asyncio.StreamReaderProtocol)
        writer.transport.set_protocol(Intake(theirs, idle, self._takers, self._hand_over))

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        if sid in self._takers:
            self._hand_over(sid, subject, reply, headers or b"", data)
        else:
            await super()._process_msg(sid, subject, reply, data, headers)

    def _hand_over(self, sid: int, subject: bytes, reply: bytes, block: bytes, data: bytes) -> None:
        self.stats["in_msgs"] += 1
        self.stats["in_bytes"] += len(data)
        if sid not in self._subs:
            return
        size = len(subject) + len(reply) + len(block) + len(data)
        try:
            self._takers[sid](Received(subject.decode(), reply.decode(), _headers(block), data, size))
        except Exception as error:  # noqa: BLE001 - as the client does with those of callbacks: the rest flows on
            failed = asyncio.ensure_future(self._error_cb(error))
            self._failed.add(failed)
            failed.add_done_callback(self._failed.discard)

    def _remove_sub(self, sid: int, max_msgs: int = 0) -> None:
        self._takers.pop(sid, None)
        super()._remove_sub(sid, max_msgs)

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        # Called by the client for each message with headers. A test proves that it still is.
        return header_lines(raw.decode("utf-8", "replace"))


def _headers(block: bytes) -> dict[str, str] | None:
    first, _, lines = block.decode("utf-8", "replace").partition("\r\n")
    found = header_lines(lines)
    if status := first[_STATUS_AT:].strip():
        found["Status"], _, found["Description"] = status.partition(" ")
    return found or None


async def _nothing(_: Any) -> None:
    """Where the client wants a callback that is never called."""
