import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunkline_gateway.blocks import Blocks
from trunkline_wire import Data, Event, make_event
from trunkline_wire.blocks import TextBlock
from trunkline_wire.session import SessionClaimed
from trunkline_wire.turn import (
    MessageAssistant,
    MessageDelta,
    ToolCompleted,
    ToolProgress,
    TurnCompleted,
)

SESSION = "ses_" + "1" * 32


def event(data: Data, item: str | None = "i", epoch: int = 1, **fields: Any) -> Event:
    return make_event(data, session=SESSION, time="2026-11-27T21:20:10.000000Z", item=item, epoch=epoch, **fields)


def delta(at: int, text: str, item: str = "i", block: int = 0, **fields: Any) -> Event:
    return event(MessageDelta(block=block, at=at, text=text), item, **fields)


def said(block: int | None = 0, item: str = "i", **fields: Any) -> Event:
    return event(MessageAssistant(content=[TextBlock(text="x")], block=block), item, **fields)


def texts(blocks: Blocks) -> dict[tuple[str, int], str]:
    return {(block.item, block.block): block.text for block in blocks.open()}


def test_pieces_are_joined_at_their_offsets() -> None:
    blocks = Blocks()
    for at, text in ((0, "Hel"), (3, "lo"), (5, " €🙂"), (8, "!")):
        assert blocks.delta(delta(at, text))
    assert texts(blocks) == {("i", 0): "Hello €🙂!"}
    # a piece that comes twice changes nothing
    blocks.delta(delta(3, "lo"))
    assert texts(blocks) == {("i", 0): "Hello €🙂!"}
    # the whole block so far
    blocks.delta(delta(0, "Hello €🙂! And more"))
    assert texts(blocks) == {("i", 0): "Hello €🙂! And more"}


def test_a_hole_starts_anew_and_says_where() -> None:
    blocks = Blocks()
    blocks.delta(delta(0, "abc"))
    blocks.delta(delta(10, "xyz"))
    (block,) = blocks.open()
    assert (block.at, block.text) == (10, "xyz")
    blocks.delta(delta(13, "!"))
    blocks.delta(delta(2, "c"))  # older than what is known
    assert [(b.at, b.text) for b in blocks.open()] == [(10, "xyz!")]
    blocks.delta(delta(0, "abcdefghijxyz!"))
    assert [(b.at, b.text) for b in blocks.open()] == [(0, "abcdefghijxyz!")]


def test_a_finished_block_is_gone_and_its_late_deltas_are_nobodys() -> None:
    blocks = Blocks()
    blocks.delta(delta(0, "one"))
    blocks.delta(delta(0, "two", block=1))
    blocks.fact(said(block=0))
    assert texts(blocks) == {("i", 1): "two"}
    assert not blocks.delta(delta(3, "late"))
    assert blocks.delta(delta(3, "on", block=1))
    blocks.fact(said(block=None))
    assert texts(blocks) == {}
    assert not blocks.delta(delta(5, "late", block=1))
    assert not blocks.delta(delta(0, "late", block=7))


def test_the_fact_may_come_before_the_delta() -> None:
    blocks = Blocks()
    blocks.fact(said(block=0))
    assert not blocks.delta(delta(0, "one"))
    assert texts(blocks) == {}


def test_a_turns_end_and_a_new_owner_end_all() -> None:
    for end in (event(TurnCompleted(outcome="success"), None), event(SessionClaimed(worker="w", host="h"), None, 2)):
        blocks = Blocks()
        blocks.delta(delta(0, "one"))
        blocks.delta(event(ToolProgress(output="x"), "tool"))
        blocks.fact(end)
        assert texts(blocks) == {}
        assert blocks.latest() == []
    assert not blocks.delta(delta(0, "of the former owner", item="j", epoch=1))
    assert blocks.delta(delta(0, "of the new one", item="j", epoch=2))


def test_a_subagents_turn_ends_nothing_of_the_main_one() -> None:
    blocks = Blocks()
    blocks.delta(delta(0, "one"))
    blocks.fact(event(TurnCompleted(outcome="success"), None, lane="itm_x"))
    assert texts(blocks) == {("i", 0): "one"}


def test_of_progress_the_latest_counts() -> None:
    blocks = Blocks()
    for output in ("a", "ab"):
        blocks.delta(event(ToolProgress(output=output), "tool"))
    (latest,) = blocks.latest()
    assert latest.data == ToolProgress(output="ab")
    blocks.fact(event(ToolCompleted(status="completed"), "tool"))
    assert blocks.latest() == []


def test_whole_blocks_are_deltas_from_the_start() -> None:
    blocks = Blocks()
    blocks.delta(delta(0, "one", turn="tur_1", lane="itm_2"))
    blocks.delta(delta(3, " two", turn="tur_1", lane="itm_2"))
    (whole,) = blocks.whole()
    assert whole.data == MessageDelta(block=0, at=0, text="one two")
    assert (whole.turn, whole.lane, whole.item) == ("tur_1", "itm_2", "i")


@given(st.text(min_size=1), st.lists(st.integers(0, 100)), st.data())
def test_any_cut_of_a_text_with_repetitions_joins_to_it(text: str, cuts: list[int], data: st.DataObject) -> None:
    blocks = Blocks()
    bounds = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    pieces = [(a, text[a:b]) for a, b in itertools.pairwise(bounds)]
    for number, piece in enumerate(pieces):
        blocks.delta(delta(*piece))
        if data.draw(st.booleans()):
            blocks.delta(delta(*pieces[data.draw(st.integers(0, number))]))
        if data.draw(st.booleans()):
            so_far = piece[0] + len(piece[1])
            blocks.delta(delta(0, text[:so_far]))
    assert texts(blocks) == {("i", 0): text}
