"""Which stream holds which partitions: one, EVENTS, or several by ranges, chosen when a log is made.

A session's events are all in the stream of its partition, so whatever concerns one session reads and fences as with one
stream. Cursors hold a position for each stream.
"""

from typing import Final

import msgspec

from trunkline_bus.parts import WHOLE, Part, cut, named
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import partition

KEY: Final = "trunk-events"
"""In the metadata of EVENTS, where there are several: `EVENTS:0-31,EVENTS_32:32-63`."""


class Layout(msgspec.Struct, frozen=True):
    """The streams of the log, by name and in order, each with its partitions."""

    streams: tuple[tuple[str, Part], ...] = ((subjects.EVENTS, WHOLE),)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.streams]

    @property
    def only(self) -> str:
        """The one stream. Raises `topology_conflict` where there are several: for readers of all that can't merge them."""
        first, *more = self.names
        if more:
            raise TrunklineError(
                "topology_conflict",
                f"the log has {len(self.streams)} streams ({', '.join(self.names)}), and this service reads one",
            )
        return first

    def of(self, session: str) -> str:
        """The stream of a session."""
        if len(self.streams) == 1:
            return self.streams[0][0]
        number = partition(session)
        return next(name for name, part in self.streams if number in part.partitions)

    def of_part(self, part: Part) -> str:
        """The stream that holds all of `part`. Raises `topology_conflict` where none does."""
        for name, held in self.streams:
            if held.first <= part.first and part.last <= held.last:
                return name
        raise TrunklineError(
            "topology_conflict",
            f"no stream holds the partitions {part.name}: cut the work in {len(self.streams)} parts or more",
        )

    def note(self) -> str:
        return ",".join(f"{name}:{part.name}" for name, part in self.streams)


def divided(count: int) -> Layout:
    """A layout of `count` streams of the same size: EVENTS, then `EVENTS_<first partition>`. Raises `bad_settings`."""
    return Layout(
        tuple((subjects.EVENTS if not part.first else f"{subjects.EVENTS}_{part.first}", part) for part in cut(count))
    )


def noted(metadata: dict[str, str]) -> Layout:
    """The layout that the metadata of EVENTS tell of."""
    note = metadata.get(KEY)
    if not note:
        return Layout()
    pairs = [entry.partition(":") for entry in note.split(",")]
    return Layout(tuple((name, named(part)) for name, _, part in pairs))
