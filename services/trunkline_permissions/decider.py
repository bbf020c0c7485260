"""Exactly one end for every ask: reads asks and answers, plans, appends behind what it has folded, reads on.

Safe to run twice and to kill anywhere: an append is accepted only behind the last event of the session's permission
subject, so of two deciders one loses, folds what the other wrote, and plans again. Nothing is written before the
backlog of both streams has been read.
"""

import asyncio
import contextlib
import datetime as dt
import logging
from collections.abc import Callable

from trunkline_bus import direct, metrics, trace
from trunkline_bus.clock import ServerClock
from trunkline_bus.connection import Bus
from trunkline_bus.dead_letters import bury
from trunkline_bus.derived import DerivedWriter
from trunkline_bus.feed import Feed
from trunkline_bus.lag import lag_of
from trunkline_bus.reader import Reader, read_session
from trunkline_bus.stored import Stored
from trunkline_fold.asks import AskRecord
from trunkline_fold.policy import Circumstances, Ruling, decide
from trunkline_permissions.answers import Given
from trunkline_permissions.desk import Desk
from trunkline_permissions.host import OwnHost
from trunkline_permissions.plan import Step, arrived, next_expiry, next_step
from trunkline_permissions.policy_file import PolicyFile
from trunkline_permissions.remembered import Remembered
from trunkline_permissions.view import fold_stored, session_of
from trunkline_wire import TrunklineError, decode_answer, subjects
from trunkline_wire.asks import AnswerRejected, AskDecided, AskExpired
from trunkline_wire.errors import ErrorInfo

log = logging.getLogger(__name__)

SERVICE = "permissions"
for _by in ("policy", "person"):
    metrics.PERMISSION_DECISION_SECONDS.labels(_by)  # there before the first decision, or that one would be no increase
STALE_S = 3.0
"""Seconds to wait for the Reader to bring what the leader has; then the session is read anew."""

RETRY_S = 0.5
_WAITABLE = frozenset({"log_unavailable", "log_unwritable", "log_full"})


