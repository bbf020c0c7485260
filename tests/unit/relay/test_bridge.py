"""The window between device and gateway: what a message costs on its way counts, whatever it says."""

import asyncio
from typing import Any, cast

import aiohttp
from tests.unit.relay.test_sealed import ends

from trunkline_relay.bridge import WINDOW, Bridge
from trunkline_relay.sealed import OVERHEAD, Inbox, Sealed
from trunkline_seal import CONTROL, TEXT
from trunkline_seal.channel import MAX_PAD, PART_BYTES, Channel
from trunkline_testkit import eventually


class Chatty:
    """A gateway that always has a word more."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.close_code = 1000

    async def receive(self) -> aiohttp.WSMessage:
        await asyncio.sleep(0)
        return aiohttp.WSMessage(aiohttp.WSMsgType.TEXT, "x", None)

    async def send_str(self, text: str) -> None:
        self.taken.append(text)


class Silent(Chatty):
    """One that says nothing."""

    async def receive(self) -> aiohttp.WSMessage:
        await asyncio.Event().wait()
        raise AssertionError


def bridged(host: Channel, gateway: Chatty) -> tuple[Bridge, Inbox, list[bytes]]:
    sent: list[bytes] = []

    async def send(frame: bytes) -> None:
        sent.append(frame)

    inbox = Inbox()
    inbox.most = 4 * WINDOW
    return Bridge(Sealed(host, inbox, send), cast("Any", gateway)), inbox, sent


async def test_many_small_messages_that_are_padded_are_no_more_on_their_way_than_large_ones() -> None:
    device, host = ends()
    for end in (device, host):
        end.pad(MAX_PAD)
    bridge, inbox, sent = bridged(host, Chatty())
    running = asyncio.create_task(bridge.run())
    try:
        # One more after the last that fits; 64 KiB and 128 bytes each.
        await eventually(lambda: len(sent) == 8)
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(sent) == 8
        assert sum(len(frame) + OVERHEAD for frame in sent) < WINDOW + MAX_PAD
        assert [device.open(frame) for frame in sent] == [(TEXT, b"x")] * 8
        # The device has taken two: two more are sent.
        for frame in device.seal(CONTROL, b'{"ack":%d}' % (2 * (PART_BYTES + 128))):
            inbox.put(frame)
        await eventually(lambda: len(sent) == 10)
    finally:
        bridge.end(1001, "over")
        await running


async def test_a_device_hears_what_its_messages_cost() -> None:
    device, host = ends()
    for end in (device, host):
        end.pad(MAX_PAD)
    gateway = Silent()
    bridge, inbox, sent = bridged(host, gateway)
    running = asyncio.create_task(bridge.run())
    try:
        for _ in range(2):
            for frame in device.seal(TEXT, b"y"):
                inbox.put(frame)
        await eventually(lambda: len(sent) == 2)
        assert gateway.taken == ["y", "y"]
        assert [device.open(frame) for frame in sent] == [(CONTROL, b'{"ack":65664}'), (CONTROL, b'{"ack":131328}')]
    finally:
        bridge.end(1001, "over")
        await running
