"""The editor at the other end of the standard streams. Whatever else is printed goes to the error output."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator
from typing import Final

from trunkline_acp.connection import Editor

BUFFER: Final = 1024 * 1024
"""Bytes of what was read ahead, and of what waits for an editor that reads slowly."""


@contextlib.asynccontextmanager
async def standard_streams() -> AsyncGenerator[Editor]:
    """An editor that speaks over this process's standard input and output, which are its alone meanwhile."""
    loop = asyncio.get_running_loop()
    sys.stdout.flush()
    protocol_out = os.dup(1)
    os.dup2(2, 1)
    reader = asyncio.StreamReader(BUFFER, loop=loop)
    read_side, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader, loop=loop), os.fdopen(os.dup(0), "rb", buffering=0)
    )
    write_side, flow = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop), loop=loop),
        os.fdopen(protocol_out, "wb", buffering=0),
    )
    write_side.set_write_buffer_limits(high=BUFFER)
    try:
        yield Editor(reader, asyncio.StreamWriter(write_side, flow, None, loop))
    finally:
        read_side.close()
        write_side.close()
