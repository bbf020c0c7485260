"""Wait for a condition with a deadline, so that no test sleeps and hopes."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, TypeVar, cast, overload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

INTERVAL = 0.02
"""Seconds between two looks at the condition, while it is young."""
RARELY = 0.1
PATIENCE = 40
"""Looks get rarer with the time waited, a fortieth of it and no more than `RARELY`: they must not be what a slow machine does."""


@overload
async def eventually(
    check: Callable[[], Awaitable[T | None]],
    timeout: float = ...,  # noqa: ASYNC109
    *,
    interval: float = ...,
    ignore: tuple[type[Exception], ...] = ...,
) -> T: ...
@overload
async def eventually(
    check: Callable[[], T | None],
    timeout: float = ...,  # noqa: ASYNC109
    *,
    interval: float = ...,
    ignore: tuple[type[Exception], ...] = ...,
) -> T: ...
async def eventually(
    check: Callable[[], Awaitable[object]] | Callable[[], object],
    timeout: float = 10.0,  # noqa: ASYNC109 - the deadline belongs to the message of the failure
    *,
    interval: float = INTERVAL,
    ignore: tuple[type[Exception], ...] = (),
) -> object:
    """Call `check` (plain or async) until it returns something truthy, and return that.

    `timeout` and `interval` are seconds, the latter that of the first looks. A check that fails an `assert`, or raises one of `ignore`, has just
    not come true yet; any other exception is passed on at once.

    Raises AssertionError at the deadline, naming the last value or error.
    """
    deadline = asyncio.get_running_loop().time() + timeout
    last: object = "nothing: the check never returned"
    try:
        async with asyncio.timeout_at(deadline):
            while True:
                try:
                    last = check()
                    if inspect.isawaitable(last):
                        pending = cast("Awaitable[object]", last)
                        last = "nothing: the check was still waiting"
                        last = await pending
                    if last:
                        return last
                except (AssertionError, *ignore) as error:
                    last = error
                await asyncio.sleep(_pause(interval, timeout, deadline - asyncio.get_running_loop().time()))
    except TimeoutError:
        raise AssertionError(_too_late(timeout, last)) from None


def eventually_sync(
    check: Callable[[], T | None],
    timeout: float = 10.0,
    *,
    interval: float = INTERVAL,
    ignore: tuple[type[Exception], ...] = (),
) -> T:
    """Like `eventually`, for plain tests and threads. Blocks the calling thread between two looks."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            value = check()
            if value:
                return value
            last: object = value
        except (AssertionError, *ignore) as error:
            last = error
        if time.monotonic() >= deadline:
            raise AssertionError(_too_late(timeout, last))
        time.sleep(_pause(interval, timeout, deadline - time.monotonic()))


def _pause(interval: float, timeout: float, left: float) -> float:
    return max(interval, min((timeout - left) / PATIENCE, RARELY))


def _too_late(timeout: float, last: object) -> str:
    shown = f"{type(last).__name__}: {last}" if isinstance(last, Exception) else repr(last)
    return f"not true within {timeout:g} s; the last value was {shown}"
