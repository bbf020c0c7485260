"""What nobody has read yet is kept in order, and its writer waits above the limit."""

import asyncio

import pytest

from trunkline_agentkit import Native
from trunkline_agentkit.unread import Unread


def native(size: int, kind: str = "k") -> Native:
    return Native(raw=b"x" * size, kind=kind)


async def test_everything_comes_once_in_order_and_then_the_end() -> None:
    unread = Unread()
    for kind in ("a", "b", "c"):
        await unread.put(native(1, kind))
    unread.end()
    assert [one.kind async for one in unread.messages()] == ["a", "b", "c"]
    assert [one.kind async for one in unread.messages()] == []


async def test_a_writer_above_the_limit_waits_for_the_reader() -> None:
    unread = Unread(limit=10)
    await unread.put(native(20))
    waiting = asyncio.create_task(unread.put(native(1, "late")))
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    messages = unread.messages()
    assert (await anext(messages)).kind == "k"
    await asyncio.wait_for(waiting, 5)
    assert (await anext(messages)).kind == "late"


@pytest.mark.parametrize("waiting", [True, False])
async def test_after_release_no_writer_waits(waiting: bool) -> None:
    unread = Unread(limit=1)
    await unread.put(native(5))
    put = asyncio.create_task(unread.put(native(5)))
    if waiting:
        await asyncio.wait({put}, timeout=0.05)
    unread.release()
    await asyncio.wait_for(put, 5)
    unread.end()
    assert len([one async for one in unread.messages()]) == 2
