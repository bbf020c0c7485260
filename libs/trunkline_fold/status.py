"""A session's status: what is reported (conditions) and what is folded (running, waiting, idle, closed, archived).

A reported condition ends when the thing it describes ends, whether or not anyone says so: no session is `retrying`,
`stalled` or `running` for ever because one message is missing.
"""

from msgspec.structs import replace

from trunkline_fold.state import Retry, SessionState, Status
from trunkline_wire import Event
from trunkline_wire.asks import PermissionRequested, PlanProposed, QuestionAsked
from trunkline_wire.session import SessionCompacted, SessionInitialized, SessionStatus
from trunkline_wire.turn import MessageAssistant, ToolCompleted, ToolStarted, ToolSummary, TurnCompleted, TurnStarted
from trunkline_wire.work import DiffUpdated, FileChanged, PlanUpdated

_PROGRESS = (
    TurnStarted,
    TurnCompleted,
    MessageAssistant,
    ToolStarted,
    ToolCompleted,
    ToolSummary,
    PlanUpdated,
    DiffUpdated,
    FileChanged,
    PermissionRequested,
    QuestionAsked,
    PlanProposed,
    SessionCompacted,
    SessionInitialized,
)
"""Facts after which an agent is neither starting, authenticating, compacting, retrying nor stalled."""


def report(state: SessionState, event: Event, data: SessionStatus) -> SessionState:
    """Folds a reported condition; `None` ends whatever is reported, but not an interruption, which ends with its turn."""
    status = data.status
    if state.condition == "interrupting" and status not in ("stopped", "starting", "interrupting"):
        return state
    if status is None:
        return end_condition(state)
    if status == "interrupting" and state.turn is None:
        return state  # nothing runs that could end it
    since = state.condition_since if state.condition == status else (data.since or event.time)
    retry = (
        Retry(
            attempt=data.attempt,
            max_attempts=data.max_attempts,
            after_ms=data.after_ms,
            reason=data.reason,
            time=event.time,
        )
        if status == "retrying"
        else None
    )
    return replace(state, condition=status, condition_since=since, condition_reason=data.reason, retry=retry)


def end_condition(state: SessionState) -> SessionState:
    if state.condition is None:
        return state
    return replace(state, condition=None, condition_since=None, condition_reason=None, retry=None)


def end_by_progress(state: SessionState, event: Event) -> SessionState:
    """Ends the condition that the event shows to be over."""
    if state.condition is None or not isinstance(event.data, _PROGRESS):
        return state
    if state.condition == "interrupting":
        return end_condition(state) if isinstance(event.data, TurnCompleted) and event.lane is None else state
    if state.condition == "stopped":
        return end_condition(state) if isinstance(event.data, TurnStarted | SessionInitialized) else state
    return end_condition(state)


def settle(state: SessionState, time: str) -> tuple[Status, str]:
    """`status` and `status_since` as they follow from the rest of the state, after an event of `time`."""
    status = derive(state)
    if status == state.status and state.status_since is not None:
        return status, state.status_since
    since = state.condition_since if status == state.condition else time
    return status, since or time


def derive(state: SessionState) -> Status:
    if state.archived:
        return "archived"
    if state.closed is not None or state.erased is not None:
        return "closed"
    if state.condition in ("stopped", "interrupting"):
        return state.condition
    if state.open_asks:
        return "waiting"
    if state.condition is not None:
        return state.condition
    if state.turn is not None or state.pending:
        return "running"
    return "idle"
