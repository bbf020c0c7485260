"""Where a projection stands in the log and which edition it builds: kept in `trunk_positions`, checked at every start.

The head, `<name>.v<version>`, says which edition is built and is the place of a projection that keeps all partitions. Its
parts have places of their own beside it, `<name>.v<version>.<first>-<last>`, and all of them build the head's edition.
"""

import contextlib
import logging
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from trunkline_bus import direct, kv
from trunkline_bus.connection import Bus
from trunkline_bus.cursor import Cursor, count, verify
from trunkline_bus.parts import WHOLE, Part, named
from trunkline_bus.tasks import together
from trunkline_bus.views import CURRENT, Current, Edition, decode_current
from trunkline_wire import encode, subjects
from trunkline_wire.errors import TrunklineError
from trunkline_wire.ids import PARTITIONS

log = logging.getLogger(__name__)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of its partitions up to `position` is in the edition's documents; `id` is of the event there.

    `revision` is the last write to the bucket before this was known: a bucket that ends below it has lost writes.
    `frozen` are the keys that stand still. `live`: it has once caught up with the log.
    """

    edition: Edition
    position: int = 0
    id: str | None = None
    revision: int = 0
    frozen: list[str] = []
    live: bool = False
    stream: str = subjects.EVENTS
    """Whose positions these are."""

    filters: tuple[str, ...] = (subjects.ALL_EVENTS,)
    """What of it the projection reads, in all partitions."""


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a projection is: `behind` are the events that it reads and nobody has folded, of all its parts."""

    name: str
    version: int
    position: int
    behind: int
    parts: int
    frozen: frozenset[str]


class Superseded(Exception):  # noqa: N818 - an outcome
    """Another replica has begun a newer edition of the same version."""


_places: Final = msgspec.json.Decoder(Place)


def joined(
    edition: Edition, places: Iterable[tuple[Part, Place]], part: Part = WHOLE, stream: str = subjects.EVENTS
) -> Place:
    """Where `part` stands by what the places of other parts say of its partitions; at 0 where they lack one of them.

    Positions are of `stream`, which holds all of `part`: those of others say nothing. A place is true of each partition that it covers, so of each the furthest counts, and of all the one furthest behind.
    """
    known = [(other, place) for other, place in places if place.edition == edition]
    furthest = _furthest([(other, place) for other, place in known if place.stream == stream], part)
    if len(furthest) < len(part.partitions):
        return Place(edition=edition, stream=stream)
    behind = min(furthest.values(), key=lambda place: place.position)
    frozen = {key for _, place in known for key in place.frozen if part.holds(key)}
    return replace(
        behind, frozen=sorted(frozen), revision=max(place.revision for place in furthest.values()), live=False
    )


def _furthest(places: list[tuple[Part, Place]], part: Part) -> dict[int, Place]:
    """By partition that one of `places` covers, the one that is furthest there."""
    covering = {n: [place for other, place in places if n in other.partitions] for n in part.partitions}
    return {n: max(found, key=lambda place: place.position) for n, found in covering.items() if found}


async def read_place(bus: Bus, name: str, edition: Edition) -> Place | None:
    """Where the projection `name` stands as a whole in `edition`; None where nobody noted it."""
    key = f"{name}.v{edition.version}"
    head = await kv.get(bus, subjects.KV_POSITIONS, key)
    if head is None or head.value is None:
        return None
    whole = _decode(key, head.value)
    if whole.edition != edition:
        return None
    return joined(edition, [(WHOLE, whole), *await _of_parts(bus, key)])


async def lags(bus: Bus) -> list[Lag]:
    """How far each projection is in its newest edition, by name. What is no place is left out."""
    heads: dict[str, list[tuple[Part, Place]]] = {}
    for entry in await kv.entries(bus, subjects.KV_POSITIONS):
        if entry.value is None:
            continue
        with contextlib.suppress(TrunklineError, ValueError):
            name, version, *rest = entry.key.split(".")
            part = named(rest[0]) if rest else WHOLE
            heads.setdefault(f"{name}.{version}", []).append((part, _decode(entry.key, entry.value)))
    newest: dict[str, Lag] = {}
    for head, places in heads.items():
        name = head.partition(".")[0]
        edition = max((place.edition for _, place in places), key=lambda one: (one.version, one.generation))
        if name not in newest or newest[name].version < edition.version:
            newest[name] = await _lag(bus, name, edition, [one for one in places if one[1].edition == edition])
    return [newest[name] for name in sorted(newest)]


async def _lag(bus: Bus, name: str, edition: Edition, places: list[tuple[Part, Place]]) -> Lag:
    furthest = _furthest(places, WHOLE)
    standing: dict[tuple[str, int], list[str]] = {}
    for number, place in furthest.items():
        filters = standing.setdefault((place.stream, place.position), [])
        filters += [subjects.in_partition(events, number) for events in place.filters]
    if len(furthest) == PARTITIONS and len(standing) == 1:
        standing = {at: list(furthest[0].filters) for at in standing}
    counts = [count(bus, stream, filters, after=position) for (stream, position), filters in standing.items()]
    return Lag(
        name=name,
        version=edition.version,
        position=min((place.position for place in furthest.values()), default=0),
        behind=sum(await together(counts)),
        parts=max(1, sum(not part.whole for part, _ in places)),
        frozen=frozenset(key for _, place in places for key in place.frozen),
    )


