"""The reading side of a projection: its documents by key, fetched once or mirrored and kept current."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_bus.views import CURRENT, Document, Edition, decode_current, decode_document

S = TypeVar("S")


class Shown(msgspec.Struct, Generic[S], frozen=True):
    """A key's state, folded up to the sequence `cursor`; `frozen` where a later message could not be folded."""

    state: S
    cursor: int
    frozen: bool


async def edition(bus: Bus, bucket: str) -> Edition | None:
    """The edition in use, None before a projection has first caught up."""
    entry = await kv.get(bus, bucket, CURRENT)
    return decode_current(entry.value).edition if entry is not None and entry.value is not None else None


async def fetch(bus: Bus, bucket: str, key: str, decode: Callable[[bytes], S]) -> Shown[S] | None:
    """The present document of `key`, None where there is none."""
    used = await edition(bus, bucket)
    if used is None:
        return None
    entry = await kv.get(bus, bucket, used.key(key))
    return None if entry is None or entry.value is None else _show(decode_document(entry.value), decode)


class Mirror(Generic[S]):
    """All documents of a bucket's edition in use. `run` keeps them current until cancelled; `ready` once they are.

    `changed` is called with a key and its document (None: it is gone), for all keys again when another edition is used.
    """

    def __init__(
        self,
        bus: Bus,
        bucket: str,
        decode: Callable[[bytes], S],
        changed: Callable[[str, Shown[S] | None], None] = lambda _key, _shown: None,
    ) -> None:
        self.ready = asyncio.Event()
        self._bus = bus
        self._bucket = bucket
        self._decode = decode
        self._changed = changed
        self._prefix: str | None = None
        self._editions: dict[str, dict[str, Shown[S]]] = {}
        self._shown: dict[str, Shown[S]] = {}

    @property
    def documents(self) -> dict[str, Shown[S]]:
        """By key. Treat it as read only."""
        return self._shown

    async def run(self) -> None:
        async with kv.watch(self._bus, self._bucket, (CURRENT, "*.*")) as reader:
            restarts = 0
            async for batch in reader.batches():
                if reader.restarts != restarts:
                    restarts = reader.restarts
                    self._editions.clear()
                    self._use(self._prefix)
                for stored in batch:
                    self._take(kv.entry(stored))
                if reader.caught_up.is_set():
                    self.ready.set()

    def _take(self, entry: kv.Entry) -> None:
        if entry.key == CURRENT:
            used = decode_current(entry.value).edition.prefix if entry.value is not None else None
            if used != self._prefix:
                self._use(used)
            return
        prefix, _, key = entry.key.partition(".")
        documents = self._editions.setdefault(prefix, {})
        shown = None if entry.value is None else _show(decode_document(entry.value), self._decode)
        if shown is None:
            documents.pop(key, None)
        else:
            documents[key] = shown
        if prefix == self._prefix:
            self._shown = documents
            self._changed(key, shown)

    def _use(self, prefix: str | None) -> None:
        """Show the documents of another edition."""
        former, self._shown = self._shown, self._editions.get(prefix or "", {})
        self._prefix = prefix
        for key in former.keys() - self._shown.keys():
            self._changed(key, None)
        for key, shown in self._shown.items():
            self._changed(key, shown)


def _show(document: Document, decode: Callable[[bytes], S]) -> Shown[S]:
    return Shown(decode(bytes(document.state)), document.cursor, document.frozen is not None)
