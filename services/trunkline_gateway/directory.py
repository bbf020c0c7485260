"""Every session's state and asks, folded from one shared Reader: what lists, checks and answers are read from.

Whatever the log holds up to `position` is in here, and nothing else. The gateway keeps no truth: a new one folds the
same log to the same states.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeVar

from msgspec.structs import replace

from trunkline_bus import direct, trace
from trunkline_bus.connection import Bus
from trunkline_bus.lag import Lag, lag_of
from trunkline_bus.reader import Reader
from trunkline_bus.stored import Stored
from trunkline_fold.asks import Ask, AsksState, fold_asks
from trunkline_fold.session import SessionState, fold_session, initial
from trunkline_gateway.base import Base, load_base
from trunkline_wire import Event, TrunklineError, subjects
from trunkline_wire.session import SessionErased
from trunkline_wire.work import CommandFailed, CommandFinished, CommandRejected

log = logging.getLogger(__name__)

CommandEnd = CommandFinished | CommandFailed | CommandRejected

CONSUMER: Final = "gateway"
RETRY_S: Final = 1.0
MAX_ENDS: Final = 10_000

T = TypeVar("T")


class Listener(Protocol):
    """Who wants every event as it comes, in stream order. Must not block."""

    def on_stored(self, session: str, stored: Stored) -> None:
        """What has come; in the same step it is read and folded, if it can be."""
        ...

    def on_folded(self, event: Event) -> None:
        """The session's state holds that event now."""
        ...

    def on_begun(self) -> None:
        """What is read next comes after `position`; what the log holds up to there is folded already, and is not told."""
        ...

    def on_diverged(self) -> None:
        """The log went back: what was seen from it may no longer be there."""
        ...


