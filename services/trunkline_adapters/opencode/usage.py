"""Tokens and cost. OpenCode counts them per message and, as running totals, per session."""

from dataclasses import dataclass

from trunkline_agentkit.fields import Obj, number, obj, whole
from trunkline_wire.blocks import Usage


@dataclass(frozen=True)
class Counts:
    """Tokens and cost in USD. `input` is without what was cached, `output` without what was reasoned."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.input + other.input,
            self.output + other.output,
            self.reasoning + other.reasoning,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.cost + other.cost,
        )

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.reasoning + self.cache_read + self.cache_write


def counts(native: Obj) -> Counts:
    """Those of a message's or a session's `tokens` and `cost`."""
    tokens = obj(native, "tokens")
    cache = obj(tokens, "cache")
    return Counts(
        input=whole(tokens, "input") or 0,
        output=whole(tokens, "output") or 0,
        reasoning=whole(tokens, "reasoning") or 0,
        cache_read=whole(cache, "read") or 0,
        cache_write=whole(cache, "write") or 0,
        cost=number(native, "cost") or 0.0,
    )


def usage_of(found: Counts, *, context_used: int | None = None, context_size: int | None = None) -> Usage:
    """In the log's words: what was reasoned is part of the output."""
    return Usage(
        input=found.input,
        output=found.output + found.reasoning,
        cache_read=found.cache_read,
        cache_write=found.cache_write,
        reasoning=found.reasoning,
        cost_usd=found.cost,
        context_used=context_used,
        context_size=context_size,
    )
