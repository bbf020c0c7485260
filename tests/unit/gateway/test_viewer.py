"""How much of a terminal one viewer gets: what is on its way is bounded, and what is old it never sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_gateway.viewer import ALWAYS, MOST, OLDEST_S, PAINT_EVERY_S, Flow

KB = 1024


@pytest.fixture
def sent() -> list[bytes]:
    return []


@pytest.fixture
def flow(sent: list[bytes]) -> Flow:
    return Flow(sent.append)


def test_nothing_is_shown_before_the_first_painting(flow: Flow, sent: list[bytes]) -> None:
    flow.show(b"early", 0)
    assert flow.wants_painting(1)
    assert not flow.wants_painting(1.5), "it was asked for"
    flow.paint(b"screen", 2)
    flow.show(b"live", 2)
    assert sent == [b"screen", b"live"]


def test_a_viewer_that_stands_still_gets_no_more_than_the_window(flow: Flow, sent: list[bytes]) -> None:
    flow.paint(b"", 0)
    for _ in range(100):
        flow.show(b"x" * 64 * KB, 0)
    assert sum(map(len, sent)) == MOST
    assert flow.waiting
    assert not flow.wants_painting(10), "it has not had what was sent"
    flow.ack(MOST)
    assert flow.wants_painting(10)
    flow.paint(b"screen", 10)
    flow.show(b"live", 10)
    assert sent[-2:] == [b"screen", b"live"]
    assert flow.skipped == 1


def test_a_slow_viewer_skips_what_would_come_late(flow: Flow, sent: list[bytes]) -> None:
    flow.paint(b"", 0)
    flow.show(b"x" * (ALWAYS + 1), 0)
    flow.show(b"in time", OLDEST_S)
    flow.show(b"late", OLDEST_S + 0.01)
    assert sent[-1] == b"in time"
    assert flow.waiting


def test_little_output_never_counts_as_late(flow: Flow, sent: list[bytes]) -> None:
    flow.paint(b"", 0)
    for second in range(100):
        flow.show(b"a line\r\n", second)
    assert len(sent) == 101


def test_paintings_come_at_a_pace(flow: Flow) -> None:
    flow.paint(b"screen", 1)
    flow.lose()
    assert not flow.wants_painting(1 + PAINT_EVERY_S / 2)
    assert flow.wants_painting(1 + PAINT_EVERY_S)
    assert flow.wants_painting(3), "asked again where none came"


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("show"), st.integers(0, 100 * KB)), st.tuples(st.just("ack"), st.integers(0, 10**7))
        )
    )
)
def test_what_is_on_its_way_never_exceeds_the_window(steps: list[tuple[str, int]]) -> None:
    sent: list[bytes] = []
    flow, acked, now = Flow(sent.append), 0, 0.0
    flow.paint(b"screen", now)
    for what, size in steps:
        now += 0.05
        total = sum(map(len, sent))
        if what == "show":
            flow.show(b"x" * size, now)
        else:
            flow.ack(size)
            acked = max(acked, min(size, total))
        if flow.wants_painting(now):
            flow.paint(b"screen", now)
        assert sum(map(len, sent)) - acked <= MOST + len(b"screen")
