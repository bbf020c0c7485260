"""Every order in which an ask's rival ends may stand in the stream: the fold's end is the first, and later ones change nothing."""

import itertools
from typing import Final

import pytest

from trunkline_fold.asks import AsksState, fold_asks
from trunkline_wire import Data, make_event
from trunkline_wire.asks import AskDecided, AskDelivered, AskExpired, AskWithdrawn, PermissionRequested
from trunkline_wire.session import SessionClaimed

SESSION: Final = "ses_" + "0" * 32
ASK: Final = "ask_" + "0" * 32
TIME: Final = "2026-11-27T21:20:10.000000Z"
ENDS: Final[dict[str, tuple[Data, str]]] = {
    "ann": (AskDecided(ask=ASK, behaviour="allow", by="ann", answer="cmd_a"), "decided"),
    "bob": (AskDecided(ask=ASK, behaviour="deny", by="bob", answer="cmd_b"), "decided"),
    "expiry": (AskExpired(ask=ASK), "expired"),
    "withdrawal": (AskWithdrawn(ask=ASK, why="cancelled"), "withdrawn"),
    "claim": (SessionClaimed(worker="w2", host="h"), "lost"),
}
DELIVERY: Final = AskDelivered(ask=ASK)
ORDERS: Final = [order for size in range(1, 6) for order in itertools.permutations(ENDS, size)]


def folded(facts: list[Data]) -> AsksState:
    state = AsksState()
    for sequence, data in enumerate(facts, 1):
        state = fold_asks(state, make_event(data, session=SESSION, time=TIME), sequence)
    return state


def test_the_first_end_stands_in_each_of_all_orders() -> None:
    # 5 + 20 + 60 + 120 + 120 orders
    assert len(ORDERS) == 325
    for order in ORDERS:
        facts: list[Data] = [PermissionRequested(ask=ASK, name="Bash", incarnation="inc1")]
        facts += [ENDS[name][0] for name in order]
        record = folded(facts).asks[ASK]
        data, status = ENDS[order[0]]
        assert (record.status, record.ended_sequence) == (status, 2), order
        by = record.decision.by if record.decision is not None else None
        assert by == (data.by if isinstance(data, AskDecided) else None), order
        assert record.deliverable == (status in {"decided", "expired"}), order


@pytest.mark.parametrize("place", range(6))
def test_a_delivery_counts_once_and_only_after_a_decision(place: int) -> None:
    for order in itertools.permutations(ENDS):
        facts: list[Data] = [ENDS[name][0] for name in order]
        facts.insert(place, DELIVERY)
        record = folded([PermissionRequested(ask=ASK, name="Bash", incarnation="inc1"), *facts, DELIVERY]).asks[ASK]
        due = ENDS[order[0]][1] in {"decided", "expired"}
        assert record.delivered == due
        first = place + 2 if place > 0 else len(facts) + 2
        assert record.delivered_sequence == (first if due else None)
