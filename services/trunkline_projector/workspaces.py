"""Workspaces: the sessions of one directory on one host, reduced from the documents of the view `sessions`.

A workspace is a function of its sessions' present documents, so it needs no position: at a start all are compared.
"""

import asyncio
import logging
from collections import defaultdict
from typing import ClassVar, Final

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_bus.mirror import Mirror, Shown
from trunkline_wire import TrunklineError, encode, subjects
from trunkline_wire.ids import is_id

log = logging.getLogger(__name__)

FLUSH_S: Final = 1.0
"""Seconds between two looks at what has changed."""

MAX_LISTED: Final = 100
"""Sessions that a workspace lists; `total` counts them all."""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """What a workspace shows of a session: those of its state's fields."""

    session: str
    workspace: str | None = None
    host: str | None = None
    cwd: str | None = None
    adapter: str | None = None
    title: str | None = None
    status: str = "idle"
    created: str | None = None
    updated: str | None = None
    archived: bool = False


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    """`sessions` are the latest to have changed, newest first; `statuses` counts all `total` by status."""

    workspace: str
    host: str | None
    cwd: str | None
    sessions: list[Listed]
    statuses: dict[str, int]
    total: int
    updated: str | None


def reduce(workspace: str, sessions: list[Listed]) -> Workspace | None:
    """The workspace of these sessions; None for none."""
    if not sessions:
        return None
    ordered = sorted(sessions, key=lambda one: (one.updated or "", one.session), reverse=True)
    statuses: defaultdict[str, int] = defaultdict(int)
    for one in ordered:
        statuses[one.status] += 1
    return Workspace(
        workspace=workspace,
        host=ordered[0].host,
        cwd=ordered[0].cwd,
        sessions=ordered[:MAX_LISTED],
        statuses=dict(statuses),
        total=len(ordered),
        updated=ordered[0].updated,
    )


class Workspaces:
    """Keeps the bucket `trunk_workspaces`, one key a workspace, while `run` runs."""

    bucket: ClassVar[str] = subjects.KV_WORKSPACES

    def __init__(self, bus: Bus) -> None:
        self.ready = asyncio.Event()
        self._bus = bus
        self._members: defaultdict[str, dict[str, Listed]] = defaultdict(dict)
        self._home: dict[str, str] = {}
        self._changed: set[str] = set()

    async def run(self) -> None:
        mirror = Mirror(self._bus, subjects.KV_SESSIONS, msgspec.json.Decoder(Listed).decode, self._on_change)
        async with asyncio.TaskGroup() as group:
            group.create_task(mirror.run(), name="workspaces-mirror")
            await mirror.ready.wait()
            losses = -1
            while True:
                if losses != self._bus.mux.losses:
                    # A server that was killed may have lost the last writes, as those of nobody's watch before.
                    losses = self._bus.mux.losses
                    await self._compare_all()
                changed, self._changed = self._changed, set()
                for workspace in sorted(changed):
                    await self._store(workspace)
                self.ready.set()
                await asyncio.sleep(FLUSH_S)

    def _on_change(self, session: str, shown: Shown[Listed] | None) -> None:
        listed = shown.state if shown is not None else None
        before = self._home.pop(session, None)
        if before is not None:
            self._members[before].pop(session, None)
            self._changed.add(before)
        if listed is not None and listed.workspace is not None and is_id(listed.workspace, "ws"):
            self._home[session] = listed.workspace
            self._members[listed.workspace][session] = listed
            self._changed.add(listed.workspace)

    async def _compare_all(self) -> None:
        """Look at every workspace: those that have sessions, and those that had some when they were stored."""
        self._changed |= self._members.keys()
        while True:
            try:
                self._changed |= {entry.key for entry in await kv.entries(self._bus, self.bucket)}
                return
            except TrunklineError as error:
                log.warning("workspaces.waiting", extra={"error": error.message})
                await asyncio.sleep(FLUSH_S)

    async def _store(self, workspace: str) -> None:
        reduced = reduce(workspace, list(self._members[workspace].values()))
        wanted = encode(reduced) if reduced is not None else None
        try:
            there = await kv.get(self._bus, self.bucket, workspace)
            present = there.value if there is not None else None
            if present == wanted:
                return
            if wanted is None:
                await kv.delete(self._bus, self.bucket, workspace)
            elif (
                await kv.update(
                    self._bus, self.bucket, workspace, wanted, revision=there.revision if there is not None else 0
                )
                is None
            ):
                self._changed.add(workspace)
        except TrunklineError as error:
            log.warning("workspaces.waiting", extra={"workspace": workspace, "error": error.message})
            self._changed.add(workspace)
