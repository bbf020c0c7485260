"""Properties of the session's fold over events of every type, sensible or not."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline_fold.session import SessionState, decode_state, encode_state, fold_session, initial
from trunkline_testkit import strategies
from trunkline_testkit.logs import SESSION
from trunkline_wire import CATALOGUE, NO_NATIVE, Event
from trunkline_wire.session import Capabilities, SessionOptions

NAMES = st.sampled_from(["a", "b", "c"])
OVERRIDES: strategies.Overrides = {
    "ask": NAMES,
    "task": NAMES,
    "command": NAMES,
    "native_session": st.none() | NAMES,
    "incarnation": st.none() | NAMES,
    # deep, and folded as a whole
    "options": st.builds(SessionOptions, model=st.none() | NAMES),
    "capabilities": st.builds(Capabilities, interrupt=st.booleans()),
}
ENVELOPE: strategies.Overrides = {
    "item": st.none() | NAMES,
    "turn": st.none() | NAMES,
    "lane": st.none() | st.just("lane"),
    "native": st.just(NO_NATIVE),
    "source": st.none(),
    "agent": st.none(),
}
ASKS: strategies.Overrides = {**OVERRIDES, "incarnation": NAMES}  # an ask's incarnation is never absent
EVENTS = {
    name: strategies.events(
        kind,
        session=SESSION,
        overrides=ASKS if name in ("permission.requested", "question.asked", "plan.proposed") else OVERRIDES,
        envelope=ENVELOPE,
    )
    for name, kind in CATALOGUE.items()
}
logs: st.SearchStrategy[list[Event]] = st.lists(
    st.sampled_from(sorted(CATALOGUE)).flatmap(EVENTS.__getitem__), max_size=10
)


def folded(events: list[Event], *, state: SessionState | None = None, after: int = 0) -> SessionState:
    state = state or initial(SESSION)
    for sequence, event in enumerate(events, after + 1):
        state = fold_session(state, event, sequence)
    return state


@given(logs, st.data())
@settings(max_examples=150)
def test_a_stored_prefix_then_the_rest_with_redelivery_equals_all_at_once(
    events: list[Event], data: st.DataObject
) -> None:
    whole = folded(events)
    cut = data.draw(st.integers(0, len(events)))
    stored = decode_state(encode_state(folded(events[:cut])))
    back = data.draw(st.integers(0, cut))
    resumed = folded(events[back:], state=stored, after=back)
    assert encode_state(resumed) == encode_state(whole)
    assert resumed == whole


@given(logs)
@settings(max_examples=60)
def test_folding_changes_no_earlier_state(events: list[Event]) -> None:
    state = initial(SESSION)
    for sequence, event in enumerate(events, 1):
        before = encode_state(state)
        after = fold_session(state, event, sequence)
        assert encode_state(state) == before
        state = after
    assert state.sequence == len(events)


@given(logs)
@settings(max_examples=60)
def test_a_state_knows_why_it_waits_and_runs(events: list[Event]) -> None:
    state = folded(events)
    if state.status == "waiting":
        assert state.open_asks
    if state.status == "running":
        assert state.turn is not None or state.pending
    if state.status == "idle":
        assert (state.turn, state.pending, state.open_asks) == (None, [], [])
    if state.retry is not None:
        assert state.condition == "retrying"
    assert msgspec.json.decode(encode_state(state))["status"] == state.status
