"""What waits for a WebSocket, against one that takes when it is told to."""

import asyncio
from typing import Any, cast

import pytest
from aiohttp import web

from trunkline_relay import lines
from trunkline_relay.lines import MAX_WAITING, OVERHEAD, Line
from trunkline_testkit import eventually


class Socket:
    """`open` lets frames through."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.sent: list[bytes | str] = []
        self.closed = False

    async def send_str(self, frame: str) -> None:
        await self.open.wait()
        self.sent.append(frame)

    send_bytes = cast("Any", send_str)

    async def close(self) -> None:
        self.closed = True


class Transport(asyncio.Transport):
    aborted = False

    def abort(self) -> None:
        self.aborted = True


def line_of(socket: Socket) -> tuple[Line, Transport]:
    transport = Transport()
    return Line(cast("web.WebSocketResponse", socket), transport, "device"), transport


async def test_what_was_put_goes_out_in_order_and_then_it_closes() -> None:
    socket = Socket()
    socket.open.set()
    line, transport = line_of(socket)
    frames = [b"one", "two", b"three"]
    assert all(line.put(frame) for frame in frames)
    line.end()
    assert not line.put(b"late")
    await line.drive()
    assert (socket.sent, socket.closed, transport.aborted) == (frames, True, False)


@pytest.mark.parametrize("size", [0, 1000, 100_000])
async def test_one_that_takes_nothing_is_cut_once_too_much_waits(size: int) -> None:
    socket = Socket()
    line, transport = line_of(socket)
    driving = asyncio.create_task(line.drive())
    put = 0
    while line.put(bytes(size)):
        put += 1
    assert put == MAX_WAITING // (size + OVERHEAD)
    assert transport.aborted
    socket.open.set()  # an aborted connection ends what waits on it
    await driving
    assert len(socket.sent) <= 1


async def test_a_frame_that_is_not_taken_in_time_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "PATIENCE_S", 0.01)
    line, transport = line_of(Socket())
    line.put(b"x")
    await line.drive()
    assert transport.aborted


async def test_an_end_does_not_wait_long_for_what_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINGER_S", 0.01)
    line, transport = line_of(Socket())
    line.put(b"x")
    line.end()
    await line.drive()
    assert transport.aborted


async def test_what_was_taken_no_longer_counts() -> None:
    socket = Socket()
    socket.open.set()
    line, _ = line_of(socket)
    driving = asyncio.create_task(line.drive())
    for count in range(1, 10):
        assert line.put(bytes(MAX_WAITING // 2))
        await eventually(lambda count=count: len(socket.sent) == count)
    line.end()
    await driving


async def test_who_puts_much_waits_until_it_is_taken_or_the_line_ends() -> None:
    socket = Socket()
    line, _ = line_of(socket)
    driving = asyncio.create_task(line.drive())
    await line.room()
    for _ in range(4):
        line.put(bytes(MAX_WAITING // 5))
    assert line.crowded
    waiting = asyncio.create_task(line.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    socket.open.set()
    await waiting
    assert not line.crowded
    socket.open.clear()
    for _ in range(3):
        line.put(bytes(MAX_WAITING // 5))
    waiting = asyncio.create_task(line.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    line.end()
    await waiting
    socket.open.set()
    await driving
