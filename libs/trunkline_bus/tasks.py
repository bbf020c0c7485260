"""Ending tasks."""

import asyncio
from typing import Any


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel `task` and wait for its end; raises what it raised, unless that was its being cancelled.

    An `await task` under `suppress(CancelledError)` also swallows a cancellation of the caller, who then works on for ever.
    """
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()
