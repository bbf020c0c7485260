"""Programs that a measurement runs beside itself: ended with it, however it ends."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from trunkline_testkit.processes import Guard

ROOT: Final = Path(__file__).parents[2]


@asynccontextmanager
async def module(
    name: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """`python -m <name>` in a group of its own, for the length of the block; killed if we are killed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", name, *arguments),
        cwd=ROOT,
        env=dict(os.environ if environment is None else environment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    guard = Guard(process.pid)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        guard.release()
