"""A sealed connection's bounds, and its end: nothing follows what did not go out as a whole."""

import asyncio

import pytest

from trunkline_relay.sealed import MAX_UNFINISHED, MAX_UNPROVEN, OVERHEAD, GoneError, Inbox, Sealed
from trunkline_seal import BINARY, CONTROL, TEXT
from trunkline_seal.channel import PART_BYTES, Channel, Receiver, Sender
from trunkline_wire import TrunklineError

SID = bytes(16)


def ends() -> tuple[Channel, Channel]:
    """Two ends with keys that both have."""
    up, down = Sender(b"u" * 32, SID), Sender(b"d" * 32, SID)
    device = Channel(up, Receiver(b"d" * 32, down.header, SID))
    return device, Channel(down, Receiver(b"u" * 32, up.header, SID))


async def nowhere(_: bytes) -> None: ...


async def test_a_device_that_floods_is_gone_and_what_it_sent_with_it() -> None:
    inbox = Inbox()
    large = bytes(MAX_UNPROVEN - OVERHEAD)
    inbox.put(large)
    assert await inbox.get() == large
    for _ in range(2):
        inbox.put(large)
    with pytest.raises(GoneError):
        await inbox.get()
    inbox.put(b"late")
    with pytest.raises(GoneError):
        await inbox.get()


async def test_a_flood_of_empty_frames_is_one_too() -> None:
    inbox = Inbox()
    for _ in range(MAX_UNPROVEN // OVERHEAD + 1):
        inbox.put(b"")
    with pytest.raises(GoneError):
        await inbox.get()


async def test_what_came_before_the_end_is_read() -> None:
    inbox = Inbox()
    inbox.put(b"one")
    waiting = asyncio.create_task(inbox.get())
    assert await waiting == b"one"
    inbox.put(b"two")
    inbox.close()
    assert await inbox.get() == b"two"
    with pytest.raises(GoneError):
        await inbox.get()


async def test_a_message_that_has_no_end_is_refused() -> None:
    device, host = ends()
    inbox = Inbox()
    inbox.most = 2 * MAX_UNFINISHED
    sealed = Sealed(host, inbox, nowhere)
    frames = device.seal(BINARY, bytes(MAX_UNFINISHED + PART_BYTES))
    for _ in range(MAX_UNFINISHED // PART_BYTES + 1):
        inbox.put(next(frames))
    with pytest.raises(TrunklineError) as refused:
        await sealed.receive()
    assert refused.value.code == "too_large"


async def test_after_the_last_message_nothing_is_sent_or_read() -> None:
    device, host = ends()
    sent: list[bytes] = []

    async def send(frame: bytes) -> None:
        sent.append(frame)

    inbox = Inbox()
    sealed = Sealed(host, inbox, send)
    await sealed.say({"closed": {}}, last=True)
    with pytest.raises(GoneError):
        await sealed.send(TEXT, b"more")
    assert [device.open(frame) for frame in sent] == [(CONTROL, b'{"closed":{}}')]
    assert device.ended
    for frame in device.seal(CONTROL, b"{}", last=True):
        inbox.put(frame)
    assert await sealed.receive() == (CONTROL, b"{}")
    with pytest.raises(GoneError):
        await sealed.receive()


async def test_a_message_that_was_cut_off_is_the_last() -> None:
    _, host = ends()
    stuck = asyncio.Event()

    async def send(_: bytes) -> None:
        await stuck.wait()

    sealed = Sealed(host, Inbox(), send)
    sending = asyncio.create_task(sealed.send(BINARY, bytes(3 * PART_BYTES)))
    await asyncio.sleep(0)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    with pytest.raises(GoneError):
        await sealed.say({"closed": {}}, last=True)


async def test_messages_of_several_tasks_do_not_mix() -> None:
    device, host = ends()
    opened: list[tuple[int, bytes]] = []

    async def send(frame: bytes) -> None:
        await asyncio.sleep(0)
        message = device.open(frame)
        if message is not None:
            opened.append(message)

    sealed = Sealed(host, Inbox(), send)
    wholes = [bytes([number]) * (3 * PART_BYTES) for number in range(4)]
    await asyncio.gather(*(sealed.send(BINARY, whole) for whole in wholes))
    assert sorted(message for _, message in opened) == wholes


async def test_a_relay_that_takes_nothing_is_an_end() -> None:
    _, host = ends()

    async def send(_: bytes) -> None:
        raise ConnectionError

    with pytest.raises(GoneError):
        await Sealed(host, Inbox(), send).send(TEXT, b"x")
