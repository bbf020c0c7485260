"""The Reader: everything of a stream that matches, in order, each once, through restarts and elections.

Overlapping pull requests on an ephemeral consumer; the consumer's sequence must be contiguous, heartbeats must keep
coming, and whatever goes wrong ends in a new consumer from the last sequence + 1. Nothing runs beside the iterator:
who does not iterate does not pull, so memory is bounded by the requests under way.
"""

import asyncio
import contextlib
import datetime as dt
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import nats.errors
from nats.aio.subscription import Subscription
from nats.js.errors import APIError

from trunkline_bus import direct, jsapi, metrics
from trunkline_bus.client import Received
from trunkline_bus.connection import Bus
from trunkline_bus.pace import Pace
from trunkline_bus.patience import PATIENCE, UNANSWERED
from trunkline_bus.pulls import Pulls
from trunkline_bus.stored import Stored, make
from trunkline_wire import subjects
from trunkline_wire.codec import timestamp
from trunkline_wire.errors import TrunklineError
from trunkline_wire.ids import uuid7_hex

log = logging.getLogger(__name__)

WINDOW: Final = 1000
"""Messages asked for and not yet received, at most."""

MAX_BYTES: Final = 4 * 1024 * 1024
"""Bytes that one pull request may bring, at most; twice as much may be under way."""

HEARTBEAT: Final = 3.0
"""Seconds between the server's signs of life on a pull that waits."""

_EXPIRES: Final = 30.0
_INACTIVE: Final = 60.0
_TICK: Final = 0.25
_S: Final = 1_000_000_000
_ENDS: Final = ("Batch Completed", "Message Size Exceeds MaxBytes")


