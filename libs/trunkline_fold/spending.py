"""What a session has cost so far, for those who need nothing else of its state: the cost of `SessionState`, by the same functions."""

import msgspec

from trunkline_fold import usage
from trunkline_fold.state import Metering, SessionState
from trunkline_wire import Event
from trunkline_wire.session import (
    SessionErased,
    SessionForked,
    SessionInitialized,
    SessionResumed,
    SessionUpdated,
)
from trunkline_wire.turn import MessageAssistant, TurnCompleted, TurnStarted
from trunkline_wire.work import UsageUpdated

FACTS = (
    SessionErased,
    SessionForked,
    SessionInitialized,
    SessionResumed,
    SessionUpdated,
    MessageAssistant,
    TurnCompleted,
    TurnStarted,
    UsageUpdated,
)
"""The payloads that may change it."""


class Spending(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`usd` is None until the agent has named a cost."""

    usd: float | None = None
    metering: Metering = Metering()
    native_session: str | None = None


def fold_spending(spending: Spending, event: Event) -> Spending:
    """The spending after `event`; the same object where it changes nothing."""
    before = SessionState(
        session=event.session,
        metering=spending.metering,
        native_session=spending.native_session,
        cost_usd=spending.usd,
    )
    after = _apply(before, spending, event)
    if after is before:
        return spending
    found = Spending(usd=after.cost_usd, metering=after.metering, native_session=after.native_session)
    return spending if found == spending else found


def _apply(state: SessionState, spending: Spending, event: Event) -> SessionState:
    match event.data:
        case MessageAssistant() as data:
            item = event.item or event.id
            known = any(counted.item == item for counted in spending.metering.counted)
            if not known and (data.usage is None or data.usage.cost_usd is None):
                return state  # of messages only those that name a cost matter
            return usage.count_message(state, item, data, lane=event.lane)
        case TurnStarted() if event.lane is None:
            return usage.begin_turn(state)
        case TurnCompleted() as data if event.lane is None:
            return usage.end_turn(state, data)
        case UsageUpdated() as data:
            return usage.update(state, data)
        case SessionResumed(how="unarchived"):
            return state
        case SessionInitialized() | SessionUpdated() | SessionResumed() | SessionForked() as data:
            native = data.native_session
            return state if native is None else msgspec.structs.replace(state, native_session=native)
        case SessionErased():
            return SessionState(session=event.session)
        case _:
            return state
