"""Tasks together: all results, or the first error as it is."""

import asyncio

import pytest

from trunkline_bus.tasks import together, uncut
from trunkline_wire import TrunklineError


async def test_results_come_in_order() -> None:
    async def later(number: int) -> int:
        await asyncio.sleep(0)
        return number

    assert await together(later(number) for number in range(3)) == [0, 1, 2]


async def test_an_error_is_raised_as_it_is_and_ends_the_others() -> None:
    """A projection that waits for the log knows `log_unavailable` by its type and code: a group of it would end the service."""
    cancelled = asyncio.Event()

    async def fail() -> None:
        raise TrunklineError("log_unavailable", "nobody answers")

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(TrunklineError, match="nobody answers"):
        await together([wait(), fail()])
    assert cancelled.is_set()


async def test_who_is_cancelled_waits_for_the_end() -> None:
    going, done = asyncio.Event(), list[str]()

    async def work() -> None:
        await going.wait()
        done.append("all of it")

    waiting = asyncio.create_task(uncut(work()))
    await asyncio.sleep(0)
    waiting.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    going.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert done == ["all of it"]


async def test_it_waits_no_longer_than_it_may() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.create_task(uncut(work(), most=0.01))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()


async def test_what_comes_of_it_is_told() -> None:
    async def work(fails: bool) -> int:
        if fails:
            raise LookupError
        return 7

    assert await uncut(work(False)) == 7
    with pytest.raises(LookupError):
        await uncut(work(True))
