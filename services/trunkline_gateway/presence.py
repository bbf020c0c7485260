"""Who is there: which client watches which session, and who types. Held in `trunk_presence`, so that every gateway knows.

Nothing of it is kept: a client that goes is gone at once, one that no longer answers after AWAY_S, those of a gateway that
was killed after TTL_S.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, Literal, TypedDict

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_bus.tasks import end
from trunkline_gateway.records import Records
from trunkline_gateway.roles import Principal, Role
from trunkline_wire import TrunklineError, encode, timestamp
from trunkline_wire.ids import uuid7_hex
from trunkline_wire.subjects import KV_PRESENCE

log = logging.getLogger(__name__)

BEAT_S: Final = 4.0
AWAY_S: Final = 9.0
TTL_S: Final = 12
TYPING_S: Final = 6.0
"""How long somebody types who said so once: clients say it again while it goes on."""
GATHER_S: Final = 0.1
"""Changes of one client that come together are one write."""

Doing = Literal["watching", "typing"]


class PresenceRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One connection, as stored. `sessions` says what it does where; `since` is when it came."""

    id: str
    actor: str
    role: Role
    since: str
    device: str | None = None
    client: str = ""
    sessions: dict[str, Doing] = {}


class Seat:
    """The place of one connection. `alive` says how many seconds ago it was heard."""

    def __init__(self, bus: Bus, principal: Principal, client: str, alive: Callable[[], float]) -> None:
        self._bus = bus
        self._alive = alive
        self._record = PresenceRecord(
            id=uuid7_hex(),
            actor=principal.actor,
            role=principal.role,
            since=timestamp(),
            device=principal.device,
            client=client,
        )
        self._watching: Counter[str] = Counter()
        self._typing: dict[str, float] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def taken(self) -> bool:
        """Whether others see it anywhere."""
        return bool(self._watching)

    def watch(self, session: str) -> None:
        """It has a subscription to the session, or one more."""
        self._watching[session] += 1
        self._change()

    def leave(self, session: str) -> None:
        """It has one subscription less."""
        self._watching[session] -= 1
        if self._watching[session] <= 0:
            del self._watching[session]
            self._typing.pop(session, None)
        self._change()

    def type(self, session: str, typing: bool) -> None:
        """Somebody types there, for TYPING_S, or has stopped."""
        if typing:
            self._typing[session] = time.monotonic() + TYPING_S
        else:
            self._typing.pop(session, None)
        self._change()

    def _change(self) -> None:
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """The client has gone."""
        if self._task is not None:
            await end(self._task)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await kv.delete(self._bus, KV_PRESENCE, self._key)

    @property
    def _key(self) -> str:
        return f"client.{self._record.id}"

    async def _keep(self) -> None:
        shown: dict[str, Doing] | None = None
        while True:
            await asyncio.sleep(GATHER_S)
            self._changed.clear()
            wanted = self._doing() if self._alive() < AWAY_S else {}
            try:
                if wanted:
                    record = msgspec.structs.replace(self._record, sessions=wanted)
                    await kv.put(self._bus, KV_PRESENCE, self._key, encode(record), ttl=TTL_S)
                elif shown:
                    await kv.delete(self._bus, KV_PRESENCE, self._key)
            except TrunklineError as error:
                log.warning("presence_not_stored", extra={"code": error.code})
            shown = wanted
            ends = min((at - time.monotonic() for at in self._typing.values()), default=BEAT_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(BEAT_S, ends))):
                    await self._changed.wait()

    def _doing(self) -> dict[str, Doing]:
        now = time.monotonic()
        self._typing = {session: at for session, at in self._typing.items() if at > now}
        return {session: "typing" if session in self._typing else "watching" for session in self._watching}


class Watching(TypedDict):
    """Somebody at a session; `program` is what the client calls itself."""

    client: str
    actor: str
    role: Role
    device: str | None
    program: str
    doing: Doing
    since: str


class Watcher:
    """Tells one connection who is there, whenever that changes: `tell(session, who)`."""

    def __init__(self, tell: Callable[[str, list[Watching]], None], wants: Callable[[str], bool]) -> None:
        self.tell = tell
        self.wants = wants


class Presence:
    """Everybody that any gateway of the log knows of."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.records = Records(bus, KV_PRESENCE, PresenceRecord, "client")
        self.records.on_change.append(self._on_change)
        self.records.on_gone.append(self._on_change)
        self._where: dict[str, dict[str, Doing]] = {}
        self.watchers: set[Watcher] = set()

    def seat(self, principal: Principal, client: str, alive: Callable[[], float]) -> Seat:
        return Seat(self._bus, principal, client, alive)

    def of(self, session: str) -> list[Watching]:
        """Who is at a session, those who came first first."""
        found = [one for one in self.records.known.values() if session in one.sessions]
        return [
            {
                "client": one.id,
                "actor": one.actor,
                "role": one.role,
                "device": one.device,
                "program": one.client,
                "doing": one.sessions[session],
                "since": one.since,
            }
            for one in sorted(found, key=lambda one: one.since)
        ]

    def sessions(self) -> list[str]:
        """The sessions where somebody is."""
        return sorted({session for one in self.records.known.values() for session in one.sessions})

    def _on_change(self, id: str) -> None:
        record = self.records.known.get(id)
        before, after = self._where.pop(id, {}), record.sessions if record is not None else {}
        if after:
            self._where[id] = after
        for session in {*before, *after}:
            if before.get(session) != after.get(session):
                who = self.of(session)
                for watcher in list(self.watchers):
                    if watcher.wants(session):
                        watcher.tell(session, who)
