"""Large texts are fetched part by part, and stay references where they can't be."""

import base64
import hashlib
from typing import Any

from trunkline_client.blobs import LARGEST, whole
from trunkline_wire import Event, TrunklineError, make_event
from trunkline_wire.blocks import BlobRef, TextBlock
from trunkline_wire.ids import new_session_id
from trunkline_wire.turn import MessageAssistant, MessageSystem

SAID = "é" * 5


class FakeGateway:
    """A fake of the gateway: `blob.get` in parts of three bytes, which cut characters."""

    async def call(self, method: str, *, within: float = 60.0, **params: Any) -> Any:
        del within
        assert method == "blob.get"
        if params["sha256"] != hashlib.sha256(SAID.encode()).hexdigest():
            raise TrunklineError("blob_missing", "there is none")
        start = int(params.get("after") or 0)
        end = start + 3
        data = SAID.encode()[start:end]
        return {"data": base64.b64encode(data).decode(), "next": str(end) if end < len(SAID.encode()) else None}


def message(text: str | BlobRef) -> Event:
    data = MessageAssistant(content=[TextBlock(text="before"), TextBlock(text=text)])
    return make_event(data, session=new_session_id(), time="2026-01-01T00:00:00.000000Z")


def reference(said: str, size: int | None = None) -> BlobRef:
    data = said.encode()
    return BlobRef(sha256=hashlib.sha256(data).hexdigest(), size=len(data) if size is None else size, preview="é")


async def test_a_reference_becomes_its_text() -> None:
    told = await whole(FakeGateway(), message(reference(SAID)))
    assert isinstance(told.data, MessageAssistant)
    assert told.data.content == [TextBlock(text="before"), TextBlock(text=SAID)]


async def test_what_is_missing_or_too_large_stays_a_reference() -> None:
    for one in (reference("gone"), reference(SAID, LARGEST + 1)):
        event = message(one)
        assert await whole(FakeGateway(), event) == event


async def test_other_events_are_as_they_were() -> None:
    event = make_event(MessageSystem(text="x"), session=new_session_id(), time="2026-01-01T00:00:00.000000Z")
    assert await whole(FakeGateway(), event) is event
