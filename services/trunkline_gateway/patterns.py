"""Subscription patterns: which event types a subscription wants.

A pattern is matched against the event's type, and against the type with `session.` before it: `session.*` and `*` are
everything, `tool.*`, `ask.*` or `team.*` a part, `turn.completed` one type.
"""

import re
from collections.abc import Iterable

from trunkline_wire import TrunklineError

_PATTERN = re.compile(r"\*|[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*(\.\*)?")


class Patterns:
    """A set of patterns; `matches` remembers its answers, for there are few types."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Raises TrunklineError `bad_params` for what is no pattern."""
        self.patterns = tuple(patterns)
        if not self.patterns:
            raise TrunklineError("bad_params", "patterns is empty: leave it out for all events", field="patterns")
        for pattern in self.patterns:
            if _PATTERN.fullmatch(pattern) is None:
                raise TrunklineError(
                    "bad_params", f"{pattern!r} is no pattern: use a type, `family.*` or `*`", field="patterns"
                )
        self.scope = "" if {"*", "session.*"} & set(self.patterns) else " ".join(sorted(set(self.patterns)))
        """The same for patterns that want the same; empty where they want every type."""
        self._known: dict[str, bool] = {}

    def matches(self, type_: str) -> bool:
        """Whether an event of this type is wanted."""
        known = self._known.get(type_)
        if known is None:
            known = any(_matches(pattern, name) for pattern in self.patterns for name in (type_, f"session.{type_}"))
            if len(self._known) < 1000:
                self._known[type_] = known
        return known


def _matches(pattern: str, name: str) -> bool:
    if pattern == "*":
        return True
    if pattern.endswith(".*"):
        return name.startswith(pattern[:-1])
    return name == pattern
