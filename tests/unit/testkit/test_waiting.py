from collections.abc import Iterator

import pytest

from trunkline_testkit import eventually, eventually_sync


def counting(*values: object) -> Iterator[object]:
    yield from values


async def test_the_first_truthy_value_is_returned() -> None:
    values = counting(None, 0, "third", "fourth")
    assert await eventually(lambda: next(values), interval=0) == "third"


async def test_a_coroutine_function_is_awaited() -> None:
    values = counting(None, "second")

    async def look() -> object:
        return next(values)

    assert await eventually(look, interval=0) == "second"


async def test_the_deadline_names_the_last_value() -> None:
    with pytest.raises(AssertionError, match=r"not true within 0.05 s; the last value was \[\]"):
        await eventually(list[int], 0.05)


async def test_a_failed_assert_is_not_yet_and_is_named_at_the_deadline() -> None:
    def look() -> bool:
        raise AssertionError("three sessions, two expected")

    with pytest.raises(AssertionError, match="three sessions, two expected"):
        await eventually(look, 0.05)


async def test_a_check_that_hangs_meets_the_deadline_too() -> None:
    import asyncio

    with pytest.raises(AssertionError, match="still waiting"):
        await eventually(lambda: asyncio.Event().wait(), 0.05)


async def test_other_errors_pass_through_unless_ignored() -> None:
    def broken() -> bool:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await eventually(broken)
    with pytest.raises(AssertionError, match="KeyError"):
        await eventually(broken, 0.05, ignore=(KeyError,))


def test_plain_tests_wait_the_same_way() -> None:
    values = counting("", "second")
    assert eventually_sync(lambda: next(values), interval=0) == "second"
    with pytest.raises(AssertionError, match="the last value was False"):
        eventually_sync(lambda: False, 0.05)
