"""Tasks together: all results, or the first error as it is."""

import asyncio

import pytest

from trunkline_bus.tasks import together
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
