"""Every message once, in the order of the wire, however the bytes are cut and whoever else is spoken to in between.

nats-py's part is its own parser, fed by a loop like its own from the stream that the intake stands before.
"""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.protocol.parser import AWAITING_CONTROL_LINE, Parser

from trunkline_bus.intake import Intake

MINE, OTHER = 7, 8
BLOCK = b"NATS/1.0\r\nTrunk-Id: x\r\n\r\n"


class Wire:
    """A connection's reading end. `seen` is all that came out, by either way."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self.past = 0
        """Messages that went past nats-py."""
        self.reader = asyncio.StreamReader()
        self.parser = Parser(self)
        theirs = asyncio.StreamReaderProtocol(self.reader)
        self.intake = Intake(theirs, self.idle, {MINE}, self.take)
        self.task = asyncio.ensure_future(self.loop())

    def idle(self) -> bool:
        reader: Any = self.reader
        parser = self.parser
        return (
            reader._waiter is not None
            and not reader._buffer
            and parser.state == AWAITING_CONTROL_LINE
            and not parser.buf
        )

    def take(self, sid: int, subject: bytes, reply: bytes, block: bytes, body: bytes) -> None:
        self.past += 1
        self.seen.append((sid, subject, reply, block, body))

    async def loop(self) -> None:
        while data := await self.reader.read(32768):
            await self.parser.parse(data)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, body: bytes, block: bytes | None) -> None:
        await asyncio.sleep(0)
        self.seen.append((sid, subject, reply, block or b"", body))

    async def _process_ping(self) -> None:
        self.seen.append(("ping",))


def frame(message: tuple[Any, ...]) -> bytes:
    """By the client protocol's documentation: MSG and HMSG, sizes in bytes."""
    if message == ("ping",):
        return b"PING\r\n"
    sid, subject, reply, block, body = message
    to = b"%b %d %b" % (subject, sid, reply + b" " if reply else b"")
    if block:
        return b"HMSG %b%d %d\r\n%b%b\r\n" % (to, len(block), len(block) + len(body), block, body)
    return b"MSG %b%d\r\n%b\r\n" % (to, len(body), body)


messages = st.one_of(
    st.just(("ping",)),
    st.tuples(
        st.sampled_from((MINE, MINE, OTHER)),
        st.just(b"trunk.ev.s.agent.fact"),
        st.sampled_from((b"", b"$JS.ACK.a.b.1.2.3.4.5")),
        st.sampled_from((b"", BLOCK)),
        st.one_of(st.binary(max_size=40), st.just(b"PING\r\nMSG x 7 1\r\n"), st.just(b"x" * 5000)),
    ),
)


async def through(wire: Wire, data: bytes, cuts: list[tuple[int, int]]) -> None:
    for size, steps in cuts:
        if not data:
            break
        wire.intake.data_received(data[:size])
        data = data[size:]
        for _ in range(steps):
            await asyncio.sleep(0)
    if data:
        wire.intake.data_received(data)
    wire.intake.eof_received()
    await wire.task


@given(
    st.lists(messages, max_size=12),
    st.lists(st.tuples(st.integers(1, 700), st.integers(0, 4)), max_size=60),
)
def test_any_cut_of_the_bytes_gives_the_same_messages_in_the_same_order(
    sent: list[tuple[Any, ...]], cuts: list[tuple[int, int]]
) -> None:
    async def run() -> list[tuple[Any, ...]]:
        wire = Wire()
        await asyncio.sleep(0)
        await through(wire, b"".join(map(frame, sent)), cuts)
        return wire.seen

    assert asyncio.run(run()) == sent


async def test_its_own_messages_go_past_nats_py_also_after_others_had_their_turn() -> None:
    wire = Wire()
    mine, other = (MINE, b"a", b"", BLOCK, b"1"), (OTHER, b"b", b"", b"", b"2")
    await asyncio.sleep(0)
    wire.intake.data_received(frame(mine))
    assert (wire.seen, wire.past) == ([mine], 1)
    wire.intake.data_received(frame(other) + frame(mine))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(wire.seen) == 3
    assert wire.past == 1, "behind another's message in the same bytes it is nats-py that reads"
    wire.intake.data_received(frame(mine))
    assert (wire.seen, wire.past) == ([mine, other, mine, mine], 2)
    wire.task.cancel()


@pytest.mark.parametrize("broken", [b"MSG a b c\r\n", b"MSG\r\n", b"HMSG a 7 x y\r\n", b"nonsense\r\n", b"x" * 5000])
async def test_what_it_can_t_read_is_left_to_nats_py(broken: bytes) -> None:
    wire = Wire()
    await asyncio.sleep(0)
    wire.intake.data_received(broken)
    reader: Any = wire.reader
    assert bytes(reader._buffer) == broken
    wire.task.cancel()
