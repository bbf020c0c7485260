"""The one writer of a session: facts in order, fenced by the server; streaming text between them."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Mapping
from types import TracebackType
from typing import Final, Self

import msgspec
from opentelemetry.trace import Span

from trunkline_bus import metrics, ownership, trace
from trunkline_bus.append import Conflict, begin, store
from trunkline_bus.blobs import Blobs
from trunkline_bus.capacity import ALMOST_FULL
from trunkline_bus.client import Received
from trunkline_bus.connection import Bus
from trunkline_bus.deltas import DeltaBuffer, Passing, Piece
from trunkline_bus.mux import Lost
from trunkline_bus.outcome import Message
from trunkline_bus.ownership import Ownership
from trunkline_bus.shrink import LIMIT
from trunkline_bus.verbatim import verbatim
from trunkline_wire import (
    NO_NATIVE,
    AgentRef,
    Data,
    Event,
    Source,
    TrunklineError,
    encode,
    make_event,
    subjects,
    timestamp,
)
from trunkline_wire.events import is_ask
from trunkline_wire.session import SessionCreated
from trunkline_wire.subjects import HEADER_ID, HEADER_TYPE
from trunkline_wire.turn import DeltaKind

log = logging.getLogger(__name__)

QUEUE_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of waiting events above which `room` waits."""


CONGESTED_S: Final = 0.1
"""Seconds between two looks whether a server that takes nothing takes something again; deltas merge meanwhile."""


class _Queued(msgspec.Struct):
    event: Event
    message: Message
    """As it is stored, unless it has to be shrunk."""
    span: Span | None = None
    """Of its append, where spans are exported."""
    begun: Awaitable[Received] | None = None
    """The answer, where it was sent in the step that queued it."""


