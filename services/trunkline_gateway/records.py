"""The records of a bucket, watched: every gateway knows them, and hears of a change at once."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_wire import TrunklineError, encode

log = logging.getLogger(__name__)

T = TypeVar("T", bound=msgspec.Struct)


class Records(Generic[T]):
    """What is stored in `bucket` under `<prefix>.<id>` (or `<id>`, without a prefix), decoded as `kind`, by id.

    Run `run()` as a task; `ready` is set once all that was there is known.
    """

    def __init__(self, bus: Bus, bucket: str, kind: type[T], prefix: str = "") -> None:
        self._bus = bus
        self._bucket = bucket
        self._start = f"{prefix}." if prefix else ""
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
        self.known: dict[str, T] = {}
        self.ready = asyncio.Event()
        self._deleted: dict[str, int] = {}
        """Those that were deleted here, by revision, until that is heard."""
        self.on_gone: list[Callable[[str], None]] = []
        self.on_change: list[Callable[[str], None]] = []

    async def run(self) -> None:
        """Watch the bucket until cancelled."""
        while True:
            try:
                await self._watch()
            except TrunklineError as error:
                log.warning("records_restart", extra={"bucket": self._bucket, "code": error.code})
                await asyncio.sleep(1)

    async def _watch(self) -> None:
        restarts = 0
        # A bucket that comes again from its start is known anew only once it is there as a whole.
        again: set[str] | None = set()
        async with kv.watch(self._bus, self._bucket, (f"{self._start}>",)) as reader:
            async for batch in reader.batches():
                if reader.restarts != restarts:
                    restarts, again = reader.restarts, set()
                for stored in batch:
                    entry = kv.entry(stored)
                    id_ = entry.key.removeprefix(self._start)
                    if self._take(id_, entry) and again is not None:
                        again.add(id_)
                if not batch:
                    for id_ in set(self.known) - again if again is not None else ():
                        self._drop(id_)
                    again = None
                    self.ready.set()

    def _take(self, id: str, entry: kv.Entry) -> bool:
        value = entry.value
        if entry.revision < self._deleted.get(id, 0):
            return False  # what it was before
        try:
            if value is not None:
                self.known[id] = self._decoder.decode(value)
        except msgspec.MsgspecError as error:
            log.warning("record_not_understood", extra={"bucket": self._bucket, "key": id, "error": str(error)})
            value = None
        if value is None:
            self._drop(id)
            return False
        for tell in self.on_change:
            tell(id)
        return True

    def _drop(self, id: str) -> None:
        before, deleted = self.known.pop(id, None), self._deleted.pop(id, None)
        if before is not None or deleted is not None:
            for tell in self.on_gone:
                tell(id)

    def key(self, id: str) -> str:
        """Under which a record is stored."""
        return f"{self._start}{id}"

    async def put(self, id: str, record: T) -> None:
        """Store a record, known here from now on."""
        await kv.put(self._bus, self._bucket, self.key(id), encode(record))
        self.known[id] = record

    async def delete(self, id: str) -> None:
        """Delete a record, known here no more from now on; `on_gone` is told once that is heard."""
        revision = await kv.delete(self._bus, self._bucket, self.key(id))
        if self.known.pop(id, None) is not None:
            self._deleted[id] = revision