class Places:
    """The place of one projection, or of one `part` of it, written with compare-and-set."""

    def __init__(self, bus: Bus, name: str, version: int, bucket: str, part: Part = WHOLE) -> None:
        self._bus = bus
        self._head = f"{name}.v{version}"
        self._key = self._head if part.whole else f"{self._head}.{part.name}"
        self._part = part
        self._version = version
        self._bucket = bucket
        self._revision = 0

    async def start(self) -> Place:
        """Where to go on: at the place, if the log there is the one that was read; else at 0 of a new generation."""
        while True:
            head, revision = await self._read(self._head)
            if head is None:
                fresh = Place(edition=await self._edition(0))
                head, revision = fresh, await self._update(self._head, fresh, revision) or 0
                if not revision:
                    continue
            own, self._revision = (head, revision) if self._part.whole else await self._read(self._key)
            beside = [(WHOLE, head), *await _of_parts(self._bus, self._head)]
            place = joined(head.edition, beside, self._part, self._bus.layout.of_part(self._part))
            why = await self._diverged(place)
            if why is None:
                place = await self._intact(place)
                if own is None or own.edition != place.edition:
                    await self._write(place)  # or another replica has
                return place
            generation = head.edition.generation + 1
            log.warning("projection.rebuild", extra={"projection": self._head, "reason": why, "generation": generation})
            await self._update(self._head, Place(edition=await self._edition(generation)), revision)

    async def commit(self, place: Place) -> None:
        """Note the place. Raises Superseded."""
        while not await self._write(place):
            found, self._revision = await self._read(self._key)
            if found is not None and found.edition != place.edition:
                raise Superseded
            if found is not None and found.position >= place.position:
                return  # another replica is further: what it noted holds for both

    async def check(self, edition: Edition) -> None:
        """Raises Superseded where the head names another edition."""
        if self._part.whole:
            return
        head, _ = await self._read(self._head)
        if head is not None and head.edition != edition:
            raise Superseded

    async def abandon(self, place: Place) -> None:
        """Begin a new generation: the log is not the one that `place` was read from."""
        edition = await self._edition(place.edition.generation + 1)
        found, revision = await self._read(self._head)
        if found is None or found.edition == place.edition:
            await self._update(self._head, Place(edition=edition), revision)

    async def publish(self, edition: Edition) -> list[str]:
        """Make `edition` the current one of its bucket unless a newer is, or other parts have not caught up; returns the
        prefixes that nobody needs now.
        """
        while True:
            there = await kv.get(self._bus, self._bucket, CURRENT)
            current = decode_current(there.value) if there is not None and there.value is not None else None
            if current is not None:
                if current.edition == edition:
                    return current.former
                if (current.edition.version, current.edition.generation) > (edition.version, edition.generation):
                    return []
            if not await self._all_live(edition):
                return []
            former = [] if current is None else [*current.former, current.edition.prefix]
            value = encode(Current(edition=edition, former=[one for one in former if one != edition.prefix]))
            revision = there.revision if there is not None else 0
            if await kv.update(self._bus, self._bucket, CURRENT, value, revision=revision) is not None:
                return former

    async def forget(self, edition: Edition) -> None:
        """The former editions of `edition` are gone."""
        there = await kv.get(self._bus, self._bucket, CURRENT)
        if there is not None and there.value is not None and decode_current(there.value).edition == edition:
            await kv.update(self._bus, self._bucket, CURRENT, encode(Current(edition=edition)), revision=there.revision)

    async def _all_live(self, edition: Edition) -> bool:
        if self._part.whole:
            return True
        beside = await _of_parts(self._bus, self._head)
        live = {n for part, place in beside if place.live and place.edition == edition for n in part.partitions}
        return len(live) == PARTITIONS

    async def _edition(self, generation: int) -> Edition:
        return Edition(version=self._version, generation=generation, log=await self._bus.read_log_id())

    async def _read(self, key: str) -> tuple[Place | None, int]:
        """A place and the revision that a write has to expect."""
        there = await kv.get(self._bus, subjects.KV_POSITIONS, key)
        if there is None or there.value is None:
            return None, there.revision if there is not None else 0
        return _decode(key, there.value), there.revision

    async def _write(self, place: Place) -> bool:
        made = await self._update(self._key, place, self._revision)
        self._revision = made or self._revision
        return made is not None

    async def _update(self, key: str, place: Place, revision: int) -> int | None:
        return await kv.update(self._bus, subjects.KV_POSITIONS, key, encode(place), revision=revision)

    async def _diverged(self, place: Place) -> str | None:
        stream = self._bus.layout.of_part(self._part)
        ids = {stream: place.id} if place.id is not None else {}
        cursor = Cursor(log=place.edition.log, positions={stream: place.position}, ids=ids)
        gap = await verify(self._bus, cursor)
        # An erased event is in the documents as its erasure; distance is no obstacle to a projection.
        return gap.message if gap is not None and gap.reason == "log_diverged" else None

    async def _intact(self, place: Place) -> Place:
        facts = await direct.info(self._bus, kv.stream(self._bucket))
        if facts.last >= place.revision:
            return place
        log.warning("projection.bucket_went_back", extra={"projection": self._key, "end": facts.last})
        return replace(place, position=0, id=None)


async def _of_parts(bus: Bus, head: str) -> list[tuple[Part, Place]]:
    keys = await kv.names(bus, subjects.KV_POSITIONS, f"{head}.*")
    found = await kv.get_many(bus, subjects.KV_POSITIONS, keys)
    return [
        (named(one.key.rpartition(".")[2]), _decode(one.key, one.value))
        for one in found.values()
        if one.value is not None
    ]


def _decode(key: str, raw: bytes) -> Place:
    try:
        return _places.decode(raw)
    except msgspec.MsgspecError as error:
        raise TrunklineError("bad_event", f"not a projection's place: {error}; delete {key!r}") from error
