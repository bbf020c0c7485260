"""Large values: stored once, read back whole, and any size of event finds its way into the log."""

import asyncio
import os

import pytest
from tests.integration.bus_write.sessions import events, new_writer, note, unbroken

from trunkline_bus import jsapi
from trunkline_bus.blobs import Blobs
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_bus.shrink import MAX_MESSAGE
from trunkline_testkit.nats import NatsServer
from trunkline_wire import TrunklineError, decode_json, encode
from trunkline_wire.blocks import BlobRef, TextBlock, ToolResultBlock
from trunkline_wire.turn import MessageAssistant
from trunkline_wire.work import ErrorRaised, NativeMessage


@pytest.mark.parametrize("size", [0, 1, 128 * 1024, 128 * 1024 + 1, 3_000_000])
async def test_what_was_put_is_got(bus: Bus, size: int) -> None:
    data = os.urandom(size)
    blobs = Blobs(bus)
    reference = await blobs.put(data, "application/octet-stream")
    assert (reference.size, reference.media_type) == (size, "application/octet-stream")
    assert await blobs.get(reference.sha256) == data


async def test_any_nats_client_reads_it_as_an_object(bus: Bus) -> None:
    reference = await Blobs(bus).put(b"x" * 300_000, "text/plain")
    store = await bus.js.object_store("trunk_blobs")
    found = await store.get(reference.sha256)
    assert found.data == b"x" * 300_000
    assert found.info.size == 300_000


async def test_the_same_value_is_stored_once(bus: Bus) -> None:
    blobs = Blobs(bus)
    await blobs.put(b"x" * 300_000)
    before = await jsapi.stream_info(bus.js, "OBJ_trunk_blobs")
    await blobs.put(b"x" * 300_000)
    after = await jsapi.stream_info(bus.js, "OBJ_trunk_blobs")
    assert before is not None
    assert after is not None
    assert before["state"] == after["state"]


async def test_what_is_not_there_is_missing(bus: Bus) -> None:
    with pytest.raises(TrunklineError, match="blob_missing"):
        await Blobs(bus).get("0" * 64)


async def test_a_blob_that_lacks_a_part_is_missing(bus: Bus) -> None:
    blobs = Blobs(bus)
    reference = await blobs.put(b"x" * 300_000)
    assert await bus.js.delete_msg("OBJ_trunk_blobs", 2)
    with pytest.raises(TrunklineError, match="blob_missing"):
        await blobs.get(reference.sha256)


async def test_a_put_survives_the_server(bus: Bus, fresh_nats: NatsServer) -> None:
    data = os.urandom(20_000_000)
    putting = asyncio.ensure_future(Blobs(bus).put(data, "application/octet-stream"))
    await asyncio.wait([putting], timeout=0.02)
    await asyncio.to_thread(fresh_nats.restart)
    reference = await putting
    assert await Blobs(bus).get(reference.sha256) == data


async def test_an_oversize_event_becomes_a_reference_and_comes_back(bus: Bus) -> None:
    text, native = "ä" * 1_000_000, encode({"line": "n" * 2_000_000})
    writer = await new_writer(bus)
    given = writer.append(MessageAssistant(content=[TextBlock(text=text)]), native=native)
    writer.append(note("next"))
    await writer.flush()
    stored = await read_session(bus, writer.session)
    assert max(len(one.raw) for one in stored) < MAX_MESSAGE
    event = stored[1].event()
    assert (event.id, event.seq) == (given.id, 2)
    assert isinstance(event.data, MessageAssistant)
    block = event.data.content[0]
    assert isinstance(block, TextBlock)
    assert isinstance(block.text, BlobRef)
    assert (await Blobs(bus).get(block.text.sha256)).decode() == text
    assert await Blobs(bus).get(decode_json(bytes(event.native))["sha256"]) == native
    assert unbroken([one.event() for one in stored])
    await writer.close()


@pytest.mark.parametrize("size", [70_000, 300_000, 1_200_000, 16_000_000])
async def test_every_size_is_followed_by_a_small_one(bus: Bus, size: int) -> None:
    """Scenario 4: big content becomes a blob, nothing hits the server's limit."""
    writer = await new_writer(bus)
    writer.append(
        MessageAssistant(content=[ToolResultBlock(tool="t", content="r" * size)]), native=b'"' + b"n" * size + b'"'
    )
    writer.append(note("small"))
    await writer.flush()
    assert writer.error is None
    assert [event.type for event in await events(bus, writer.session)][1:] == ["message.assistant", "message.system"]
    await writer.close()


async def test_an_event_that_can_not_shrink_keeps_its_place_and_content(bus: Bus) -> None:
    writer = await new_writer(bus)
    given = writer.append(ErrorRaised(code="agent_failed", message="m" * 700_000), turn="tur_1")
    await writer.flush()
    found = (await events(bus, writer.session))[1]
    assert found.data == NativeMessage(known=False, kind="error", reason="too_large")
    assert (found.id, found.seq, found.epoch, found.turn) == (given.id, 2, 1, "tur_1")
    whole = await Blobs(bus).get(decode_json(bytes(found.native))["sha256"])
    assert decode_json(whole)["data"]["message"] == "m" * 700_000
    await writer.close()


async def test_an_event_that_fits_is_returned_itself(bus: Bus) -> None:
    writer = await new_writer(bus)
    event = writer.append(note("x"))
    assert await Blobs(bus).shrink(event) is event
    large = writer.append(note("y" * 600_000))
    shrunk = await Blobs(bus).shrink(large)
    assert isinstance(getattr(shrunk.data, "text", None), BlobRef)
    await writer.close()
