"""Large values: what stands in an event as a reference, fetched from the gateway part by part."""

import base64
import hashlib
import logging
from collections.abc import AsyncIterator
from typing import Any, Final, Protocol

from msgspec.structs import replace

from trunkline_wire import Event, TrunklineError
from trunkline_wire.blocks import BlobRef, Block, TextBlock, ThinkingBlock
from trunkline_wire.turn import MessageAssistant

log = logging.getLogger(__name__)

LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a text that `whole` brings in. A longer one stays a reference."""


class Calls(Protocol):
    """Whatever calls the gateway's methods: a Link, a Connection."""

    async def call(self, method: str, *, within: float = 60.0, **params: Any) -> Any: ...


async def blob_parts(gateway: Calls, sha256: str) -> AsyncIterator[bytes]:
    """The bytes of a large value, in order. Raises TrunklineError `blob_missing`, at the end for what is not what was written."""
    digest, after = hashlib.sha256(), None
    while True:
        part = await gateway.call("blob.get", sha256=sha256, **({} if after is None else {"after": after}))
        data = base64.b64decode(part["data"])
        digest.update(data)
        yield data
        after = part["next"]
        if after is None:
            break
    if digest.hexdigest() != sha256:
        raise TrunklineError("blob_missing", f"the blob {sha256} is not what was written", sha256=sha256)


async def whole(gateway: Calls, event: Event) -> Event:
    """The event with what its message says in place of references to it, where it can be had."""
    if not isinstance(event.data, MessageAssistant) or not any(map(_reference, event.data.content)):
        return event
    content = [await _whole(gateway, block) for block in event.data.content]
    return replace(event, data=replace(event.data, content=content))


def _reference(block: Block) -> BlobRef | None:
    if isinstance(block, TextBlock | ThinkingBlock) and isinstance(block.text, BlobRef) and block.text.size <= LARGEST:
        return block.text
    return None


async def _whole(gateway: Calls, block: Block) -> Block:
    reference = _reference(block)
    if reference is None:
        return block
    try:
        data = b"".join([part async for part in blob_parts(gateway, reference.sha256)])
    except TrunklineError as error:
        log.warning("text_not_fetched", extra={"sha256": reference.sha256, "code": error.code})
        return block
    return replace(block, text=data.decode(errors="replace"))
