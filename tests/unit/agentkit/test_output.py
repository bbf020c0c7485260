"""What a program prints, as its pipe gives it."""

import asyncio
from typing import cast

import pytest

from trunkline_agentkit import output as outputs
from trunkline_agentkit.output import LIMIT, Output


class Pipe:
    """Notes whether it is read."""

    def __init__(self) -> None:
        self.reads = True

    def pause_reading(self) -> None:
        assert self.reads
        self.reads = False

    def resume_reading(self) -> None:
        assert not self.reads
        self.reads = True


async def test_pieces_come_as_they_were_fed_then_the_end() -> None:
    output = Output()
    output.feed(b"one")
    output.feed(b"two")
    output.end()
    assert [await output.read() for _ in range(4)] == [b"one", b"two", b"", b""]


async def test_who_waits_gets_what_comes() -> None:
    output = Output()
    waiting = asyncio.create_task(output.read())
    await asyncio.sleep(0)
    output.feed(b"late")
    assert await waiting == b"late"


async def test_a_full_pipe_is_left_full_until_half_is_read() -> None:
    output, pipe = Output(), Pipe()
    output.pipe = cast("asyncio.ReadTransport", pipe)
    half = b"x" * (LIMIT // 2)
    output.feed(half)
    output.feed(half)
    assert pipe.reads
    output.feed(b"x")
    assert not pipe.reads
    await output.read()
    assert not pipe.reads
    await output.read()
    assert pipe.reads


async def test_an_unread_piece_survives_the_end_of_the_program_and_of_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "AFTER_EXIT_S", 0.0)
    output = Output()
    output.feed(b"last words")
    output.exited()
    assert await output.read() == b"last words"
    assert await output.read() == b""


async def test_a_pipe_that_a_descendant_holds_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "AFTER_EXIT_S", 0.01)
    output = Output()
    waiting = asyncio.create_task(output.read())
    await asyncio.sleep(0)
    output.exited()
    async with asyncio.timeout(5):
        assert await waiting == b""


async def test_what_still_comes_from_it_is_read() -> None:
    output = Output()
    output.exited()
    waiting = asyncio.create_task(output.read())
    await asyncio.sleep(0)
    output.feed(b"of a child")
    assert await waiting == b"of a child"


async def test_a_reader_that_gives_up_loses_nothing() -> None:
    output = Output()
    waiting = asyncio.create_task(output.read())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    output.feed(b"kept")
    assert await output.read() == b"kept"
