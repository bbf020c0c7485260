"""Values of metrics' labels, kept to a number: each costs the process and Prometheus memory for ever."""

from typing import Final

OTHER: Final = "other"
_LONGEST: Final = 80


class Capped:
    """The first `limit` values are labels of their own, all later ones are `other`. `None` and the empty text are `unknown`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[str, str] = {}

    def __call__(self, value: str | None) -> str:
        if not value:
            return "unknown"
        known = self._known.get(value)
        if known is not None:
            return known
        if len(self._known) >= self._limit:
            return OTHER
        label = self._known[value] = value[:_LONGEST]
        return label
