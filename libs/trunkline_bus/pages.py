"""Pages of a session's history: where each of its events stands in the log, so that any page is read in one piece.

The index is a document of the bucket `trunk_pages` a session, made by the projector: the last, open chunk of
sequences in the document itself, every full chunk under a key of its own. A chunk is delta-coded: each number is
twice the distance to the sequence before, plus one where a message starts.
"""

import bisect
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from trunkline_bus import direct, kv, mirror
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_bus.stored import Stored
from trunkline_bus.views import decode_document
from trunkline_wire import TrunklineError, encode, subjects

CHUNK: Final = 1024
"""Events of a full chunk."""

MAX_LIMIT: Final = 1000
"""Events of a page, at most."""

_STEP: Final = 50
"""Events that are read at a time in the search for messages."""

_ALIGN: Final = 50
"""How many events a page may be longer than asked, so that it begins where a message does."""

Spot = tuple[int, bool]
"""A stream sequence, and whether a message starts there."""


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """`firsts` are the first sequences of the full chunks, `tail` is the open chunk, coded; `fresh` are full chunks, coded,
    that are not stored yet, the last ones of `firsts`. `item` is of the message that an event may continue.
    """

    firsts: tuple[int, ...] = ()
    tail: tuple[int, ...] = ()
    last: int = 0
    item: str | None = None
    fresh: tuple[tuple[int, ...], ...] = ()

    @property
    def total(self) -> int:
        return CHUNK * len(self.firsts) + len(self.tail)


class Page(msgspec.Struct, frozen=True):
    """`stored` in log order; `before` events stand before the first of them, `after` behind the last, `total` in all."""

    stored: list[Stored]
    before: int
    after: int
    total: int


def code(spots: Iterable[Spot]) -> tuple[int, ...]:
    """The chunk of these spots."""
    coded: list[int] = []
    before = 0
    for sequence, starts in spots:
        coded.append((sequence - before) * 2 + starts)
        before = sequence
    return tuple(coded)


def decode(coded: Sequence[int]) -> list[Spot]:
    spots: list[Spot] = []
    sequence = 0
    for number in coded:
        sequence += number >> 1
        spots.append((sequence, bool(number & 1)))
    return spots


def append(index: Index, sequence: int, *, starts: bool, item: str | None) -> Index:
    """The index with one more event."""
    back = 0 if not index.tail else index.last
    tail = (*index.tail, (sequence - back) * 2 + starts)
    if len(tail) < CHUNK:
        return msgspec.structs.replace(index, tail=tail, last=sequence, item=item)
    return Index(firsts=(*index.firsts, tail[0] >> 1), last=sequence, item=item, fresh=(*index.fresh, tail))


def full_chunks(index: Index) -> list[tuple[str, bytes]]:
    """The full chunks that are not stored yet, as (name, bytes)."""
    start = len(index.firsts) - len(index.fresh)
    return [(str(start + n), encode(list(chunk))) for n, chunk in enumerate(index.fresh)]


def without_chunks(index: Index, names: Iterable[str]) -> Index:
    """The index, the chunks `names` stored."""
    start = len(index.firsts) - len(index.fresh)
    done = set(names)
    left = tuple(chunk for n, chunk in enumerate(index.fresh) if str(start + n) not in done)
    return msgspec.structs.replace(index, fresh=left)


def encode_index(index: Index) -> bytes:
    """Full chunks are no part of it: they have keys of their own."""
    return encode({"firsts": index.firsts, "item": index.item, "last": index.last, "tail": index.tail})


def decode_index(raw: bytes) -> Index:
    try:
        return msgspec.json.decode(raw, type=Index)
    except msgspec.MsgspecError as error:
        raise TrunklineError("bad_event", f"not an index of pages: {error}") from error


async def history_page(
    bus: Bus, session: str, *, before: int | None = None, after: int | None = None, limit: int = 50
) -> Page:
    """A page of `limit` events: the last ones, those before the sequence `before`, or those behind `after`.

    Pages that go back are a little longer where that lets them begin with the start of a message. Events are complete up
    to the present end of the log; erased ones are missing. Raises `bad_params` for a limit outside of 1 to 1000.
    """
    if not 1 <= limit <= MAX_LIMIT or (before is not None and after is not None):
        raise TrunklineError("bad_params", f"a page has 1 to {MAX_LIMIT} events, before or after a position, not both")
    return await _Pager(bus, session).page(before, after, limit)


async def last_messages(
    bus: Bus, session: str, count: int, *, until: int | None = None, max_bytes: int | None = None
) -> list[Stored]:
    """The events of the last `count` messages at or below the sequence `until`, in log order.

    Looked for in the last MAX_LIMIT events; the oldest are left out where they have more than `max_bytes`.
    """
    return await _Pager(bus, session).messages(count, until, max_bytes)


