"""What a session has used: each message once, each turn as its agent settles it, the cost as the agent totals it.

Tokens are the sum over ended turns plus the messages of the open one. A message that comes in several events counts
with the last of them. Where an agent settles a turn with totals of its own, those replace what its messages said.
"""

from typing import Final

from msgspec.structs import replace

from trunkline_fold._bounded import small_json, upsert
from trunkline_fold.state import MAX_COUNTED, Context, Counted, Metering, SessionState
from trunkline_wire.blocks import Usage
from trunkline_wire.turn import MessageAssistant, TurnCompleted
from trunkline_wire.work import UsageUpdated

MAX_MODELS: Final = 20


def count_message(state: SessionState, item: str, data: MessageAssistant, *, lane: str | None) -> SessionState:
    """Counts a message's usage, or counts it anew in place of what an earlier event of the same message said."""
    metering = state.metering
    known = next((counted for counted in metering.counted if counted.item == item), None)
    if known is None:
        state = replace(state, counts=replace(state.counts, messages=state.counts.messages + 1))
    elif known.settled or data.usage is None:
        return state
    entry = Counted(item=item, usage=data.usage)
    counted = [*metering.counted, entry] if known is None else upsert(metering.counted, entry, lambda old: old is known)
    live = metering.live
    while len(counted) > MAX_COUNTED:
        live = _add(live, counted.pop(0).usage)
    state = replace(state, metering=replace(metering, counted=counted, live=live))
    if data.usage is None:
        return state  # the totals are what they were
    if lane is None:
        state = _context(state, data.usage)
    return _total(state)


def begin_turn(state: SessionState) -> SessionState:
    """What came between two turns stays counted, whatever the next turn's totals say."""
    open_usage = _open(state.metering)
    return _total(_settle(state, open_usage, cost=open_usage.cost_usd))


def end_turn(state: SessionState, data: TurnCompleted) -> SessionState:
    """Settles a turn by its own totals, or by its messages where the agent gives none (it died, or never counts)."""
    open_usage = _open(state.metering)
    cost = data.cost_usd
    if cost is None:
        cost = open_usage.cost_usd if data.usage is None or data.usage.cost_usd is None else data.usage.cost_usd
    state = _settle(state, open_usage if data.usage is None else data.usage, cost=cost)
    if data.total_cost_usd is not None:
        state = _running_total(state, data.total_cost_usd)
    if data.usage is not None:
        state = _context(state, data.usage)
    by_model = dict(state.usage_by_model)
    for entry in data.models:
        if entry.model in by_model or len(by_model) < MAX_MODELS:
            by_model[entry.model] = _add(by_model.get(entry.model, Usage()), entry.usage)
    return _total(replace(state, usage_by_model=by_model))


def update(state: SessionState, data: UsageUpdated) -> SessionState:
    """Folds an agent's totals so far: of the session, not of the turn."""
    usage = data.usage
    total = data.total_cost_usd
    if usage is not None:
        state = _context(state, usage)
        total = usage.cost_usd if total is None else total
        if usage.input or usage.output:
            done = state.metering.done
            live = Usage(
                input=max(0, usage.input - done.input),
                output=max(0, usage.output - done.output),
                cache_write=max(0, usage.cache_write - done.cache_write),
                cache_read=max(0, usage.cache_read - done.cache_read),
                reasoning=None if usage.reasoning is None else max(0, usage.reasoning - (done.reasoning or 0)),
                cost_usd=_open(state.metering).cost_usd,
            )
            state = replace(state, metering=replace(state.metering, live=live, counted=_settled(state.metering)))
    if total is not None:
        state = _running_total(state, total)
    if data.rate_limits is not None:
        state = replace(state, rate_limits=small_json(data.rate_limits))
    return _total(state)


def _open(metering: Metering) -> Usage:
    usage = metering.live
    for counted in metering.counted:
        if not counted.settled:
            usage = _add(usage, counted.usage)
    return usage


def _settled(metering: Metering) -> list[Counted]:
    return [Counted(item=counted.item, settled=True) for counted in metering.counted]


def _settle(state: SessionState, usage: Usage, *, cost: float | None) -> SessionState:
    metering = state.metering
    return replace(
        state,
        metering=replace(
            metering,
            done=replace(_add(metering.done, usage), cost_usd=None),
            live=Usage(),
            counted=_settled(metering),
            cost_extra=_sum(metering.cost_extra, cost),
        ),
    )


def _running_total(state: SessionState, total: float) -> SessionState:
    """The agent's running total replaces all that was added up. It continues when a session is resumed; a new native
    session that starts from less begins a count of its own, on top of what was there.
    """
    metering = state.metering
    base = metering.cost_base
    before = metering.cost_total
    if before is not None and total < before and metering.cost_native != state.native_session:
        base += before
    counted = [
        counted if counted.usage is None else replace(counted, usage=replace(counted.usage, cost_usd=None))
        for counted in metering.counted
    ]
    return replace(
        state,
        metering=replace(
            metering,
            cost_base=base,
            cost_total=total,
            cost_native=state.native_session,
            cost_extra=None,
            live=replace(metering.live, cost_usd=None),
            counted=counted,
        ),
    )


def _total(state: SessionState) -> SessionState:
    metering = state.metering
    open_usage = _open(metering)
    cost = _sum(_sum(metering.cost_total, metering.cost_extra), open_usage.cost_usd)
    return replace(
        state,
        usage=replace(_add(metering.done, open_usage), cost_usd=None),
        cost_usd=None if cost is None else metering.cost_base + cost,
    )


def _context(state: SessionState, usage: Usage) -> SessionState:
    if usage.context_used is None and usage.context_size is None:
        return state
    return replace(
        state,
        context=Context(
            used=state.context.used if usage.context_used is None else usage.context_used,
            size=state.context.size if usage.context_size is None else usage.context_size,
        ),
    )


def _add(one: Usage, other: Usage | None) -> Usage:
    """The sum of tokens and cost; context and source, which have no sum, stay out."""
    if other is None:
        return one
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_write=one.cache_write + other.cache_write,
        cache_read=one.cache_read + other.cache_read,
        reasoning=(
            None if one.reasoning is None and other.reasoning is None else (one.reasoning or 0) + (other.reasoning or 0)
        ),
        cost_usd=_sum(one.cost_usd, other.cost_usd),
    )


def _sum(one: float | None, other: float | None) -> float | None:
    if one is None:
        return other
    return one if other is None else one + other