class SessionWriter:
    """Appends a session's `agent.*` events one by one, each behind the one before, and its deltas in between.

    Make one with `create` or `claim`. It stops for good, with `error` set, when another owner has taken the session
    (`fenced`), the log went back (`log_regressed`), or refused too long (`log_full`, `log_unwritable`); an
    unreachable server is waited for, and `condition` says what hinders it meanwhile. Nothing of a stopped writer is
    ever stored.
    """

    def __init__(self, bus: Bus, ownership: Ownership, agent: AgentRef) -> None:
        self.session: Final = ownership.session
        self.epoch: Final = ownership.epoch
        self.claim_sequence: Final = ownership.sequence
        """Stream sequence of the event that made this owner: `session.created` or `session.claimed`."""
        self.seq = ownership.seq
        """Number of the last event given to `append`."""
        self.error: TrunklineError | None = None
        self._bus, self._agent = bus, agent
        self._hindrance: TrunklineError | None = None
        bus.capacity.watch(bus.js_cmd)
        self._blobs = Blobs(bus)
        self._fence = subjects.agent_fence(self.session)
        self._fact, self._ask = subjects.event(self.session, "agent.fact"), subjects.event(self.session, "agent.ask")
        self._delta = subjects.delta(self.session)
        self._stored_seq, self._stored_sequence, self._stored_id = self.seq, ownership.sequence, ownership.event_id
        self._stored_at = asyncio.get_running_loop().time()
        self._queue: deque[_Queued] = deque()
        self._bytes = 0
        self._deltas = DeltaBuffer()
        self._losses = bus.mux.losses
        self._wake = asyncio.Event()
        self._moved: list[tuple[int, asyncio.Future[None]]] = []
        """(seq, future): who waits for an event to be stored."""
        self._room: list[asyncio.Future[None]] = []
        self._closing = False
        self._idle = False
        """Whether nothing is queued or outstanding, and the task waits."""
        self._stopped = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"writer {self.session}")

    @classmethod
    async def create(
        cls,
        bus: Bus,
        created: SessionCreated,
        *,
        session: str,
        worker: str,
        agent: AgentRef,
        time: str | None = None,
        source: Source | None = None,
    ) -> "SessionWriter":
        """Begin a session with its `session.created`. Where the same spawn request has made it before, claim it.

        Raises TrunklineError `session_exists`, and what `claim` raises.
        """
        owned = await ownership.create(
            bus, created, session=session, worker=worker, agent=agent, time=time, source=source
        )
        return cls(bus, owned, agent)

    @classmethod
    async def claim(
        cls,
        bus: Bus,
        session: str,
        *,
        worker: str,
        host: str,
        agent: AgentRef,
        incarnation: str | None = None,
        despite_flapping: bool = False,
    ) -> "SessionWriter":
        """Take a session over with `session.claimed`: from then on nothing of its former owner is stored.

        `incarnation` names the agent's process if it survived. Raises TrunklineError `unknown_session`, `fenced`
        where somebody else claimed at the same time, `ownership_flapping` (see `ownership`).
        """
        owned = await ownership.claim(
            bus,
            session,
            worker=worker,
            host=host,
            agent=agent,
            incarnation=incarnation,
            despite_flapping=despite_flapping,
        )
        return cls(bus, owned, agent)

    @property
    def condition(self) -> TrunklineError | None:
        """What hinders the log now (`log_unwritable`, `log_full`), or that it is nearly full (`log_full` with `fill`)."""
        return self._hindrance or self._bus.capacity.condition

    @property
    def log_fill(self) -> float:
        """How full the log is, 0 to 1."""
        return self._bus.capacity.fill

    @property
    def at_limit(self) -> bool:
        """Whether running turns have to end: the log is almost full, or refuses already."""
        refused = self._hindrance is not None and self._hindrance.code == "log_full"
        return refused or self._bus.capacity.fill >= ALMOST_FULL

    @property
    def stored_sequence(self) -> int:
        """Stream sequence of the last event that is stored."""
        return self._stored_sequence

    @property
    def stored_at(self) -> float:
        """Loop time of the last acknowledgement."""
        return self._stored_at

    @property
    def queued(self) -> int:
        """Events that wait to be stored."""
        return len(self._queue)

    def use_agent(self, agent: AgentRef) -> None:
        """Name the agent on the events to come (its version is known only once it runs)."""
        self._agent = agent

    def append(
        self,
        data: Data,
        *,
        turn: str | None = None,
        item: str | None = None,
        lane: str | None = None,
        cause: str | None = None,
        source: Source | None = None,
        origin: tuple[int, int, int] | None = None,
        native: bytes | None = None,
        time: str | None = None,
        headers: Mapping[str, str] | None = None,
        id: str | None = None,
    ) -> Event:
        """Queue an event as the session's next. `native` is the agent's message as JSON, `time` RFC 3339, `headers` what
        else is stored with it, by default the trace of the caller; `id` an event id that is derived, not minted.

        The event comes back as given; an oversize one is stored with references to the blob store.
        Raises the error that stopped the writer.
        """
        self._check()
        event = make_event(
            data,
            id=id,
            session=self.session,
            time=time or timestamp(),
            seq=self.seq + 1,
            epoch=self.epoch,
            origin=origin,
            turn=turn,
            item=item,
            lane=lane,
            cause=cause,
            source=source,
            agent=self._agent,
            native=verbatim(native) if native is not None else NO_NATIVE,
        )
        payload = encode(event)
        carried, span = trace.appending(event.type, subjects.EVENTS, event.id, headers)
        message = Message(
            subject=self._ask if is_ask(data) else self._fact,
            filter=self._fence,
            id=event.id,
            type=event.type,
            payload=payload,
            headers=carried,
        )
        queued = _Queued(event, message, span)
        self.seq += 1
        self._queue.append(queued)
        self._bytes += len(payload)
        if self._idle and len(payload) <= LIMIT:
            # Nothing is outstanding: it goes out in this step, before its caller does anything else.
            queued.begun = begin(self._bus.mux, message, self._stored_sequence)
        self._idle = False
        metrics.APPEND_QUEUE_BYTES.inc(len(payload))
        self._wake.set()
        return event

    async def flush(self) -> int:
        """Wait until all that was appended before is stored; returns the stream sequence of the last stored event.

        Raises the error that stopped the writer.
        """
        if self._stored_seq < self.seq:
            self._check()
            await self._wait(self._moved, self.seq)
        return self._stored_sequence

    async def room(self) -> None:
        """Wait while QUEUE_LIMIT bytes or more are queued. Raises the error that stopped the writer."""
        self._check()
        if self._bytes >= QUEUE_LIMIT:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._room.append(future)
            await future

    async def wait_stopped(self) -> None:
        """Wait until it has stopped, by `close` or by an error, which is then in `error`."""
        await self._stopped.wait()

    def piece(
        self,
        item: str,
        block: int,
        kind: DeltaKind,
        text: str,
        *,
        turn: str | None = None,
        lane: str | None = None,
    ) -> None:
        """Text that the agent added to a block of an unfinished message; sent merged, without acknowledgement."""
        self._deltas.add(item, block, kind, text, turn=turn, lane=lane)
        self._pieces_wait()

    def progress(
        self, data: Passing, *, item: str | None = None, turn: str | None = None, lane: str | None = None
    ) -> None:
        """A tool's progress or a screen: the latest counts, sent like `piece`."""
        self._deltas.passing(data, item=item, turn=turn, lane=lane)
        self._pieces_wait()

    def end_item(self, item: str) -> None:
        """The message or tool call is finished: nothing more of its pieces is sent."""
        self._deltas.end(item)

    async def close(self, *, within: float | None = None) -> None:
        """Store what is queued, then stop; after `within` seconds stop with what was not stored lost.

        Raises nothing: `error` says what stopped it before.
        """
        self._closing = True
        self._wake.set()
        try:
            async with asyncio.timeout(within):
                await self._stopped.wait()
        except TimeoutError:
            log.warning("writer.closed_with_rest", extra={"session": self.session, "events": len(self._queue)})
        self._task.cancel()
        await asyncio.wait((self._task,))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _check(self) -> None:
        if self.error is not None:
            raise self.error
        if self._closing:
            raise TrunklineError("not_running", f"the writer of {self.session} is closed: claim the session anew")

    async def _wait(self, waiting: list[tuple[int, asyncio.Future[None]]], seq: int) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append((seq, future))
        await future

    async def _run(self) -> None:
        try:
            while self._queue or not self._closing:
                if self._queue:
                    await self._append_next()
                else:
                    await self._stream()
        except TrunklineError as error:
            self.error = error
            metrics.WRITERS_STOPPED.labels(error.code).inc()
            log.warning("writer.stopped", extra={"session": self.session, "code": error.code, "epoch": self.epoch})
        except Exception as error:
            log.exception("writer.failed", extra={"session": self.session})
            self.error = TrunklineError("internal", f"the writer of {self.session} failed: {error!r}")
        finally:
            metrics.APPEND_QUEUE_BYTES.dec(self._bytes)
            self._bytes = 0
            if self._queue and self.error is None:
                self.error = TrunklineError(
                    "not_running", f"the writer of {self.session} was closed before it was done"
                )
            self._release()
            self._stopped.set()

    async def _append_next(self) -> None:
        first = self._queue[0]
        message, size = first.message, len(first.message.payload)
        if size > LIMIT:
            payload = await self._blobs.shrink_encoded(first.event, message.payload, condition=self._hindered)
            message = msgspec.structs.replace(message, payload=payload)
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            sequence = await store(
                self._bus.mux,
                self._bus.layout.of(self.session),
                message,
                expected=self._stored_sequence,
                expected_id=self._stored_id,
                condition=self._hindered,
                begun=first.begun,
            )
        except Conflict as conflict:
            raise TrunklineError(
                "fenced",
                f"another worker owns {self.session} now: stop its agent, and never claim it back",
                session=self.session,
                epoch=self.epoch,
                sequence=conflict.last.sequence,
            ) from conflict
        self._stored_at = loop.time()
        metrics.APPENDS.labels(message.type).inc()
        metrics.APPEND_SECONDS.observe(self._stored_at - started, trace.exemplar(first.span) if first.span else None)
        if first.span is not None:
            first.span.end()
        self._queue.popleft()
        self._stored_sequence, self._stored_id = sequence, message.id
        assert first.event.seq is not None
        self._stored_seq = first.event.seq
        self._bytes -= size
        metrics.APPEND_QUEUE_BYTES.dec(size)
        self._release()

    def _hindered(self, condition: TrunklineError | None) -> None:
        self._hindrance = condition

    def _release(self) -> None:
        """Tell those who wait for an event or for room."""
        left: list[tuple[int, asyncio.Future[None]]] = []
        for seq, future in self._moved:
            if future.done():
                continue
            if seq <= self._stored_seq:
                future.set_result(None)
            elif self.error is not None:
                future.set_exception(self.error)
            else:
                left.append((seq, future))
        self._moved = left
        if self._bytes < QUEUE_LIMIT:
            for future in self._room:
                if not future.done() and self.error is not None:
                    future.set_exception(self.error)
                elif not future.done():
                    future.set_result(None)
            self._room.clear()

    def _pieces_wait(self) -> None:
        """Send a delta that is due in this step, if nothing goes before it; else the task sees to it."""
        free = self._idle and not self._wake.is_set() and not self._bus.writing.congested
        if free and self._bus.mux.losses == self._losses:
            piece = self._deltas.take(asyncio.get_running_loop().time(), self._stored_seq)
            if piece is not None:
                try:
                    self._send(piece)
                except (Lost, TrunklineError):
                    self._deltas.doubt()  # the task meets the same, and knows what to do
        if self._deltas.due() is not None:
            self._wake.set()

    async def _stream(self) -> None:
        """Send one delta if one is due, else wait for what comes first: an event, or the next delta's time."""
        loop = asyncio.get_running_loop()
        if self._bus.mux.losses != self._losses:
            self._losses = self._bus.mux.losses
            self._deltas.doubt()
        congested = self._bus.writing.congested
        piece = self._deltas.take(loop.time(), self._stored_seq) if not congested else None
        if piece is not None:
            try:
                self._send(piece)
            except Lost:
                self._deltas.doubt()
                await self._bus.mux.connected()
            return
        due = self._deltas.due()
        if due is not None and congested:
            due = loop.time() + CONGESTED_S
        timer = loop.call_at(due, self._wake.set) if due is not None else None
        self._idle = not self._wake.is_set()
        try:
            await self._wake.wait()
        finally:
            self._idle = False
            if timer is not None:
                timer.cancel()
        self._wake.clear()

    def _send(self, piece: Piece) -> None:
        """Raises Lost while the connection is down."""
        event = make_event(
            piece.data,
            session=self.session,
            time=timestamp(),
            epoch=self.epoch,
            turn=piece.turn,
            item=piece.item,
            lane=piece.lane,
        )
        try:
            self._bus.mux.send(self._delta, encode(event), {HEADER_ID: event.id, HEADER_TYPE: event.type})
        except TrunklineError as error:
            if error.code != "too_large":
                raise
            log.warning("delta.too_large", extra={"session": self.session, "type": event.type})
        else:
            metrics.DELTAS.labels("yes" if piece.whole else "no").inc()
