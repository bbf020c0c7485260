"""The audit: sign-ins, refusals and the owner's acts, on `trunk.sys.<kind>`. Never a secret.

Whatever is noted is in the log in the end: by itself, or as one of the `count` of a record that tells of many. Only a gateway that
is killed takes with it what it had not told yet: at most the last minute's refusals beyond the limit, the sign-ins repeated
within the hour, and what waits for a log that can't be reached.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from trunkline_bus import metrics
from trunkline_bus.requests import Requests
from trunkline_gateway.roles import Principal
from trunkline_gateway.tally import Details, Entry, Tally
from trunkline_wire import SystemRecord, TrunklineError, timestamp
from trunkline_wire.ids import new_event_id

log = logging.getLogger(__name__)

MAX_WAITING: Final = 1_000
"""Records that wait for the log; what is beyond them is counted."""

TOKEN_USE_S: Final = 3600.0
SIGN_IN_S: Final = 3600.0
"""The same client of the same person is one record in so many seconds, and one with the number of its repetitions."""
MAX_CLIENTS: Final = 20
"""Names of clients that one person's credential may have in SIGN_IN_S; what calls itself yet otherwise is one client more."""
MINUTE_S: Final = 60.0
AGAIN_S: Final = 1.0
DRAIN_S: Final = 2.0
"""Seconds that the end of the gateway waits for what was not told yet."""
REFUSALS: Final = 120
"""Refusals stored one by one in a minute: whoever may not come in must not fill the log either. The others are counted."""

COUNTED: Final = ("act", "client", "code", "method", "path", "via")
"""The details by which records are counted."""


class Audit:
    """Run `run()` as a task; `note` never blocks. `clock` gives seconds."""

    def __init__(self, requests: Requests, clock: Callable[[], float] = time.monotonic) -> None:
        self._requests = requests
        self._clock = clock
        self._queue: asyncio.Queue[SystemRecord] = asyncio.Queue(MAX_WAITING)
        self._tally = Tally()
        self._minute = -MINUTE_S
        self._refusals = 0
        self._used: dict[str, float] = {}
        self._signed_in: dict[tuple[str, ...], dict[str, float]] = {}

    def refusal(self, actor: str, **details: Any) -> None:
        """Record a refusal; of a flood the first REFUSALS a minute by themselves, the others as a number."""
        now = self._clock()
        if now - self._minute >= MINUTE_S:
            self._minute, self._refusals = now, 0
        self._refusals += 1
        if self._refusals <= REFUSALS:
            self.note("refusal", actor, **details)
        else:
            self._count("refusal", actor, details, due=self._minute + MINUTE_S)

    def signed_in(self, principal: Principal, client: str) -> None:
        """Record that `client` is here: at once where it was not within SIGN_IN_S, else as one more of its repetitions."""
        now = self._clock()
        who = (principal.actor, principal.via, principal.token or "", principal.device or "")
        for key, known in list(self._signed_in.items()):
            self._signed_in[key] = {name: since for name, since in known.items() if now - since < SIGN_IN_S}
            if not self._signed_in[key]:
                del self._signed_in[key]
        clients = self._signed_in.setdefault(who, {})
        if client not in clients and len(clients) >= MAX_CLIENTS:
            client = "others"
        details = {"via": principal.via, "client": client}
        if client in clients:
            self._count("sign_in", principal.actor, details, due=clients[client] + SIGN_IN_S)
            return
        clients[client] = now
        named = {"token": principal.token, "device": principal.device}
        self.note(
            "sign_in", principal.actor, **details, **{name: value for name, value in named.items() if value is not None}
        )

    def token_used(self, token: str, actor: str) -> None:
        """Record that a token is used: once in TOKEN_USE_S, for programs send it with every request."""
        now = self._clock()
        if now - self._used.get(token, -TOKEN_USE_S) < TOKEN_USE_S:
            return
        if len(self._used) >= MAX_WAITING:
            self._used.clear()
        self._used[token] = now
        self.note("token", actor, act="used", token=token)

    def note(self, kind: str, actor: str, *, session: str | None = None, **details: Any) -> None:
        """Record an act. `details` are names, codes and addresses."""
        log.info("audit", extra={"kind": kind, "actor": actor, "session": session, **details})
        record = SystemRecord(
            id=new_event_id(), kind=kind, time=timestamp(), actor=actor, session=session, details=details
        )
        try:
            self._queue.put_nowait(record)
        except asyncio.QueueFull:
            self._count(kind, actor, details, due=self._clock() + MINUTE_S)

    def _count(self, kind: str, actor: str, details: Details, *, due: float, count: int = 1) -> None:
        metrics.GATEWAY_AUDIT_COUNTED.inc(count)
        kept = {name: details[name] for name in COUNTED if name in details}
        self._tally.add(kind, actor, kept, time=timestamp(), due=due, count=count)

    async def run(self) -> None:
        """Write records until cancelled, and then what is left. While nobody answers they wait."""
        try:
            while True:
                record = await self._next()
                if record is not None:
                    await self._store(record)
                for entry in self._tally.take(self._clock()):
                    await self._tell(entry)
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_S):
                    while not self._queue.empty():
                        await self._store(self._queue.get_nowait())
                    for entry in self._tally.take(float("inf")):
                        await self._tell(entry)
            if self.untold:
                log.error("audit_not_told", extra={"records": self.untold})

    @property
    def untold(self) -> int:
        """Records that are not in the log yet."""
        return self._queue.qsize() + self._tally.total

    async def _next(self) -> SystemRecord | None:
        """The next record; None once something is due that was counted."""
        try:
            async with asyncio.timeout(self._until_due()):
                return await self._queue.get()
        except TimeoutError:
            return None

    def _until_due(self) -> float | None:
        due = self._tally.next_due
        return None if due is None else max(0.0, due - self._clock())

    async def _tell(self, entry: Entry) -> None:
        await self._store(
            SystemRecord(id=new_event_id(), kind=entry.kind, time=timestamp(), actor=entry.actor, details=entry.told)
        )

    async def _store(self, record: SystemRecord) -> None:
        """Store it; counted where the log refuses it, or where it has to wait while the gateway ends."""
        try:
            while True:
                try:
                    await self._requests.record(record)
                    return
                except TrunklineError as error:
                    log.warning("audit_not_stored", extra={"kind": record.kind, "code": error.code})
                    if error.code != "log_unavailable":
                        break
                    await asyncio.sleep(AGAIN_S)
        except asyncio.CancelledError:
            self._again(record)
            raise
        self._again(record)

    def _again(self, record: SystemRecord) -> None:
        count: int = record.details.get("count", 1)
        self._count(record.kind, record.actor, record.details, due=self._clock() + MINUTE_S, count=count)
