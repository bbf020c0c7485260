"""Replay equals live: whatever the events, wherever the projector was stopped, the documents are the same bytes."""

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from trunkline_bus.cells import Cells
from trunkline_bus.stored import Stored
from trunkline_bus.views import View
from trunkline_projector.histories import PagesView
from trunkline_projector.sessions import SessionsView
from trunkline_testkit.strategies import events
from trunkline_wire import CATALOGUE
from trunkline_wire.events import DELTA_TYPES
from trunkline_wire.session import SessionErased

from .making import OTHER, SESSION, stored

FACTS = [kind for kind in CATALOGUE.values() if kind not in DELTA_TYPES and kind is not SessionErased]

histories = st.lists(
    st.one_of(
        st.sampled_from(FACTS).flatmap(lambda kind: events(kind, session=SESSION)),
        st.sampled_from(FACTS).flatmap(lambda kind: events(kind, session=OTHER)),
        events(SessionErased, session=SESSION),
    ),
    max_size=15,
).map(lambda made: [stored(event, 2 * n + 1) for n, event in enumerate(made)])


class Bucket:
    """What has been stored, by key."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}
        self.attachments: dict[tuple[str, str], bytes] = {}


def run(view: View[Any], log: list[Stored], bucket: Bucket, *, position: int, flush_at: set[int], kill_at: int) -> int:
    """Fold from `position`, store everything at the sequences `flush_at`; return where it got when it was killed."""
    cells = Cells(view)
    for one in log:
        if one.sequence > kill_at:
            break
        if one.sequence <= position:
            continue
        for key in cells.unknown([one]):
            cells.begin(key, bucket.documents.get(key))
        cells.apply(one)
        if one.sequence in flush_at:
            for key in list(cells.dirty):
                for name, value in view.attachments(cells[key].state):
                    bucket.attachments[key, name] = value
                cells.stored(key, {name for name, _ in view.attachments(cells[key].state)})
                bucket.documents[key] = cells.document(cells[key])
                cells.settle(key)
            position = one.sequence
    return position


@settings(max_examples=40, deadline=None, phases=[Phase.generate])
@given(histories, st.data())
def test_kills_and_restarts_change_no_byte(log: list[Stored], data: st.DataObject) -> None:
    end = log[-1].sequence if log else 0
    for view in (SessionsView(), PagesView()):
        live, zero = Bucket(), Bucket()
        position = 0
        for kill in sorted(data.draw(st.lists(st.integers(0, end), max_size=3))):
            flushes = (
                set(data.draw(st.lists(st.sampled_from([one.sequence for one in log]), max_size=6))) if log else set()
            )
            # Everything after the place is read again: also what is in some documents already.
            place = data.draw(st.integers(0, position))
            position = max(place, run(view, log, live, position=place, flush_at=flushes, kill_at=kill))
        run(view, log, live, position=data.draw(st.integers(0, position)), flush_at={end}, kill_at=end)
        run(view, log, zero, position=0, flush_at={end}, kill_at=end)
        assert live.documents == zero.documents
        assert live.attachments == zero.attachments


@settings(max_examples=40, deadline=None, phases=[Phase.generate])
@given(histories)
def test_erasing_the_log_below_an_erasure_changes_no_byte(log: list[Stored]) -> None:
    """After the erasure everything of the session before it is purged, and a replay never sees it."""
    erasures = [one.sequence for one in log if one.type == SessionErased.TYPE]
    purged = [one for one in log if one.session != SESSION or not erasures or one.sequence >= erasures[-1]]
    for view in (SessionsView(), PagesView()):
        before, after = Bucket(), Bucket()
        for bucket, messages in ((before, log), (after, purged)):
            if messages:
                end = messages[-1].sequence
                run(view, messages, bucket, position=0, flush_at={end}, kill_at=end)
        assert before.documents == after.documents
