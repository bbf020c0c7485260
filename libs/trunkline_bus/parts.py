"""Parts of a projection: ranges of the 64 partitions, so that several replicas can share the work."""

from typing import Final

import msgspec

from trunkline_wire import subjects
from trunkline_wire.errors import TrunklineError
from trunkline_wire.ids import PARTITIONS, partition


class Part(msgspec.Struct, frozen=True, order=True):
    """The partitions `first` to `last`, both in."""

    first: int = 0
    last: int = PARTITIONS - 1

    @property
    def whole(self) -> bool:
        return self.last - self.first == PARTITIONS - 1

    @property
    def name(self) -> str:
        """`16-31`: one token, in keys of leases and places."""
        return f"{self.first}-{self.last}"

    @property
    def partitions(self) -> range:
        return range(self.first, self.last + 1)

    @property
    def filters(self) -> tuple[str, ...]:
        """Of the events in it."""
        return (subjects.ALL_EVENTS,) if self.whole else tuple(map(subjects.partition_events, self.partitions))

    def holds(self, session: str) -> bool:
        return self.whole or partition(session) in self.partitions


WHOLE: Final = Part()


def cut(count: int) -> list[Part]:
    """All partitions in `count` parts of the same size. Raises `bad_settings` where that does not come out even."""
    if count < 1 or PARTITIONS % count:
        raise TrunklineError("bad_settings", f"{PARTITIONS} partitions can't be cut in {count} parts: 1, 2, 4, 8 … 64")
    size = PARTITIONS // count
    return [Part(first, first + size - 1) for first in range(0, PARTITIONS, size)]


def named(name: str) -> Part:
    """The part of this name. Raises ValueError."""
    first, _, last = name.partition("-")
    return Part(int(first), int(last))