class Directory:
    """Run `run()` as a task; `ready` is set once the log's backlog is folded."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}
        self.listeners: list[Listener] = []
        self.ready = asyncio.Event()
        self._lag: Lag | None = None
        self._reset()

    def _reset(self, base: Base | None = None) -> None:
        base = base or Base()
        self.position = base.position
        self.last_id: str | None = None
        self.states: dict[str, SessionState] = dict(base.states)
        self._asks: dict[str, AsksState] = dict(base.asks)
        self._session_of_ask = {ask: session for session, asks in base.asks.items() for ask in asks.asks}
        self._frozen = set(base.frozen)
        self._ends: dict[str, CommandEnd] = {}

    async def run(self) -> None:
        """Read and fold until cancelled; a log that went back is read anew from its start."""
        while True:
            try:
                await self._read()
            except TrunklineError as error:
                log.warning("directory_restarts", extra={"code": error.code, "error": error.message})
                self.ready.clear()
                self._reset()
                with contextlib.suppress(TrunklineError):
                    await self._bus.read_log_id()
                for listener in list(self.listeners):
                    listener.on_diverged()
                await asyncio.sleep(RETRY_S)

    async def _read(self) -> None:
        self._reset(await load_base(self._bus))
        for listener in self.listeners:
            listener.on_begun()
        log.info("directory_begins", extra={"position": self.position, "sessions": len(self.states)})
        reader = Reader(self._bus, self._bus.layout.only, [subjects.ALL_EVENTS], after=self.position, take=self._take)
        with lag_of(CONSUMER, lambda: reader.pending) as self._lag:
            async with reader:
                await self._follow(reader)

    async def _follow(self, reader: Reader) -> None:
        async for batch in reader.batches():
            for stored in batch:
                self._take(stored)
            if not batch:
                self.ready.set()
                log.info("directory_ready", extra={"sessions": len(self.states), "position": self.position})
            elif not self.ready.is_set():
                # Folding a long backlog must not starve the health server.
                await asyncio.sleep(0)

    def _take(self, stored: Stored) -> None:
        with trace.taking(CONSUMER, stored):
            self._hand_on(stored)
        if self._lag is not None:
            self._lag.took((stored,), live=self.ready.is_set())

    def _hand_on(self, stored: Stored) -> None:
        self.position, self.last_id = stored.sequence, stored.id
        subject = subjects.parse(stored.subject)
        if subject is None:
            return
        session = subject.session
        # On its way to the clients before it is folded: nothing that they do about it can come in between.
        for listener in self.listeners:
            listener.on_stored(session, stored)
        try:
            event = stored.event()
        except TrunklineError as error:
            self._freeze(session, stored, error)
            return
        self._fold(session, event, stored, subject.rest)
        for listener in self.listeners:
            listener.on_folded(event)
        match event.data:
            case CommandFinished() | CommandFailed() | CommandRejected():
                self._note_end(event.data)
            case _:
                pass
        self._wake(session)

    def _fold(self, session: str, event: Event, stored: Stored, channel: str) -> None:
        if isinstance(event.data, SessionErased):
            # What came before is gone from the log, what could not be read too.
            self._frozen.discard(session)
            self.states.pop(session, None)
            self._forget_asks(session)
        if session in self._frozen:
            return
        try:
            self.states[session] = fold_session(self.states.get(session) or initial(session), event, stored.sequence)
            asks = self._asks.get(session)
            folded = fold_asks(
                asks or AsksState(), event, stored.sequence, "permission" if channel == "permission" else None
            )
            if asks is None and not folded.asks and folded.incarnation is None:
                return
            self._asks[session] = folded
            if asks is None or asks.asks is not folded.asks:
                for ask in folded.asks:
                    self._session_of_ask[ask] = session
        except Exception as error:  # noqa: BLE001 - one session that can't be folded must not hide the others
            self._freeze(session, stored, error)

    def _forget_asks(self, session: str) -> None:
        for ask in self._asks.pop(session, AsksState()).asks:
            self._session_of_ask.pop(ask, None)

    def _freeze(self, session: str, stored: Stored, error: Exception) -> None:
        self._frozen.add(session)
        state = self.states.get(session) or initial(session)
        self.states[session] = replace(state, status="degraded")
        log.error(
            "session_degraded", extra={"session": session, "sequence": stored.sequence, "error": type(error).__name__}
        )

    def _note_end(self, end: CommandEnd) -> None:
        # The first end counts: a repeated command is answered with it again.
        self._ends.setdefault(end.command, end)
        while len(self._ends) > MAX_ENDS:
            del self._ends[next(iter(self._ends))]

    def command_end(self, command: str) -> CommandEnd | None:
        """How a command ended, as long as it is among the latest MAX_ENDS."""
        return self._ends.get(command)

    def asks(self, session: str | None = None) -> Iterator[Ask]:
        """The asks of one session or of all, each session's in stream order."""
        for key in [session] if session is not None else sorted(self._asks):
            state = self._asks.get(key)
            if state is not None:
                yield from sorted(state.asks.values(), key=_by_sequence)

    def asks_of(self, session: str) -> AsksState:
        """The fold of a session's asks and of its own rules."""
        return self._asks.get(session) or AsksState()

    def ask(self, ask: str) -> Ask | None:
        """The ask of this id, open or ended."""
        session = self._session_of_ask.get(ask)
        return self._asks[session].asks.get(ask) if session is not None else None

    async def session(self, session: str) -> SessionState:
        """The state as of the log's end for this session. Raises TrunklineError `unknown_session`, `log_unavailable`."""
        last = await direct.last(self._bus, subjects.EVENTS, subjects.session_events(session))
        if last is None:
            raise TrunklineError("unknown_session", f"there is no session {session!r}", session=session)
        await self.reached(last.sequence)
        return self.states[session]

    async def reached(self, sequence: int, within: float = 10.0) -> None:
        """Wait until everything up to `sequence` is folded. Raises TrunklineError `log_unavailable`."""
        try:
            await self.until("*", lambda: self.position >= sequence or None, within)
        except TimeoutError:
            raise TrunklineError(
                "log_unavailable", f"the gateway is {sequence - self.position} events behind the log; try again"
            ) from None

    async def until(self, key: str, check: Callable[[], T | None], within: float) -> T:
        """What `check` gives once it is not None, looked at after each event of session `key` (of any, for `*`).

        Raises TimeoutError after `within` seconds.
        """
        async with asyncio.timeout(within):
            while (found := check()) is None:
                future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiters.setdefault(key, set()).add(future)
                try:
                    await future
                finally:
                    self._waiters.get(key, set()).discard(future)
            return found

    def _wake(self, session: str) -> None:
        for key in (session, "*"):
            for future in self._waiters.pop(key, ()):
                if not future.done():
                    future.set_result(None)


def _by_sequence(ask: Ask) -> int:
    return ask.sequence
