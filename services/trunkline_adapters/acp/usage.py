"""Tokens and cost. Agents count per turn, over the session, in `_meta.quota`, or with each call of the model."""

from msgspec.structs import replace

from trunkline_adapters.acp.state import State
from trunkline_agentkit.fields import Obj, number, obj, objects, text, whole
from trunkline_wire.blocks import Usage
from trunkline_wire.turn import ModelUsage


def usage_of(native: Obj) -> Usage | None:
    """A `Usage` of the protocol; None where there is none.

    Input is counted without what was read from the cache: agents whose total is input and output have counted it there.
    """
    if not native:
        return None
    given, output = whole(native, "inputTokens") or 0, whole(native, "outputTokens") or 0
    read, total = whole(native, "cachedReadTokens") or 0, whole(native, "totalTokens")
    within = total is not None and total == given + output and 0 < read <= given
    return Usage(
        input=given - read if within else given,
        output=output,
        cache_read=read,
        cache_write=whole(native, "cachedWriteTokens") or 0,
        reasoning=whole(native, "thoughtTokens"),
    )


def begin_counts(state: State, method: str) -> None:
    """A session is taken up or copied: it has used something before this process."""
    anew = state.profile.counts == "process"
    state.totals = Usage() if anew else None
    state.cost_before = 0.0 if anew else None
    state.partial = anew or method == "session/fork"


def turn_usage(state: State, result: Obj) -> tuple[Usage | None, Usage | None]:
    """The turn's tokens, with how full the context is; where only those of the session so far are known, these."""
    usage = usage_of(obj(result, "usage"))
    if usage is not None and state.profile.usage == "total":
        before, state.totals = state.totals, usage
        if before is None:
            return None, None if state.partial else _with_context(state, usage)
        usage = _added(usage, before)
    if usage is None:
        usage = _quota(obj(obj(obj(result, "_meta"), "quota"), "token_count"))
    if usage is None and state.turn is not None:
        usage = state.turn.usage
    if usage is None and state.context_used is None:
        return None, None
    return _with_context(state, usage or Usage()), None


def _with_context(state: State, usage: Usage) -> Usage:
    return replace(usage, context_used=state.context_used, context_size=state.context_size)


def note_call(state: State, update: Obj) -> None:
    """The usage of one call of the model, which some agents tell with its last chunk."""
    usage = usage_of(obj(obj(update, "_meta"), "usage"))
    if usage is None or state.turn is None:
        return
    before = state.turn.usage or Usage()
    state.turn.usage = Usage(
        input=before.input + usage.input,
        output=before.output + usage.output,
        cache_read=before.cache_read + usage.cache_read,
        cache_write=before.cache_write + usage.cache_write,
        reasoning=None if usage.reasoning is None else usage.reasoning + (before.reasoning or 0),
    )


def turn_models(result: Obj) -> list[ModelUsage]:
    """What each model used in the turn, of agents that say nothing but `_meta.quota`; of others it may run over turns."""
    if obj(result, "usage"):
        return []
    found: list[ModelUsage] = []
    for entry in objects(obj(obj(result, "_meta"), "quota"), "model_usage"):
        usage = _quota(obj(entry, "token_count"))
        if usage is not None:
            found.append(ModelUsage(model=text(entry, "model") or "unknown", usage=usage))
    return found


def turn_cost(state: State) -> float | None:
    """What the turn added to the session's cost."""
    if state.cost is None:
        return None
    before, state.cost_before = state.cost_before, state.cost
    if before is None:
        return None
    return state.cost - before if state.cost >= before else state.cost


def total_cost(state: State) -> float | None:
    """What the session has cost so far, where the agent knows that."""
    return None if state.partial else state.cost


def note_context(state: State, update: Obj) -> None:
    """A `usage_update`."""
    state.context_used, state.context_size = whole(update, "used"), whole(update, "size")
    cost = obj(update, "cost")
    if text(cost, "currency") == "USD":
        state.cost = number(cost, "amount")
        if state.loading:
            state.cost_before = state.cost


def _added(now: Usage, before: Usage) -> Usage:
    if now.input < before.input or now.output < before.output:
        return now  # the agent began to count anew
    reasoning = None if now.reasoning is None else now.reasoning - (before.reasoning or 0)
    return Usage(
        input=now.input - before.input,
        output=now.output - before.output,
        cache_read=max(0, now.cache_read - before.cache_read),
        cache_write=max(0, now.cache_write - before.cache_write),
        reasoning=reasoning,
    )


def _quota(native: Obj) -> Usage | None:
    if not native:
        return None
    return Usage(input=whole(native, "input_tokens") or 0, output=whole(native, "output_tokens") or 0)
