"""Turns: their ends, errors, plans and diffs, and the tokens they use."""

import re
from typing import Final

import msgspec

from trunkline_adapters.codex.errors import error_info, outcome_of
from trunkline_adapters.codex.modes import PLAN
from trunkline_adapters.codex.state import Ask, State, Turn, fact
from trunkline_adapters.codex.translate_asks import PLAN_OPTIONS, withdraw
from trunkline_adapters.codex.translate_begin import begin, recover
from trunkline_adapters.codex.translate_items import break_off, close_open
from trunkline_adapters.codex.usage import added, counts, plus, usage_of
from trunkline_agentkit.fields import Obj, obj, objects, text, truth, whole
from trunkline_agentkit.protocol import Out
from trunkline_wire import decode_json
from trunkline_wire.asks import PlanProposed
from trunkline_wire.session import SessionStatus
from trunkline_wire.turn import Outcome, TurnCompleted
from trunkline_wire.work import DiffUpdated, ErrorRaised, PlanEntry, PlanUpdated, TaskUpdated, UsageUpdated

_ATTEMPT: Final = re.compile(r"(\d+)/(\d+)")
_TASKS: Final = {"completed": "completed", "failed": "failed", "interrupted": "stopped"}


def started(state: State, params: Obj, lane: str | None) -> list[Out]:
    if lane is None:
        return begin(state, params)
    state.running.add(text(params, "threadId") or "")
    data = TaskUpdated(task=text(params, "threadId") or "", kind="subagent", status="running", tool=lane)
    return [fact(data, item=lane)]


def completed(state: State, params: Obj, lane: str | None) -> list[Out]:
    """`turn/completed`: everything of the turn that is still open gets its end, too."""
    turn = obj(params, "turn")
    status = text(turn, "status") or ""
    thread = text(params, "threadId") or state.thread or ""
    interrupted = status == "interrupted"
    if lane is not None:
        out = close_open(state, thread, interrupted=interrupted) + withdraw(state, thread, interrupted=interrupted)
        state.running.discard(thread)
        known = _TASKS.get(status)
        ended = known if known in ("completed", "failed", "stopped") else None
        data = TaskUpdated(task=thread, status=ended, summary=text(obj(turn, "error"), "message"), tool=lane)
        return [*out, fact(data, item=lane)]
    if state.lost:
        state.held = params
        return []
    out = begin(state, params)
    current = state.turn
    if current is None:
        return out
    out += close_open(state, thread, interrupted=interrupted) + recover(state)
    out += withdraw(state, thread, interrupted=interrupted or current.interrupted)
    for id in (*current.ids, text(turn, "id") or ""):
        state.done.add(id)
    if status == "completed":
        out += _plan(state, current)
    state.turn = None
    return [*out, fact(_ended(current, turn))]


def _ended(current: Turn, turn: Obj) -> TurnCompleted:
    outcome: Outcome
    error = obj(turn, "error")
    match text(turn, "status"):
        case "interrupted":
            outcome = "interrupted"
        case "failed":
            outcome = outcome_of(error)
        case _:
            outcome = "success"
    return TurnCompleted(
        outcome=outcome,
        trigger=current.trigger,
        error=(error_info(error) if error else current.error) if outcome != "success" else None,
        structured_output=_structured(current) if outcome == "success" else None,
        usage=usage_of(current.used) if current.used else None,
        duration_ms=whole(turn, "durationMs"),
        result=current.said,
        lines_added=current.lines_added,
        lines_removed=current.lines_removed,
    )


def _structured(current: Turn) -> object:
    """The last message as JSON, where the turn was to end with an output of a schema."""
    if not current.schema or current.said is None:
        return None
    try:
        return decode_json(current.said.encode())
    except (msgspec.DecodeError, UnicodeError):
        return None


def _plan(state: State, current: Turn) -> list[Out]:
    """Codex waits for no answer to a plan; what is decided becomes the next turn."""
    if current.plan is None or state.known.mode != PLAN:
        return []
    native, plan = current.plan
    key = f"plan:{native}"
    ask = Ask(
        ask=state.ask(key),
        key=key,
        request_id=None,
        kind="plan",
        params={},
        thread=state.thread or "",
        tool=state.item(native),
    )
    state.asks[key] = ask
    data = PlanProposed(ask=ask.ask, incarnation=state.context.incarnation, plan=plan, options=PLAN_OPTIONS)
    return [fact(data, item=ask.tool)]


def failed(state: State, params: Obj, lane: str | None) -> list[Out]:
    """`error`: an attempt that is repeated, or the reason for the turn's end, which follows."""
    error = obj(params, "error")
    if lane is not None:
        return []
    if truth(params, "willRetry"):
        state.condition = "retrying"
        said = text(error, "message") or ""
        counted = _ATTEMPT.search(said)
        data = SessionStatus(
            status="retrying",
            attempt=int(counted[1]) if counted else None,
            max_attempts=int(counted[2]) if counted else None,
            reason=text(error, "additionalDetails") or said or None,
        )
        return [*begin(state, params), *break_off(state, state.thread or ""), fact(data)]
    info = error_info(error)
    if state.turn is not None:
        state.turn.error = info
        return recover(state)
    return [fact(ErrorRaised(code=info.code, message=info.message, details=info.details))]


def plan_updated(state: State, params: Obj, lane: str | None) -> list[Out]:
    entries: list[PlanEntry] = []
    for step in objects(params, "plan"):
        status = text(step, "status")
        known = "in_progress" if status == "inProgress" else "completed" if status == "completed" else "pending"
        entries.append(PlanEntry(content=text(step, "step") or "", status=known))
    return [*begin(state, params), fact(PlanUpdated(entries=entries), lane=lane)]


def diff_updated(state: State, params: Obj, lane: str | None) -> list[Out]:
    diff = text(params, "diff")
    if diff is None or state.turn is None or (lane is None and diff == state.turn.diff):
        return []
    if lane is None:
        state.turn.diff = diff
    return [fact(DiffUpdated(diff=diff), lane=lane)]


def tokens_used(state: State, params: Obj) -> list[Out]:
    """`thread/tokenUsage/updated`, of the session's thread or of a sub-agent's."""
    thread = text(params, "threadId") or ""
    usage = obj(params, "tokenUsage")
    total, last = counts(obj(usage, "total")), counts(obj(usage, "last"))
    before = state.totals.get(thread)
    if state.turn is not None:
        # What was used before this connection is no part of the turn; a sub-agent's thread is whole in it.
        fresh = thread != state.thread or text(params, "turnId") in state.turn.ids
        share = added(total, before) if before is not None else last if fresh else {}
        state.turn.used = plus(state.turn.used, share)
    state.totals[thread] = total
    if thread == state.thread:
        state.context_used = whole(obj(usage, "last"), "totalTokens")
    everything: dict[str, int] = {}
    for one in state.totals.values():
        everything = plus(everything, one)
    size = whole(usage, "modelContextWindow") if thread == state.thread else None
    used = state.context_used if thread == state.thread else None
    return [fact(UsageUpdated(usage=usage_of(everything, context_used=used, context_size=size)))]
