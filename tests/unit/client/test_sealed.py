"""A sealed WebSocket's window: what a message costs on its way counts, at either end."""

import asyncio
from typing import Any, cast

import aiohttp
import pytest

from trunkline_client.paired import Sealed
from trunkline_client.sealed import WINDOW, SealedSocket
from trunkline_seal.channel import MAX_PAD, TEXT, cost
from trunkline_testkit import eventually


class Padded:
    """A wire on which every message is filled up to MAX_PAD."""

    ended = False

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.said: list[Any] = []
        self.coming: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()

    def cost(self, message: bytes) -> int:
        return cost(len(message), MAX_PAD)

    async def send(self, _: int, message: bytes) -> None:
        self.sent.append(message)

    async def say(self, value: Any, *, last: bool = False) -> None:
        self.said.append((value, last))

    async def receive(self) -> tuple[int, bytes]:
        return await self.coming.get()

    async def close(self) -> None: ...


def socket(wire: Padded) -> SealedSocket:
    return SealedSocket(cast("Any", wire), cast("Sealed", None))


async def test_no_more_small_messages_are_sent_than_the_window_takes() -> None:
    wire = Padded()
    ws = socket(wire)

    async def chatter() -> None:
        while True:
            await ws.send_str("x")

    chatting = asyncio.create_task(chatter())
    await eventually(lambda: len(wire.sent) == 8)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(wire.sent) == 8
    wire.coming.put_nowait((2, b'{"ack":%d}' % (3 * 65664)))
    await eventually(lambda: len(wire.sent) == 11)
    chatting.cancel()
    await ws.close()


async def test_what_was_taken_is_told_as_it_costs() -> None:
    wire = Padded()
    ws = socket(wire)
    for _ in range(2):
        wire.coming.put_nowait((TEXT, b"x"))
        assert (await ws.receive()).data == "x"
        await eventually(lambda: wire.said)
    await eventually(lambda: len(wire.said) == 2)
    assert [value for value, _ in wire.said] == [{"ack": 65664}, {"ack": 131328}]
    await ws.close()


async def test_a_host_that_sends_more_than_its_window_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_client.sealed.MOST_WAITING", WINDOW)
    wire = Padded()
    ws = socket(wire)
    for _ in range(8):
        wire.coming.put_nowait((TEXT, b"x"))
    messages = [await ws.receive(timeout=5) for _ in range(8)]
    assert [one.type for one in messages] == [aiohttp.WSMsgType.TEXT] * 7 + [aiohttp.WSMsgType.CLOSE]
    assert messages[-1].data == 1006
    assert messages[-1].extra == "too_large: the host sends more than was acknowledged"
    await ws.close()
