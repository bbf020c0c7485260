"""Running tasks together, and ending them."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all, in order. The first error of one cancels the others and is raised as it is: whoever waits for an
    error by its type does not see into the group that a TaskGroup makes of it.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def uncut(work: Coroutine[Any, Any, T], *, most: float | None = None) -> T:
    """What must not be left half done: whoever is cancelled meanwhile waits for its end, `most` seconds if it is limited."""
    doing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait({doing}, timeout=most)
        if not doing.done():
            doing.cancel()
            await asyncio.wait({doing})
        if not doing.cancelled():
            doing.exception()  # nobody is there to hear of it
        raise


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel `task` and wait for its end; raises what it raised, unless that was its being cancelled.

    An `await task` under `suppress(CancelledError)` also swallows a cancellation of the caller, who then works on for ever.
    """
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()
