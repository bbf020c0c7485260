"""Where a projection stands in the log and which edition it builds: kept in `trunk_positions`, checked at every start."""

import logging
from typing import Final

import msgspec

from trunkline_bus import direct, kv
from trunkline_bus.connection import Bus
from trunkline_bus.cursor import Cursor, verify
from trunkline_bus.views import CURRENT, Current, Edition, decode_current
from trunkline_wire import encode, subjects
from trunkline_wire.errors import TrunklineError

log = logging.getLogger(__name__)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Everything up to `position` is in the edition's documents; `id` is of the event there.

    `revision` is the last write to the bucket before this was known: a bucket that ends below it has lost writes.
    `frozen` are the keys that stand still.
    """

    edition: Edition
    position: int = 0
    id: str | None = None
    revision: int = 0
    frozen: list[str] = []


class Superseded(Exception):  # noqa: N818 - an outcome
    """Another replica has begun a newer edition of the same version."""


_places: Final = msgspec.json.Decoder(Place)


class Places:
    """The place of one projection, `<name>.v<version>`, written with compare-and-set."""

    def __init__(self, bus: Bus, name: str, version: int, bucket: str) -> None:
        self._bus = bus
        self._key = f"{name}.v{version}"
        self._version = version
        self._bucket = bucket
        self._revision = 0

    async def start(self) -> Place:
        """Where to go on: at the place, if the log there is the one that was read; else at 0 of a new generation."""
        while True:
            found = await self._read()
            log_id = await self._bus.read_log_id()
            if found is None:
                fresh = Place(edition=Edition(version=self._version, generation=0, log=log_id))
            else:
                why = await self._diverged(found)
                if why is None:
                    return await self._intact(found)
                generation = found.edition.generation + 1
                log.warning(
                    "projection.rebuild", extra={"projection": self._key, "reason": why, "generation": generation}
                )
                fresh = Place(edition=Edition(version=self._version, generation=generation, log=log_id))
            if await self._write(fresh):
                return fresh

    async def commit(self, place: Place) -> None:
        """Note the place. Raises Superseded."""
        while not await self._write(place):
            found = await self._read()
            if found is not None and found.edition != place.edition:
                raise Superseded
            if found is not None and found.position >= place.position:
                return  # another replica is further: what it noted holds for both

    async def abandon(self, place: Place) -> None:
        """Begin a new generation: the log is not the one that `place` was read from."""
        log_id = await self._bus.read_log_id()
        edition = Edition(version=self._version, generation=place.edition.generation + 1, log=log_id)
        found = await self._read()
        if found is None or found.edition == place.edition:
            await self._write(Place(edition=edition))

    async def publish(self, edition: Edition) -> list[str]:
        """Make `edition` the current one of its bucket unless a newer is; returns the prefixes that nobody needs now."""
        while True:
            there = await kv.get(self._bus, self._bucket, CURRENT)
            current = decode_current(there.value) if there is not None and there.value is not None else None
            if current is not None:
                if current.edition == edition:
                    return current.former
                if (current.edition.version, current.edition.generation) > (edition.version, edition.generation):
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

    async def _read(self) -> Place | None:
        there = await kv.get(self._bus, subjects.KV_POSITIONS, self._key)
        self._revision = there.revision if there is not None else 0
        if there is None or there.value is None:
            return None
        try:
            return _places.decode(there.value)
        except msgspec.MsgspecError as error:
            raise TrunklineError("bad_event", f"not a projection's place: {error}; delete {self._key!r}") from error

    async def _write(self, place: Place) -> bool:
        made = await kv.update(self._bus, subjects.KV_POSITIONS, self._key, encode(place), revision=self._revision)
        if made is None:
            return False
        self._revision = made
        return True

    async def _diverged(self, place: Place) -> str | None:
        ids = {subjects.EVENTS: place.id} if place.id is not None else {}
        cursor = Cursor(log=place.edition.log, positions={subjects.EVENTS: place.position}, ids=ids)
        gap = await verify(self._bus, cursor)
        # An erased event is in the documents as its erasure; distance is no obstacle to a projection.
        return gap.message if gap is not None and gap.reason == "log_diverged" else None

    async def _intact(self, place: Place) -> Place:
        facts = await direct.info(self._bus, kv.stream(self._bucket))
        if facts.last >= place.revision:
            return place
        log.warning("projection.bucket_went_back", extra={"projection": self._key, "end": facts.last})
        return msgspec.structs.replace(place, position=0, id=None)
