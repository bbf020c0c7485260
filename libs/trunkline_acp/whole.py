"""Large texts of a message, fetched: an editor has no other way to them."""

import base64
import logging
from typing import Final

from msgspec.structs import replace

from trunkline_acp.way import Way
from trunkline_wire import Event, TrunklineError
from trunkline_wire.blocks import BlobRef, Block, TextBlock, ThinkingBlock
from trunkline_wire.turn import MessageAssistant

log = logging.getLogger(__name__)

LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a text that are handed to an editor. Of a longer one it gets the beginning, which says so."""


async def whole(way: Way, event: Event) -> Event:
    """The event with what its message says in place of references to it."""
    if not isinstance(event.data, MessageAssistant) or not any(map(_reference, event.data.content)):
        return event
    content = [await _whole(way, block) for block in event.data.content]
    return replace(event, data=replace(event.data, content=content))


def _reference(block: Block) -> BlobRef | None:
    if isinstance(block, TextBlock | ThinkingBlock) and isinstance(block.text, BlobRef) and block.text.size <= LARGEST:
        return block.text
    return None


async def _whole(way: Way, block: Block) -> Block:
    reference = _reference(block)
    if reference is None:
        return block
    parts: list[bytes] = []
    try:
        part = await way.call("blob.get", sha256=reference.sha256)
        parts.append(base64.b64decode(part["data"]))
        while part["next"] is not None:
            part = await way.call("blob.get", sha256=reference.sha256, after=part["next"])
            parts.append(base64.b64decode(part["data"]))
    except TrunklineError as error:
        log.warning("text_not_fetched", extra={"sha256": reference.sha256, "code": error.code})
        return block
    return replace(block, text=b"".join(parts).decode(errors="replace"))
