"""Records of the audit that are told as a number: what happens too often to be stored one by one. Pure, without a clock."""

from typing import Any, Final

import msgspec

MAX_KEYS: Final = 200
"""Different entries at a time; what is beyond them is counted by its kind alone."""

VARIOUS: Final = "various"

Details = dict[str, Any]


class Entry(msgspec.Struct):
    """What happened `count` times from `since` to `last` (RFC 3339), to be told at `due` (seconds)."""

    kind: str
    actor: str
    details: Details
    since: str
    last: str
    due: float
    count: int = 1

    @property
    def told(self) -> Details:
        """The details of the record that says so."""
        return {**self.details, "count": self.count, "since": self.since, "last": self.last}


class Tally:
    """Nothing that was added is forgotten before it was taken, however much it is."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Any, ...], Entry] = {}

    def add(self, kind: str, actor: str, details: Details, *, time: str, due: float, count: int = 1) -> None:
        """Count what happened at `time`. The first of its like says when all of them are told."""
        key = (kind, actor, *sorted(details.items()))
        if key not in self._entries and len(self._entries) >= MAX_KEYS:
            actor, details, key = VARIOUS, {}, (kind,)
        known = self._entries.get(key)
        if known is None:
            self._entries[key] = Entry(kind, actor, details, time, time, due, count)
        else:
            known.count += count
            known.last = time

    def take(self, now: float) -> list[Entry]:
        """What is due, in the order in which it began; from here on it is the caller's to keep."""
        due = [key for key, entry in self._entries.items() if entry.due <= now]
        return [self._entries.pop(key) for key in due]

    @property
    def total(self) -> int:
        """How much was counted and not taken."""
        return sum(entry.count for entry in self._entries.values())

    @property
    def next_due(self) -> float | None:
        return min((entry.due for entry in self._entries.values()), default=None)
