"""Messages that are too large: what goes to the blob store, and that the rest is still an event."""

import hashlib
from typing import Any

import msgspec
import pytest

from trunkline_bus.shrink import LIMIT, Shrunk, reference, shrink
from trunkline_wire import TrunklineError, decode_event, decode_json, encode, make_event
from trunkline_wire.blocks import BlobRef, ImageBlock, TextBlock, ToolResultBlock
from trunkline_wire.turn import MessageAssistant, ToolStarted, TurnStarted
from trunkline_wire.work import ErrorRaised

SESSION = "ses_" + "0" * 32


def shrunk(data: Any, **fields: Any) -> tuple[Shrunk, Any]:
    event = make_event(data, session=SESSION, time="2026-11-27T00:00:00Z", **fields)
    result = shrink(encode(event), decode_event, first=("native",))
    assert len(result.raw) <= LIMIT
    return result, decode_event(result.raw)


def test_what_fits_is_left_alone() -> None:
    raw = encode(make_event(TurnStarted(number=1), session=SESSION, time="2026-11-27T00:00:00Z"))
    assert shrink(raw, decode_event) == Shrunk(raw)


def test_the_largest_text_goes_and_the_smaller_stays() -> None:
    large, small = "ä" * 400_000, "b" * 40_000
    result, event = shrunk(MessageAssistant(content=[TextBlock(text=small), TextBlock(text=large)]))
    assert result.taken == [(large.encode(), "text/plain")]
    sha = hashlib.sha256(large.encode()).hexdigest()
    assert event.data.content[0].text == small
    assert event.data.content[1].text == BlobRef(sha256=sha, size=800_000, preview="ä" * 512)


def test_the_native_message_goes_first_and_whole() -> None:
    native = encode({"line": "x" * 600_000})
    result, event = shrunk(MessageAssistant(content=[TextBlock(text="y" * 100_000)]), native=msgspec.Raw(native))
    assert result.taken == [(native, "application/json")]
    assert decode_json(bytes(event.native))["size"] == len(native)
    assert event.data.content == [TextBlock(text="y" * 100_000)]


def test_many_small_values_go_as_one() -> None:
    content = [{"line": n, "text": "z" * 20} for n in range(20_000)]
    result, event = shrunk(MessageAssistant(content=[ToolResultBlock(tool="t", content=content)]))
    assert result.taken == [(encode(content), "application/json")]
    assert event.data.content[0].content["media_type"] == "application/json"


def test_input_of_a_tool_and_an_image_may_go() -> None:
    result, _ = shrunk(ToolStarted(name="Write", input={"path": "/x", "content": "c" * 700_000}))
    assert len(result.taken) == 1
    image = ImageBlock(media_type="image/png", data="A" * 700_000)
    _, event = shrunk(MessageAssistant(content=[image]))
    assert isinstance(event.data.content[0].data, BlobRef)


def test_a_text_that_the_schema_wants_itself_stays() -> None:
    raw = encode(make_event(ErrorRaised(code="x", message="m" * 700_000), session=SESSION, time="2026-11-27T00:00:00Z"))
    with pytest.raises(TrunklineError, match="too_large"):
        shrink(raw, decode_event)


def test_a_plain_value_shrinks_for_a_bucket() -> None:
    value = {"title": "t", "last": "x" * 5000, "list": [1, 2, 3]}
    result = shrink(encode(value), decode_json, limit=2000)
    small = decode_json(result.raw)
    assert (small["title"], small["list"]) == ("t", [1, 2, 3])
    assert result.taken == [(b"x" * 5000, "text/plain")]


def test_a_preview_ends_between_characters() -> None:
    assert reference("👋".encode() * 1000, "text/plain").preview == "👋" * 512
    assert reference(b"{}", "application/json").preview == ""