class Decider:
    """`run` decides until it is cancelled. `ready` is set once the backlog is read. `feed` has the filters of the asks."""

    def __init__(
        self,
        bus: Bus,
        feed: Feed,
        policy: PolicyFile,
        clock: ServerClock,
        start: Remembered,
        *,
        host: OwnHost,
    ) -> None:
        self.ready = asyncio.Event()
        self.desks = dict(start.desks)
        self._frozen = set(start.frozen)
        self._after = start.after
        self._bus = bus
        self._feed = feed
        self._policy = policy
        self._clock = clock
        self._host = host
        self._writer = DerivedWriter(bus, SERVICE)
        self._given: dict[str, list[Given]] = {}
        self._ruled: dict[str, set[str]] = {}
        self._working: set[str] = set()
        self._expiries = {desk.session: at for desk in start.desks.values() if (at := next_expiry(desk)) is not None}
        self._expiries_changed = asyncio.Event()
        self._moved = _Bell()
        self._events_read = asyncio.Event()
        self._answers_read = asyncio.Event()
        self._group = asyncio.TaskGroup()

    @property
    def open_asks(self) -> int:
        return sum(len(desk.arrived) for desk in self.desks.values())

    @property
    def oldest_ask(self) -> float:
        """Seconds that the ask has waited which has waited longest, 0 where none is open."""
        arrived = min((moment for desk in self.desks.values() for moment in desk.arrived.values()), default=None)
        return 0.0 if arrived is None else self._since(arrived)

    def _since(self, moment: str) -> float:
        return max(0.0, (self._clock.now() - dt.datetime.fromisoformat(moment)).total_seconds())

    async def run(self) -> None:
        """Raises `log_regressed` when the log is not the one it was: start again, from what is remembered of it."""
        async with self._group as group:
            group.create_task(self._read_events(), name="asks")
            group.create_task(self._read_answers(), name="answers")
            group.create_task(self._watch_expiries(), name="expiries")
            await self._events_read.wait()
            await self._answers_read.wait()
            self.ready.set()
            log.info("caught_up", extra={"sessions": len(self.desks), "open": self.open_asks})
            for session in self.desks:
                self._settle_soon(session)

    def policy_changed(self) -> None:
        """Judge the open asks again that the former policy left to people."""
        self._ruled.clear()
        for session, desk in self.desks.items():
            if desk.arrived:
                self._settle_soon(session)

    # reading

    async def _read_events(self) -> None:
        async with self._feed.follow(self._after) as follower:
            with lag_of(SERVICE, lambda: follower.pending) as lag:
                async for batch in follower.batches():
                    for stored in batch:
                        with trace.taking(SERVICE, stored):
                            await self._fold(stored)
                    if batch:
                        lag.took(batch, live=self.ready.is_set())
                    if follower.caught_up.is_set():
                        self._events_read.set()

    async def _fold(self, stored: Stored) -> None:
        session = session_of(stored)
        if session is None or session in self._frozen:
            return
        before = self.desks.get(session) or Desk(session=session)
        try:
            desk = fold_stored(before, stored)
        except Exception as error:  # noqa: BLE001 - whatever a fold raises is poison
            await self._freeze(session, stored, error)
            return
        if desk is before:
            return
        self._put(desk)
        if desk.spending is before.spending:  # a cost alone leaves nothing to say
            self._settle_soon(session)

    async def _freeze(self, session: str, stored: Stored, error: Exception) -> None:
        """From here on nothing is said in this session: nobody knows what its log means."""
        if session in self._frozen:
            return
        self._frozen.add(session)
        self._moved.ring(session)
        await bury(self._bus, SERVICE, stored, error)

    def _put(self, desk: Desk) -> None:
        self.desks[desk.session] = desk
        expiry = next_expiry(desk)
        if expiry != self._expiries.get(desk.session):
            if expiry is None:
                del self._expiries[desk.session]
            else:
                self._expiries[desk.session] = expiry
            self._expiries_changed.set()
        self._moved.ring(desk.session)

    async def _read_answers(self) -> None:
        async with Reader(self._bus, subjects.COMMANDS, [subjects.ALL_ANSWERS]) as reader:
            async for batch in reader.batches():
                for stored in batch:
                    await self._take_answer(stored)
                if reader.caught_up.is_set():
                    self._answers_read.set()

    async def _take_answer(self, stored: Stored) -> None:
        parsed = subjects.parse(stored.subject)
        if parsed is None:
            return
        try:
            answer = decode_answer(stored.raw)
            if answer.session != parsed.session:
                raise TrunklineError(
                    "bad_params", f"an answer for {answer.session!r} on the subject of another session"
                )
        except TrunklineError as error:
            if self.ready.is_set():
                await bury(self._bus, SERVICE, stored, error)
            return
        given = Given(answer=answer, sequence=stored.sequence, time_ns=stored.time_ns, user=parsed.rest)
        self._given.setdefault(parsed.session, []).append(given)
        self._settle_soon(parsed.session)

    # deciding

    def _settle_soon(self, session: str) -> None:
        if self.ready.is_set() and session not in self._working and session not in self._frozen:
            self._working.add(session)
            self._group.create_task(self._settle(session), name=f"settle-{session}")

    async def _settle(self, session: str) -> None:
        """Append what the session lacks, one event after the other, until nothing is left to say."""
        try:
            while session not in self._frozen:
                try:
                    if not await self._take_step(session):
                        return
                except TrunklineError as error:
                    if error.code not in _WAITABLE:
                        raise
                    log.warning("decision_waits", extra={"session": session, "code": error.code})
                    await asyncio.sleep(RETRY_S)
        finally:
            # No await between the last plan and this: whatever comes later starts another task.
            self._working.discard(session)
            self._ruled.setdefault(session, set()).intersection_update(self._arrived(session))
            if not self._ruled[session]:
                del self._ruled[session]

    async def _take_step(self, session: str) -> bool:
        """Append one event, or learn more; False if nothing is left to say."""
        self._forget_answered(session)
        unknown = self._first_unknown(session)
        if unknown is not None and not await self._known_by_now(session, unknown):
            return True
        desk = self.desks.get(session)
        if desk is None or session in self._frozen:
            return False
        given, ruled = self._given.get(session, []), self._ruled.setdefault(session, set())
        step = next_step(desk, given, self._clock.now(), self._ruling, ruled)
        if step is None:
            return False
        await self._append(desk, step)
        return True

    async def _append(self, desk: Desk, step: Step) -> None:
        expected = desk.asks.permission_seq
        try:
            sequence = await self._writer.append(
                desk.session,
                "permission",
                step.data,
                expected=expected,
                src=step.src,
                cause=step.cause,
                source=step.source,
            )
        except TrunklineError as error:
            if error.code in _WAITABLE or not isinstance(step.data, AskDecided) or step.data.answer is None:
                raise
            # The answer itself can't be stored: say so, and leave the ask open.
            rejected = AnswerRejected(ask=step.data.ask, answer=step.data.answer, error=ErrorInfo.of(error))
            sequence = await self._writer.append(
                desk.session, "permission", rejected, expected=expected, src=step.src, cause=step.cause
            )
        if sequence is None:
            metrics.PERMISSION_LOST_APPENDS.inc()
            await self._until(desk.session, lambda now: now.asks.permission_seq > expected)
            return
        self._count(step, desk)
        await self._until(desk.session, lambda now: now.asks.sequence >= sequence)

    async def _until(self, session: str, reached: Callable[[Desk], bool]) -> None:
        """Wait until the Reader has brought that; read the session anew when it does not."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STALE_S):
                while session not in self._frozen and not reached(self.desks.get(session) or Desk(session=session)):
                    await self._moved.wait(session)
                return
        log.warning("session_read_anew", extra={"session": session})
        desk = Desk(session=session)
        for stored in await read_session(self._bus, session):
            if session_of(stored) == session:
                try:
                    desk = fold_stored(desk, stored)
                except Exception as error:  # noqa: BLE001 - as in `_fold`
                    await self._freeze(session, stored, error)
                    return
        known = self.desks.get(session)
        if known is None or desk.asks.sequence >= known.asks.sequence:
            self._put(desk)

    def _first_unknown(self, session: str) -> Given | None:
        """The first answer to an ask that was not read yet."""
        desk = self.desks.get(session) or Desk(session=session)
        return next((one for one in self._given.get(session, []) if desk.record(one.answer.ask) is None), None)

    async def _known_by_now(self, session: str, given: Given) -> bool:
        """Read up to the session's last ask, which an answer may have overtaken; False if the answer was dropped."""
        last = await direct.last(self._bus, subjects.EVENTS, subjects.event(session, "agent.ask"))
        if last is not None:
            sequence = last.sequence
            await self._until(session, lambda now: now.asks.sequence >= sequence)
        desk = self.desks.get(session)
        if desk is not None and desk.exists:
            return True
        log.warning("answer_without_session", extra={"session": session, "ask": given.answer.ask})
        self._given[session].remove(given)
        return False

    def _forget_answered(self, session: str) -> None:
        desk = self.desks.get(session)
        if desk is None or session not in self._given:
            return
        mark = desk.asks.marks.get(subjects.COMMANDS, 0)
        left = [one for one in self._given[session] if one.sequence > mark and not desk.answered(one.answer)]
        if left:
            self._given[session] = left
        else:
            del self._given[session]

    def _ruling(self, desk: Desk, record: AskRecord) -> Ruling:
        circumstances = Circumstances(
            adapter=desk.adapter or "",
            cwd=desk.cwd,
            home=self._policy.user_home,
            moment=arrived(desk, record),
            workspace=desk.workspace,
            cost_usd=desk.costs.get(record.ask),
            real=self._host.looker(desk.host),
        )
        return decide(self._policy.policy, record, circumstances)

    def _arrived(self, session: str) -> set[str]:
        desk = self.desks.get(session)
        return set(desk.arrived) if desk is not None else set()

    def _count(self, step: Step, desk: Desk) -> None:
        data = step.data
        if isinstance(data, AskDecided):
            by = "policy" if data.answer is None else "person"
            metrics.PERMISSION_DECISIONS.labels(by, data.behaviour).inc()
            if (arrived := desk.arrived.get(data.ask)) is not None:
                metrics.PERMISSION_DECISION_SECONDS.labels(by).observe(self._since(arrived), trace.exemplar())
        elif isinstance(data, AskExpired):
            metrics.PERMISSION_EXPIRED.inc()
        elif isinstance(data, AnswerRejected):
            metrics.PERMISSION_REJECTED.labels(data.error.code).inc()
        log.info("appended", extra={"session": desk.session, "type": data.TYPE, "src": step.src})

    # time

    async def _watch_expiries(self) -> None:
        await self.ready.wait()
        while True:
            self._expiries_changed.clear()
            now = self._clock.now()
            for session, expiry in list(self._expiries.items()):
                if expiry <= now:
                    self._settle_soon(session)
            future = [expiry for expiry in self._expiries.values() if expiry > now]
            # The server's clock is read anew from time to time, so no sleep is long.
            delay = min(30.0, max(0.001, (min(future) - now).total_seconds())) if future else 30.0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._expiries_changed.wait()


class _Bell:
    """Wakes those who wait for news of one session."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Event] = {}

    def ring(self, session: str) -> None:
        event = self._waiting.pop(session, None)
        if event is not None:
            event.set()

    async def wait(self, session: str) -> None:
        await self._waiting.setdefault(session, asyncio.Event()).wait()
