"""Server-sent events, after the examples of the HTML standard and however the bytes are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_agentkit.sse import EventSplitter


def split(*chunks: bytes) -> list[bytes]:
    splitter = EventSplitter()
    return [event for chunk in chunks for event in splitter.feed(chunk)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [b"YHOO\n+2\n10"]),
        (
            b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            [
                b"first event",
                b"second event",
                b" third event",
            ],
        ),
        (b"data\n\ndata\ndata\n\ndata:", [b"", b"\n"]),
        (b"data:test\n\ndata: test\n\n", [b"test", b"test"]),
        (b"event: only\n\n", []),
        (b"\xef\xbb\xbfdata: after a mark\n\n", [b"after a mark"]),
        (b"data: one\r\n\r\ndata: two\r\rdata: three\n\n", [b"one", b"two", b"three"]),
        (b"data: unfinished\n", []),
    ],
)
def test_examples_of_the_standard(stream: bytes, events: list[bytes]) -> None:
    assert split(stream) == events
    assert split(*(stream[index : index + 1] for index in range(len(stream)))) == events


@given(
    st.lists(st.text(alphabet=st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), max_size=6),
    st.lists(st.integers(min_value=1, max_value=9), min_size=1),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_events_are_the_same_however_the_stream_is_cut(texts: list[str], sizes: list[int], end: str) -> None:
    stream = "".join(f"data: {text}{end}{end}" for text in texts).encode()
    chunks: list[bytes] = []
    at = turn = 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        chunks.append(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert split(*chunks) == [text.encode() for text in texts]


def test_what_has_not_ended_is_counted() -> None:
    splitter = EventSplitter()
    assert splitter.feed(b"data: " + b"x" * 1000) == []
    assert splitter.pending >= 1000
    assert splitter.feed(b"\n\n") == [b"x" * 1000]
    assert splitter.pending == 0
