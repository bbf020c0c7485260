"""Streaming pieces: whatever the chunks, the clock and the losses, a reader has the text or knows that it has not."""

from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_bus import deltas
from trunkline_bus.deltas import DeltaBuffer, Piece
from trunkline_wire.turn import MessageDelta, ToolProgress


class Screen:
    """A reader of one block: its text, and whether it knows that something is missing."""

    def __init__(self) -> None:
        self.text = ""
        self.hole = False

    def apply(self, delta: MessageDelta) -> None:
        if delta.at == 0:
            self.hole = False
            self.text = delta.text if len(delta.text) >= len(self.text) else self.text
        elif delta.at > len(self.text):
            self.hole = True
        elif not self.hole:
            self.text = self.text[: delta.at] + delta.text


def drain(buffer: DeltaBuffer, now: float) -> tuple[list[Piece], float]:
    """All that is to be sent, and the time when the last of it was."""
    sent: list[Piece] = []
    while (due := buffer.due()) is not None:
        now = max(now, due)
        piece = buffer.take(now, 0)
        assert piece is not None
        sent.append(piece)
    return sent, now


def delta(piece: Piece | None) -> MessageDelta:
    assert piece is not None
    assert isinstance(piece.data, MessageDelta)
    return piece.data


chunks = st.lists(
    st.tuples(
        st.integers(0, 1),  # which block
        st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
        st.sampled_from([0.0, 0.01, 0.06, 0.7, 2.5]),  # seconds until the next
        st.sampled_from(["take", "keep", "lose", "doubt"]),  # send and deliver, wait, send and lose, lose and know it
    ),
    max_size=60,
)


@given(chunks)
def test_a_reader_has_a_prefix_or_knows_of_a_hole(steps: list[tuple[int, str, float, str]]) -> None:
    small = mock.patch.multiple(deltas, OFTEN_WHOLE=40, NEVER_WHOLE=120, PIECE=16, LIMIT_BYTES=200)
    buffer, truth, screens, now = DeltaBuffer(), ["", ""], [Screen(), Screen()], 100.0
    with small:
        for block, text, pause, action in steps:
            buffer.add("itm", block, "text", text)
            truth[block] += text
            now += pause
            if action == "keep" or (piece := buffer.take(now, 0)) is None:
                continue
            sent = delta(piece)
            assert truth[sent.block][sent.at :].startswith(sent.text)
            assert len(sent.text) <= 120
            if action == "take":
                screens[sent.block].apply(sent)
            if action == "doubt":
                buffer.doubt()
            for text_so_far, screen in zip(truth, screens, strict=True):
                assert text_so_far.startswith(screen.text)
        buffer.doubt()
        rest, _ = drain(buffer, now)
    for piece in rest:
        screens[delta(piece).block].apply(delta(piece))
    for whole, screen in zip(truth, screens, strict=True):
        assert screen.text == whole or screen.hole
        if len(whole.encode("utf-8", "surrogatepass")) <= 30:  # short enough to be repeated, however it is escaped
            assert screen.text == whole


@given(chunks)
def test_without_losses_a_reader_has_everything(steps: list[tuple[int, str, float, str]]) -> None:
    buffer, truth, screens, now = DeltaBuffer(), ["", ""], [Screen(), Screen()], 100.0
    for block, text, pause, action in steps:
        buffer.add("itm", block, "text", text)
        truth[block] += text
        now += pause
        if action != "keep" and (piece := buffer.take(now, 0)) is not None:
            screens[delta(piece).block].apply(delta(piece))
    rest, _ = drain(buffer, now)
    for piece in rest:
        screens[delta(piece).block].apply(delta(piece))
    assert [screen.text for screen in screens] == truth


def test_the_first_goes_at_once_and_then_twenty_a_second() -> None:
    buffer, sent = DeltaBuffer(), 0
    for tick in range(1000):  # a second, a piece each millisecond
        buffer.add("itm", 0, "text", "x")
        sent += buffer.take(50.0 + tick / 1000, 0) is not None
        if tick == 0:
            assert sent == 1
    assert sent == 20


def test_a_late_message_delays_none_after_it() -> None:
    """A stream of pieces as far apart as messages may be: a stall of 40 ms is made good, not carried along for ever."""
    buffer = DeltaBuffer()
    buffer.add("itm", 0, "text", "one")
    assert buffer.take(10.0, 0) is not None
    for number, sent_at in ((1, 10.09), (2, 10.101), (3, 10.151)):
        buffer.add("itm", 0, "text", f" {number}")
        assert buffer.due() == pytest.approx(10.0 + 0.05 * number)
        assert buffer.take(sent_at, 0) is not None
    buffer.add("itm", 0, "text", " after a pause")
    assert buffer.take(20.0, 0) is not None
    buffer.add("itm", 0, "text", "!")
    assert buffer.take(20.04, 0) is None


