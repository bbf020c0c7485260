"""Tokens and cost. Results carry running totals of the process; a turn's own share is what was added."""

from trunkline_adapters.claude.state import State
from trunkline_agentkit.fields import Obj, as_obj, number, obj, whole
from trunkline_wire.blocks import Usage
from trunkline_wire.turn import ModelUsage

_TOKENS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "thinkingTokens")


def message_usage(native: Obj) -> Usage | None:
    """The `usage` of an API message or of a result; None where there is none."""
    if not native:
        return None
    return Usage(
        input=whole(native, "input_tokens") or 0,
        output=whole(native, "output_tokens") or 0,
        cache_write=whole(native, "cache_creation_input_tokens") or 0,
        cache_read=whole(native, "cache_read_input_tokens") or 0,
        reasoning=whole(obj(native, "output_tokens_details"), "thinking_tokens"),
    )


def context_size_of(native: Obj) -> int:
    """Tokens that the model has read and written at the end of a message."""
    usage = message_usage(native) or Usage()
    return usage.input + usage.cache_read + usage.cache_write + usage.output


def turn_cost(state: State, result: Obj) -> tuple[float | None, float | None]:
    """(cost of this turn, running total) in USD. The total falls to zero after `/clear`, and goes on after a resume."""
    total = number(result, "total_cost_usd")
    since = result.get("model_usage_since_last_result")
    if isinstance(since, dict):
        cost: float | None = sum(number(as_obj(value), "costUSD") or 0.0 for value in as_obj(since).values())
    elif total is None or (state.resumed and not state.models):
        cost = None
    else:
        cost = total - state.total_cost if total >= state.total_cost else total
    if total is not None:
        state.total_cost = total
    return cost, total


def turn_models(state: State, result: Obj) -> list[ModelUsage]:
    """What each model used in this turn; models that added nothing are left out."""
    running = {name: as_obj(value) for name, value in obj(result, "modelUsage").items()}
    since = result.get("model_usage_since_last_result")
    if isinstance(since, dict):
        shares = {name: as_obj(value) for name, value in as_obj(since).items()}
    elif state.resumed and not state.models:
        shares = {}
    else:
        shares = {name: _added(value, state.models.get(name, {})) for name, value in running.items()}
    if running:
        state.models = running
    return [ModelUsage(model=name, usage=_model(share)) for name, share in sorted(shares.items()) if _any(share)]


def total(models: list[ModelUsage]) -> Usage:
    """The tokens of all models together."""
    reasoning = [entry.usage.reasoning for entry in models if entry.usage.reasoning is not None]
    return Usage(
        input=sum(entry.usage.input for entry in models),
        output=sum(entry.usage.output for entry in models),
        cache_read=sum(entry.usage.cache_read for entry in models),
        cache_write=sum(entry.usage.cache_write for entry in models),
        reasoning=sum(reasoning) if reasoning else None,
    )


def _added(now: Obj, before: Obj) -> Obj:
    share = dict(now)
    for key in (*_TOKENS, "costUSD"):
        old, new = number(before, key), number(now, key)
        if old is not None and new is not None and new >= old:
            share[key] = new - old
    return share


def _any(share: Obj) -> bool:
    return any(whole(share, key) for key in _TOKENS) or bool(number(share, "costUSD"))


def _model(share: Obj) -> Usage:
    return Usage(
        input=whole(share, "inputTokens") or 0,
        output=whole(share, "outputTokens") or 0,
        cache_read=whole(share, "cacheReadInputTokens") or 0,
        cache_write=whole(share, "cacheCreationInputTokens") or 0,
        reasoning=whole(share, "thinkingTokens"),
        cost_usd=number(share, "costUSD"),
        context_size=whole(share, "contextWindow"),
    )


def window_of(result: Obj, model: str | None) -> int | None:
    """The context window of `model`, or of the only model there is."""
    running = obj(result, "modelUsage")
    chosen = as_obj(running.get(model)) if model else {}
    if not chosen and len(running) == 1:
        chosen = as_obj(next(iter(running.values())))
    return whole(chosen, "contextWindow")