class Reader:
    """Reads `filters` of `stream` above the sequence `after`; live for ever, or up to and with the sequence `until`.

    `since` starts at a time instead of a sequence. With `pace` it looks every `pace` seconds for what has come, instead
    of being woken by each message: for work that nobody waits for, on cores that others need. A message after a pause
    comes at once, `hurry` fetches the next. With `take` what comes after the backlog is given to it, in the step in which
    it arrived, wherever nothing waits before it; the batches have the rest. Use it as an async context manager and iterate
    once, over `batches()` or the Reader itself. The first batch after the backlog is empty: it is given when everything the
    stream held at the start has been taken, and from then on `caught_up` is set.

    Iterating raises TrunklineError `log_regressed` when the log no longer holds what was read from it: its end lies
    before the Reader's position, another message stands there, or the stream is a new one. DELTAS and KV streams may
    go back or come anew: there the Reader starts over, counts it in `restarts`, and what it yields may repeat.
    """

    def __init__(
        self,
        bus: Bus,
        stream: str,
        filters: Sequence[str],
        *,
        after: int = 0,
        until: int | None = None,
        since: dt.datetime | None = None,
        window: int = WINDOW,
        max_bytes: int = MAX_BYTES,
        heartbeat: float = HEARTBEAT,
        pace: float = 0.0,
        take: Callable[[Stored], None] | None = None,
    ) -> None:
        self.stream = stream
        self.filters = tuple(filters)
        self.until = until
        self.caught_up = asyncio.Event()
        self.restarts = 0
        self._bus = bus
        self._connection = bus.reading
        self._since = since
        self._heartbeat = heartbeat
        self._may_start_over = stream == subjects.DELTAS or stream.startswith(("KV_", "OBJ_"))
        # Where it stands: `_received` runs ahead of `_taken` by what is buffered.
        self._received: int | None = after
        self._pending = "0"
        self._taken = after
        self._newest: Stored | None = None
        self._buffer: list[Stored] = []
        self._take = take
        self._waits = False
        """Whether all that was received has been handed over, and the iterator waits for more."""
        self._finished = False
        # What the leader said of the stream: its creation, its end, the last sequence of the filters.
        self._created_ns: int | None = None
        self._end = 0
        self._target = 0
        # The consumer of the moment.
        self._consumer = ""
        self._expected = 1
        self._pulls = Pulls(window, max_bytes)
        self._pace = Pace(pace) if pace else None
        self._tokens = itertools.count(1)
        self._reconnects = 0
        self._heard = 0.0
        self._alive = False
        self._failure: str | None = "start"
        self._error: TrunklineError | None = None
        self._broken: Exception | None = None
        self._look_again = False
        self._wake = asyncio.Event()
        self._inbox = ""
        self._subscription: Subscription | None = None
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def new(cls, bus: Bus, stream: str, filters: Sequence[str], **options: Any) -> Self:
        """A Reader of only what is stored after it was opened."""
        reader = cls(bus, stream, filters, **options)
        reader._received = None
        return reader

    @property
    def position(self) -> int:
        """Everything up to this sequence that matches has been handed over (or lies before the start)."""
        return self._taken

    @property
    def pending(self) -> int:
        """Messages that the server had for it beside the last that came, and those that nobody has taken yet."""
        return int(self._pending) + len(self._buffer)

    async def __aenter__(self) -> Self:
        self._inbox = self._connection.new_inbox()
        self._subscription = await self._connection.subscribe_direct(f"{self._inbox}.*", self._on_message)
        try:
            await self._recover()
        except BaseException:
            await self._close()
            raise
        self._tick()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def __aiter__(self) -> AsyncIterator[Stored]:
        async for batch in self.batches():
            for stored in batch:
                yield stored

    async def batches(self) -> AsyncIterator[list[Stored]]:
        """What has arrived, in order, whenever something has; once an empty list, when the backlog has been taken."""
        while not self._is_done():
            if self._buffer:
                batch, self._buffer = self._buffer, []
                batch = self._up_to_until(batch)
                if batch:
                    yield batch
                    self._taken = max(self._taken, batch[-1].sequence)
                await self._pull()
            elif not self.caught_up.is_set() and self._taken >= self._target:
                self.caught_up.set()
                yield []
            elif error := self._broken or self._error:
                raise error
            elif self._failure is not None:
                await self._recover()
            elif self._look_again:
                await self._measure_again()
            else:
                self._wake.clear()
                await self._pull()
                self._waits = self.caught_up.is_set()
                await self._woken()
                self._waits = False
        if not self.caught_up.is_set():
            self.caught_up.set()
            yield []

    def hurry(self) -> None:
        """There is a message that somebody waits for."""
        if self._pace is not None:
            self._pace.hurry()
            self._wake.set()

    async def _woken(self) -> None:
        due = self._pace.due if self._pace is not None else None
        timer = asyncio.get_running_loop().call_at(due, self._wake.set) if due is not None else None
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _is_done(self) -> bool:
        if self.until is None:
            return False
        return self._finished or self._taken >= self.until or (self._end >= self.until and self._taken >= self._target)

    def _up_to_until(self, batch: list[Stored]) -> list[Stored]:
        if self.until is None or batch[-1].sequence < self.until:
            return batch
        self._finished = True
        return [stored for stored in batch if stored.sequence <= self.until]

    # What the subscription and the clock report. Both only note; the iterator acts.

    def _on_message(self, message: Received) -> None:
        if not message.reply:
            self._on_status(message)
            return
        # $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>; newer servers may
        # put domain and account before the stream.
        tokens = message.reply.split(".")
        if len(tokens) > 9:
            del tokens[2:4]
        if tokens[3] != self._consumer:
            return
        if int(tokens[6]) != self._expected:
            self._fail("gap")
            return
        self._expected += 1
        self._pending = tokens[8]
        stored = make(self.stream, int(tokens[5]), message.subject, message.headers, message.data, int(tokens[7]))
        self._pulls.arrived(message.size)
        if self._pace is not None:
            self._pace.arrived()
        self._alive = True
        if self._received is not None and stored.sequence <= self._received and not self._may_start_over:
            self._regressed(f"sequence {stored.sequence} came after {self._received}")
            return
        self._received = stored.sequence
        self._newest = stored
        if self._take is not None and self._waits and not self._buffer:
            self._give(stored, self._take)
            return
        self._buffer.append(stored)
        self._wake.set()

    def _give(self, stored: Stored, take: Callable[[Stored], None]) -> None:
        try:
            take(stored)
        except Exception as error:  # noqa: BLE001 - whoever iterates raises it
            self._broken = error
        self._taken = stored.sequence
        if self._broken is not None or self._pulls.low:
            self._wake.set()

    def _on_status(self, message: Received) -> None:
        token = message.subject.rpartition(".")[2]
        if token not in self._pulls:
            return  # of a consumer that is gone
        headers = message.headers or {}
        status, text = headers.get("Status", ""), headers.get("Description", "")
        self._heard = self._now()
        if status in {"100", "404", "408"}:
            self._pending = "0"
        if status == "100":
            self._look_again = not self.caught_up.is_set() or self.until is not None
            if self._look_again:
                self._wake.set()
        elif status in {"404", "408"} or text.startswith(_ENDS):
            left, left_bytes = int(headers.get("Nats-Pending-Messages", 0)), int(headers.get("Nats-Pending-Bytes", 0))
            if text == _ENDS[1] and self._pulls.too_small(token, left):
                self._pulls.max_bytes *= 2
            self._pulls.ended(token, left, left_bytes)
            self._wake.set()
        else:
            self._fail(f"{status} {text}".strip().lower().replace(" ", "_") or "unknown_status")

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_TICK, self._tick)
        if self._alive:
            self._alive, self._heard = False, self._now()
        if self._failure is not None:
            return
        if self._connection.stats["reconnects"] != self._reconnects:
            self._fail("reconnected")
        elif self._connection.is_closed:
            self._fail("closed")
        elif self._pulls and self._now() - self._heard > 2.5 * self._heartbeat:
            self._fail("no_heartbeat")

    def _fail(self, reason: str) -> None:
        self._failure = reason
        self._consumer = ""
        self._wake.set()

    def _regressed(self, what: str) -> None:
        self._error = TrunklineError(
            "log_regressed",
            f"the log {self.stream} is not the one that was read before: {what}; read it anew from a snapshot",
            stream=self.stream,
            position=self._received,
        )
        self._consumer = ""
        self._wake.set()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    # What the iterator does about it.

    async def _pull(self) -> None:
        while self._consumer and (count := self._pulls.wanted(self._now())):
            waiting = {"expires": int(_EXPIRES * _S), "idle_heartbeat": int(self._heartbeat * _S)}
            if self._pace is not None:
                if self._pulls or not (count := self._pace.wanted(self._now(), count)):
                    return
                waiting = waiting if self._pace.resting else {"no_wait": True}
            token = str(next(self._tokens))
            body = {"batch": count, "max_bytes": self._pulls.max_bytes, **waiting}
            self._heard = self._now()
            self._pulls.sent(token, count, self._heard + _EXPIRES + 1)
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.stream}.{self._consumer}"
            try:
                await self._connection.publish(subject, msgspec.json.encode(body), reply=f"{self._inbox}.{token}")
            except nats.errors.Error:
                self._fail("unsent")

    async def _recover(self) -> None:
        reason = self._failure or "unknown"
        if reason != "start":
            metrics.READER_RECREATED.labels(self.stream, reason).inc()
            log.info("reader.recreate", extra={"stream": self.stream, "reason": reason, "position": self._received})
        pause = 0.05
        for attempt in itertools.count(1):
            why: Exception | None = None
            try:
                if self._connection.is_connected:
                    await self._open_consumer()
                    return
            except (*UNANSWERED, APIError) as error:
                why = error
                pause = min(pause * 2, 1.0)
            if self._connection.is_closed:
                self._error = TrunklineError("log_unavailable", "the connection to NATS was closed for good")
                return
            if attempt % 20 == 0:
                log.warning(
                    "reader.waiting",
                    extra={"stream": self.stream, "attempt": attempt, "error": f"{why or 'not connected'}"},
                )
            await asyncio.sleep(pause)

    async def _open_consumer(self) -> None:
        self._reconnects = self._connection.stats["reconnects"]
        facts = await direct.ask_info(self._bus.js_read, self.stream)
        why = await self._other_log(facts)
        if why is not None:
            if not self._may_start_over:
                self._regressed(why)
                self._failure = None
                return
            log.info("reader.start_over", extra={"stream": self.stream, "reason": why})
            self.restarts += 1
            self._received = self._taken = 0
            self._newest = None
        self._created_ns = facts.created_ns
        if self._received is None:
            self._received = self._taken = facts.last
        if not self.caught_up.is_set() or self.until is not None:
            self._end, self._target = facts.last, await self._last_matching()
        name = f"r{uuid7_hex()}"
        await jsapi.request(self._bus.js_read, *self._creation(name, self._received))
        self._pulls.reset()
        if self._pace is not None:
            self._pace.reset()
        self._expected = 1
        self._consumer = name
        self._failure = None
        await self._pull()

    def _creation(self, name: str, after: int) -> tuple[str, dict[str, Any]]:
        config: dict[str, Any] = {
            "name": name,
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": int(_INACTIVE * _S),
        }
        if self._since is not None and self._newest is None:
            config |= {"deliver_policy": "by_start_time", "opt_start_time": timestamp(self._since)}
        else:
            config |= {"deliver_policy": "by_start_sequence", "opt_start_seq": after + 1}
        method = f"CONSUMER.CREATE.{self.stream}.{name}"
        if len(self.filters) == 1:
            # The filter in the subject lets the server's permissions restrict what may be read.
            method += f".{self.filters[0]}"
            config["filter_subject"] = self.filters[0]
        else:
            config["filter_subjects"] = list(self.filters)
        return method, {"stream_name": self.stream, "config": config, "action": "create"}

    async def _other_log(self, facts: direct.StreamFacts) -> str | None:
        """Why the stream is not the one that was read before; None if it is."""
        if self._created_ns not in {None, facts.created_ns}:
            return "it was created anew"
        if self._received is not None and facts.last < self._received:
            return f"it ends at {facts.last}, and {self._received} was read"
        if self._newest is not None:
            there = await direct.ask_leader(self._bus.js_read, self.stream, {"seq": self._newest.sequence})
            if there is not None and there.time_ns != self._newest.time_ns:
                return f"another message stands at {self._newest.sequence}"
        return None

    async def _last_matching(self) -> int:
        """The last sequence that matches the filters and lies after the start, 0 if there is none."""
        highest = 0
        for filter in self.filters:
            found = await direct.ask_leader(self._bus.js_read, self.stream, {"last_by_subj": filter})
            if found is not None and (self._since is None or found.time >= self._since):
                highest = max(highest, found.sequence)
        return highest

    async def _measure_again(self) -> None:
        """What was to come may have expired or been erased: see what there is now."""
        self._look_again = False
        with contextlib.suppress(*UNANSWERED, APIError):
            facts = await direct.ask_info(self._bus.js_read, self.stream)
            target = await self._last_matching()
            self._end = facts.last
            self._target = target if self.until is not None else min(self._target, target)

    async def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        consumer, self._consumer = self._consumer, ""
        with contextlib.suppress(nats.errors.Error):
            if self._subscription is not None:
                await self._subscription.unsubscribe()
            if consumer and self._connection.is_connected:
                # No answer is waited for: the server drops an abandoned consumer by itself, only later.
                await self._connection.publish(f"$JS.API.CONSUMER.DELETE.{self.stream}.{consumer}")


async def read(
    bus: Bus, stream: str, filters: Sequence[str], *, after: int = 0, until: int | None = None
) -> list[Stored]:
    """All that matches above `after`, up to and with `until`, by default up to the present end of the stream.

    Raises `log_unavailable` where nobody answers for 15 s at the start, `log_regressed` where the stream ends before `after`.
    """
    found: list[Stored] = []
    limit = await direct.end(bus, stream) if until is None else until
    async with contextlib.AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(PATIENCE):
                reader = await stack.enter_async_context(Reader(bus, stream, filters, after=after, until=limit))
        except TimeoutError as error:
            raise TrunklineError("log_unavailable", f"the NATS server does not answer about {stream!r}") from error
        async for batch in reader.batches():
            found += batch
    return found


async def read_session(bus: Bus, session: str, *, after: int = 0, until: int | None = None) -> list[Stored]:
    """All events of a session above `after`, up to and with `until`, by default up to the present end of the log."""
    stream = bus.layout.of(session)
    return await read(bus, stream, [subjects.session_events(session)], after=after, until=until)