def test_pieces_are_merged_and_say_where_they_begin() -> None:
    buffer = DeltaBuffer()
    buffer.add("itm", 0, "text", "Grüße")
    assert delta(buffer.take(0.0, 7)) == MessageDelta(block=0, at=0, text="Grüße", after=7)
    buffer.add("itm", 0, "text", " 👋")
    buffer.add("itm", 0, "text", "!")
    assert buffer.take(0.01, 7) is None
    assert buffer.due() == pytest.approx(0.05)
    assert delta(buffer.take(0.05, 8)) == MessageDelta(block=0, at=5, text=" 👋!", after=8)
    assert buffer.due() is None


def test_every_two_seconds_the_piece_is_the_whole_block() -> None:
    buffer = DeltaBuffer()
    buffer.add("itm", 0, "text", "ab")
    assert buffer.take(0.0, 0)
    buffer.add("itm", 0, "text", "cd")
    assert delta(buffer.take(1.9, 0)).at == 2
    buffer.add("itm", 0, "text", "ef")
    whole = buffer.take(2.0, 0)
    assert delta(whole) == MessageDelta(block=0, at=0, text="abcdef")
    assert whole is not None
    assert whole.whole


def test_a_long_block_is_repeated_only_when_it_has_grown_by_half() -> None:
    buffer = DeltaBuffer()
    buffer.add("itm", 0, "text", "x" * 65_537)
    first, now = drain(buffer, 0.0)
    assert delta(first[0]).at == 0
    for grown, repeated in ((98_000, False), (98_400, True)):
        now += 10
        at = len("".join("x" for _ in range(65_537))) if grown == 98_000 else 98_000
        buffer.add("itm", 0, "text", "x" * (grown - at))
        piece = buffer.take(now, 0)
        assert piece is not None
        assert piece.whole is repeated
        now = drain(buffer, now)[1]


def test_of_a_very_long_block_only_the_end_is_repeated() -> None:
    buffer = DeltaBuffer()
    buffer.add("itm", 0, "text", "x" * 600_000)
    _, now = drain(buffer, 0.0)
    buffer.add("itm", 0, "text", "y")
    buffer.doubt()
    piece = delta(buffer.take(now + 10, 0))
    assert piece.at == 600_001 - deltas.PIECE
    assert piece.text == "x" * (deltas.PIECE - 1) + "y"


def test_no_message_is_too_large_however_it_is_escaped() -> None:
    buffer = DeltaBuffer()
    buffer.add("itm", 0, "text", "\x01" * 200_000)
    sent, _ = drain(buffer, 0.0)
    assert max(len(msgspec.json.encode(delta(piece))) for piece in sent) < 512 * 1024
    assert "".join(delta(piece).text for piece in sent) == "\x01" * 200_000


def test_a_finished_item_sends_nothing_more() -> None:
    buffer = DeltaBuffer()
    buffer.add("one", 0, "text", "x")
    buffer.add("two", 0, "text", "y")
    buffer.passing(ToolProgress(elapsed_s=1), item="one")
    buffer.end("one")
    sent, _ = drain(buffer, 0.0)
    assert [(piece.item, delta(piece).text) for piece in sent] == [("two", "y")]


def test_blocks_take_turns() -> None:
    buffer = DeltaBuffer()
    for _ in range(3):
        buffer.add("one", 0, "text", "x" * deltas.PIECE)
    buffer.add("two", 0, "text", "y")
    sent, _ = drain(buffer, 0.0)
    assert [piece.item for piece in sent[:2]] == ["one", "two"]


def test_of_progress_the_latest_counts() -> None:
    buffer = DeltaBuffer()
    buffer.passing(ToolProgress(elapsed_s=1), item="one", turn="t")
    buffer.passing(ToolProgress(elapsed_s=2), item="one", turn="t")
    sent, _ = drain(buffer, 0.0)
    assert [piece.data for piece in sent] == [ToolProgress(elapsed_s=2)]
    assert sent[0].turn == "t"


def test_a_lone_surrogate_does_not_stop_the_stream() -> None:
    buffer = DeltaBuffer()
    buffer.add("one", 0, "text", "a\ud83db")
    assert delta(buffer.take(0.0, 0)).text == "a?b"
