"""The index of a history: its coding, where messages start, how chunks fill."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from trunkline_bus import pages
from trunkline_bus.pages import CHUNK, Index
from trunkline_wire.blocks import Block, TextBlock
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolStarted, TurnStarted

from .making import event_of, stored

spots = st.lists(st.tuples(st.integers(1, 2**40), st.booleans()), unique_by=lambda spot: spot[0]).map(sorted)


@given(spots)
def test_a_chunk_comes_back_as_it_was(made: list[pages.Spot]) -> None:
    assert pages.decode(pages.code(made)) == made


def test_a_number_is_twice_the_distance_plus_the_mark() -> None:
    assert pages.code([(10, True), (11, False), (15, True)]) == (21, 2, 9)


@given(st.integers(0, 3 * CHUNK))
def test_adding_one_by_one_gives_the_same_chunks_as_coding_them_whole(count: int) -> None:
    made = [(3 * n + 7, n % 5 == 0) for n in range(count)]
    index = Index()
    for sequence, starts in made:
        index = pages.append(index, sequence, starts=starts, item=None)
    chunks = [made[start : start + CHUNK] for start in range(0, count, CHUNK)]
    full, rest = [chunk for chunk in chunks if len(chunk) == CHUNK], [chunk for chunk in chunks if len(chunk) < CHUNK]
    assert index.total == count
    assert index.firsts == tuple(chunk[0][0] for chunk in full)
    assert index.fresh == tuple(pages.code(chunk) for chunk in full)
    assert index.tail == (pages.code(rest[0]) if rest else ())
    assert [name for name, _ in pages.full_chunks(index)] == [str(n) for n in range(len(full))]


def test_stored_chunks_leave_the_index_and_the_names_go_on() -> None:
    index = Index()
    for n in range(CHUNK * 2):
        index = pages.append(index, n + 1, starts=False, item=None)
    stored_first = pages.without_chunks(index, ["0"])
    assert [name for name, _ in pages.full_chunks(stored_first)] == ["1"]
    back = pages.decode_index(pages.encode_index(stored_first))
    assert (back.total, back.firsts, back.fresh) == (2 * CHUNK, (1, CHUNK + 1), ())
    for n in range(CHUNK):
        back = pages.append(back, 3 * CHUNK + n, starts=False, item=None)
    assert [name for name, _ in pages.full_chunks(back)] == ["2"]
    assert msgspec.json.decode(pages.full_chunks(back)[0][1])[0] == 6 * CHUNK


def test_where_messages_start() -> None:
    """A prompt starts one; so does the first block of an answer, not its others, also with a tool between them."""
    text: list[Block] = [TextBlock(text="x")]
    history = [
        (TurnStarted(number=1), None, False),
        (MessageUser(content=[]), "itm_a", True),
        (MessageAssistant(content=[]), "itm_b", True),
        (MessageAssistant(content=text), "itm_b", False),
        (ToolStarted(name="Bash"), "itm_c", False),
        (MessageAssistant(content=[]), "itm_b", False),
        (MessageAssistant(content=[]), "itm_d", True),
        (MessageUser(content=[]), "itm_d", True),
        (MessageAssistant(content=[]), None, True),
        (MessageAssistant(content=[]), None, True),
    ]
    index = Index()
    for sequence, (data, item, _) in enumerate(history, 1):
        index = pages.index_event(index, stored(event_of(data, item=item), sequence))
    assert pages.decode(index.tail) == [(n, starts) for n, (_, _, starts) in enumerate(history, 1)]
