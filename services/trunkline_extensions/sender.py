"""What all senders do: follow the events from a cursor that outlives them, deliver each, and count what can't be delivered."""

import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from tenacity import (
    AsyncRetrying,
    before_sleep_log,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from trunkline_extensions.client import Client
from trunkline_wire import TrunklineError
from trunkline_wire.secret import Discreet

log = logging.getLogger(__name__)

PATTERNS: Final = ("permission.requested", "question.asked", "plan.proposed", "turn.completed")
LINKED: Final = frozenset({"permission.requested", "plan.proposed"})
WAIT_S: Final = 20.0
PAGE: Final = 50
MAX_KNOWN: Final = 1000


class SenderConfig(Discreet, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every sender may be told. `lasts` is in seconds, `attempts` counts tries before a dead letter."""

    patterns: tuple[str, ...] = PATTERNS
    sessions: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()
    actor: str | None = None
    """Who decides by a link; without it there are no links."""
    gateway: str | None = None
    lasts: float = 86400.0
    attempts: int = 8
    longest_pause: float = 60.0

    @property
    def routed(self) -> bool:
        """Whether only the turns of its own prompts are delivered."""
        return False


class NotDeliveredError(Exception):
    """A delivery that may be tried again."""


class RefusedError(Exception):
    """A delivery that would be refused every time."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event as its envelope, with the title of its session, and where it can be decided."""

    id: str
    event: dict[str, Any]
    title: str
    link: str | None = None


class Deliver(Protocol):
    def __call__(self, delivery: Delivery, /) -> Awaitable[None]:
        """Raises NotDeliveredError, RefusedError."""
        ...


class Cursor:
    """A cursor in a file, replaced in one step."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> str | None:
        return self._path.read_text() if self._path.exists() else None

    def write(self, text: str) -> None:
        write_private(self._path, text.encode())


def write_private(path: Path, content: bytes) -> None:
    """Replace a file in one step, readable for its owner alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(content)
    fresh.replace(path)


class Sender:
    """Delivers the events of `config` by `deliver`; `gateway` is the address that links begin with."""

    def __init__(self, client: Client, config: SenderConfig, deliver: Deliver, *, cursor: Cursor, gateway: str) -> None:
        self._client = client
        self._config = config
        self._deliver = deliver
        self._cursor = cursor
        self._gateway = (config.gateway or gateway).rstrip("/")
        self._sessions: dict[str, dict[str, Any]] = {}

    async def run(self, ready: Callable[[], None]) -> None:
        """Follow until cancelled. `ready` is called once it is known where to begin."""
        patterns, routed = list(self._config.patterns), self._config.routed
        at = self._cursor.read()
        if at is None:
            at = (await self._client.insist("approver", "event.list", patterns=patterns, routed=routed))["cursor"]
            self._cursor.write(at)
        ready()
        while True:
            try:
                page = await self._client.insist(
                    "approver", "event.list", after=at, patterns=patterns, routed=routed, wait=WAIT_S, limit=PAGE
                )
            except TrunklineError as error:
                if error.code != "bad_cursor":
                    raise
                log.warning("cursor_of_another_log")
                page = await self._client.insist("approver", "event.list", patterns=patterns)
            if page.get("gap") is not None:
                log.warning("events_missed", extra={"gap": page["gap"]["reason"]})
            for one in page["events"]:
                await self._handle(one["event"], one["cursor"])
                self._cursor.write(one["cursor"])
            if page["cursor"] != at:
                at = page["cursor"]
                self._cursor.write(at)

    async def _handle(self, event: dict[str, Any], cursor: str) -> None:
        session = await self._session(event["session"])
        if not self._wants(event["session"], session):
            return
        title = str(session.get("title") or session.get("cwd") or event["session"])
        delivery = Delivery(id=event["id"], event=event, title=title, link=await self._link(event))
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(self._config.attempts),
                wait=wait_random_exponential(max=self._config.longest_pause),
                retry=retry_if_exception_type(NotDeliveredError),
                before_sleep=before_sleep_log(log, logging.WARNING),
                reraise=True,
            ):
                with attempt:
                    await self._deliver(delivery)
        except (NotDeliveredError, RefusedError) as error:
            log.warning("not_delivered", extra={"event_id": event["id"], "error": str(error)})
            await self._client.insist("itself", "extension.dead_letter", cursor=cursor, error=str(error))

    async def _session(self, session: str) -> dict[str, Any]:
        if session not in self._sessions:
            try:
                found = (await self._client.insist("approver", "session.get", session=session))["state"]
            except TrunklineError:
                return {}
            if len(self._sessions) >= MAX_KNOWN:
                self._sessions.clear()
            self._sessions[session] = {name: found.get(name) for name in ("title", "cwd", "workspace")}
        return self._sessions[session]

    def _wants(self, session: str, state: dict[str, Any]) -> bool:
        sessions, workspaces = self._config.sessions, self._config.workspaces
        return (not sessions and not workspaces) or session in sessions or state.get("workspace") in workspaces

    async def _link(self, event: dict[str, Any]) -> str | None:
        if self._config.actor is None or event["type"] not in LINKED:
            return None
        try:
            made = await self._client.insist(
                "approver",
                "ask.link",
                ask=event["data"]["ask"],
                session=event["session"],
                actor=self._config.actor,
                lasts=self._config.lasts,
            )
        except TrunklineError as error:
            log.info("no_link", extra={"code": error.code})
            return None
        return f"{self._gateway}{made['path']}"
