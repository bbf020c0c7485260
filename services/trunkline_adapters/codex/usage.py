"""Tokens. Codex counts them per thread, as running totals; a turn's own share is what was added."""

from typing import Final

from trunkline_agentkit.fields import Obj, whole
from trunkline_wire.blocks import Usage

_COUNTS: Final = ("inputTokens", "cachedInputTokens", "cacheWriteInputTokens", "outputTokens", "reasoningOutputTokens")

Counts = dict[str, int]
"""Tokens by Codex's own names. `inputTokens` contains what was cached, `outputTokens` what was reasoned."""


def counts(native: Obj) -> Counts:
    return {name: whole(native, name) or 0 for name in _COUNTS}


def added(now: Counts, before: Counts) -> Counts:
    """What came to a running total; one that fell (a reverted thread) began anew."""
    fell = any(now.get(name, 0) < before.get(name, 0) for name in _COUNTS)
    return dict(now) if fell else {name: now.get(name, 0) - before.get(name, 0) for name in _COUNTS}


def plus(one: Counts, other: Counts) -> Counts:
    return {name: one.get(name, 0) + other.get(name, 0) for name in _COUNTS}


def usage_of(found: Counts, *, context_used: int | None = None, context_size: int | None = None) -> Usage:
    cached, written = found.get("cachedInputTokens", 0), found.get("cacheWriteInputTokens", 0)
    return Usage(
        input=max(0, found.get("inputTokens", 0) - cached - written),
        output=found.get("outputTokens", 0),
        cache_read=cached,
        cache_write=written,
        reasoning=found.get("reasoningOutputTokens", 0),
        context_used=context_used,
        context_size=context_size,
    )
