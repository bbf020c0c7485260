"""The relay's service of this machine, asked at `<home>/relay.sock`: a line of JSON each."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from trunkline_client.connection import error_of
from trunkline_wire import TrunklineError, decode_json, encode

NO_RELAY: Final = (
    "the relay's service does not run in {home!r}: put a table [relay] into {toml!r} "
    '(kind = "embedded", url = "https://…"), then start Trunkline again'
)


@asynccontextmanager
async def door(home: Path) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Raises TrunklineError `not_running`."""
    try:
        reader, writer = await asyncio.open_unix_connection(home / "relay.sock")
    except OSError:
        text = NO_RELAY.format(home=str(home), toml=str(home / "trunkline.toml"))
        raise TrunklineError("not_running", text) from None
    try:
        yield reader, writer
    finally:
        writer.close()


def say(writer: asyncio.StreamWriter, value: dict[str, Any]) -> None:
    writer.write(encode(value) + b"\n")


async def answer(reader: asyncio.StreamReader) -> dict[str, Any]:
    """The next line. Raises TrunklineError for one that is an error."""
    line = await reader.readline()
    if not line:
        raise TrunklineError("not_running", "the relay's service has ended meanwhile")
    said: dict[str, Any] = decode_json(line)
    if said["type"] == "failed":
        raise error_of(said)
    return said
