"""What a session cost is the same here as in its whole state."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.fold.test_golden import events

from trunkline_fold.session import fold_session, initial
from trunkline_fold.spending import Spending, fold_spending
from trunkline_testkit.logs import Log
from trunkline_wire import Data, Event
from trunkline_wire.blocks import TextBlock, Usage
from trunkline_wire.session import SessionErased, SessionInitialized, SessionUpdated
from trunkline_wire.turn import MessageAssistant, TurnCompleted, TurnStarted
from trunkline_wire.work import UsageUpdated

COSTS = st.none() | st.integers(0, 100).map(lambda cents: cents / 100)
usages = st.builds(Usage, input=st.integers(0, 50), output=st.integers(0, 50), cost_usd=COSTS)
facts: st.SearchStrategy[Data] = st.one_of(
    st.builds(MessageAssistant, content=st.just([TextBlock(text="x")]), usage=st.none() | usages),
    st.builds(TurnStarted, number=st.integers(1, 9)),
    st.builds(
        TurnCompleted, outcome=st.just("success"), usage=st.none() | usages, cost_usd=COSTS, total_cost_usd=COSTS
    ),
    st.builds(UsageUpdated, usage=st.none() | usages, total_cost_usd=COSTS),
    st.builds(SessionUpdated, native_session=st.sampled_from(["one", "two"])),
    st.builds(SessionErased, by=st.just("me")),
)


def both(some: list[Event]) -> tuple[float | None, float | None]:
    state, spending = initial(some[0].session), Spending()
    for sequence, event in enumerate(some, 1):
        state, spending = fold_session(state, event, sequence), fold_spending(spending, event)
    return state.cost_usd, spending.usd


def test_over_the_golden_log() -> None:
    whole, alone = both(events())
    assert whole is not None
    assert alone == whole


@settings(max_examples=60)
@given(st.lists(st.tuples(facts, st.sampled_from(["itm_1", "itm_2", "itm_3"])), min_size=1, max_size=25))
def test_over_any_log(chosen: list[tuple[Data, str]]) -> None:
    log = Log()
    log.created()
    for data, item in chosen:
        log.agent(data, item=item)
    whole, alone = both([event for _, _, event in log.entries])
    assert alone == whole


def test_nothing_changes_by_what_costs_nothing() -> None:
    log = Log()
    log.created()
    said = log.agent(MessageAssistant(content=[TextBlock(text="x")], usage=Usage(input=1)))
    known = Spending()
    assert fold_spending(known, said) is known
    begun = log.agent(SessionInitialized(native_session="n", capabilities=None))  # type: ignore[arg-type]  # not of interest here
    assert fold_spending(known, begun) == Spending(native_session="n")