class _Pager:
    """One request for a page: the index, the chunks it needs, and what has happened since the index was stored."""

    def __init__(self, bus: Bus, session: str) -> None:
        self._bus = bus
        self._session = session
        self._stream = bus.layout.of(session)
        self._index = Index()
        self._prefix = ""
        self._chunks: dict[int, list[Spot]] = {}
        self._recent: dict[int, Stored] = {}

    async def page(self, before: int | None, after: int | None, limit: int) -> Page:
        await self._open()
        total = self._index.total
        if after is not None:
            first = await self._count_up_to(after)
            stop = min(first + limit, total)
        else:
            stop = total if before is None else await self._count_up_to(before - 1)
            first = await self._aligned(max(stop - limit, 0))
        sequences = [sequence for sequence, _ in await self._spots(first, stop)]
        stored = await self._events(sequences)
        return Page(stored, first, total - stop, total)

    async def messages(self, count: int, until: int | None, max_bytes: int | None) -> list[Stored]:
        await self._open()
        end = stop = self._index.total if until is None else await self._count_up_to(until)
        found: list[Stored] = []
        size = 0
        while stop > 0 and end - stop < MAX_LIMIT and count > 0:
            first = max(0, stop - _STEP)
            spots = await self._spots(first, stop)
            begins = {sequence for sequence, starts in spots if starts}
            for stored in reversed(await self._events([sequence for sequence, _ in spots])):
                if stored.type not in _MESSAGES:
                    continue
                size += len(stored.raw)
                if found and max_bytes is not None and size > max_bytes:
                    return found[::-1]
                found.append(stored)
                count -= stored.sequence in begins
                if not count:
                    break
            stop = first
        return found[::-1]

    async def _open(self) -> None:
        used = await mirror.edition(self._bus, subjects.KV_PAGES)
        cursor = 0
        if used is not None:
            self._prefix = used.prefix
            entry = await kv.get(self._bus, subjects.KV_PAGES, used.key(self._session))
            if entry is not None and entry.value is not None:
                document = decode_document(entry.value)
                self._index, cursor = decode_index(bytes(document.state)), document.cursor
        # The index may be a second behind, or not there yet: the rest comes from the log itself.
        last = await direct.last(self._bus, self._stream, subjects.session_events(self._session))
        if last is not None and last.sequence > cursor:
            for stored in await read_session(self._bus, self._session, after=cursor):
                self._recent[stored.sequence] = stored
                self._index = index_event(self._index, stored)
        start = len(self._index.firsts) - len(self._index.fresh)
        self._chunks = {start + n: decode(chunk) for n, chunk in enumerate(self._index.fresh)}
        self._chunks[len(self._index.firsts)] = decode(self._index.tail)

    async def _chunk(self, number: int) -> list[Spot]:
        if number not in self._chunks:
            key = f"{self._prefix}.{self._session}.{number}"
            entry = await kv.get(self._bus, subjects.KV_PAGES, key)
            if entry is None or entry.value is None:
                raise TrunklineError(
                    "internal", f"the chunk {key!r} of the history's index is missing; rebuild trunk_pages"
                )
            self._chunks[number] = decode(msgspec.json.decode(entry.value, type=list[int]))
        return self._chunks[number]

    async def _count_up_to(self, sequence: int) -> int:
        """How many events stand at or before `sequence`."""
        firsts = self._index.firsts
        tail = self._chunks[len(firsts)]
        number = len(firsts) if tail and tail[0][0] <= sequence else bisect.bisect_right(firsts, sequence) - 1
        if number < 0:
            return 0
        chunk = await self._chunk(number)
        return number * CHUNK + bisect.bisect_right(chunk, (sequence, True))

    async def _aligned(self, first: int) -> int:
        spots = await self._spots(max(first - _ALIGN, 0), first + 1)
        for back, (_, starts) in enumerate(reversed(spots)):
            if starts:
                return first - back
        return first

    async def _spots(self, first: int, stop: int) -> list[Spot]:
        spots: list[Spot] = []
        for number in range(first // CHUNK, (max(stop, 1) - 1) // CHUNK + 1):
            chunk = await self._chunk(number) if number <= len(self._index.firsts) else []
            spots += chunk[max(first - number * CHUNK, 0) : max(stop - number * CHUNK, 0)]
        return spots

    async def _events(self, sequences: Sequence[int]) -> list[Stored]:
        absent = [sequence for sequence in sequences if sequence not in self._recent]
        every = dict(self._recent)
        if absent:
            filter = subjects.session_events(self._session)
            for stored in await direct.row(self._bus, self._stream, filter, absent[0], len(absent)):
                every[stored.sequence] = stored
            absent = [sequence for sequence in absent if sequence not in every]
        for stored in await direct.get(self._bus, self._stream, absent):
            every[stored.sequence] = stored
        return [every[sequence] for sequence in sequences if sequence in every]


class _Head(msgspec.Struct):
    item: str | None = None


_heads: Final = msgspec.json.Decoder(_Head)
_MESSAGES: Final = frozenset({"message.user", "message.assistant", "message.system"})


def index_event(index: Index, stored: Stored) -> Index:
    """The index with `stored`: a message starts where an event of a message has another item than the one before it."""
    if stored.type not in _MESSAGES:
        return append(index, stored.sequence, starts=False, item=index.item)
    try:
        item = _heads.decode(stored.raw).item
    except msgspec.MsgspecError:
        item = None
    starts = stored.type != "message.assistant" or item is None or item != index.item
    return append(index, stored.sequence, starts=starts, item=item)
