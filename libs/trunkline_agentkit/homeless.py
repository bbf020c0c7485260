"""Sessions for `any` place whose host is lost: another host takes them over.

Where such a session has something open or unread, no lease, and its last host no worker that says it is there, any host
that has its adapter may claim it; of several that do, the log lets one win. The lost host may only be cut off: its worker
has ended its own agent by then (`leasing.let_go_in_silence`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Container
from pathlib import Path
from typing import Final

import msgspec

from trunkline_agentkit.directory import fold_log, has_unread
from trunkline_agentkit.place import Place, Record
from trunkline_bus import direct, kv, mirror
from trunkline_bus.connection import Bus
from trunkline_bus.lease import read_lease
from trunkline_bus.views import decode_document
from trunkline_fold.state import SessionState, decode_state
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import is_id

log = logging.getLogger(__name__)

GRACE: Final = 3.0
"""Seconds in which a host may take up its own session again."""
LOOKS: Final = 12
"""How often a session is looked at whose host still counts as there: a lost one does for up to 30 s."""
EVERY: Final = 5.0
_AT_A_TIME: Final = 4
_AT_REST: Final = frozenset({"idle", "closed", "archived", "stopped"})


class Homeless:
    """`run` finds homeless sessions until it is cancelled, writes down that they are of this host, and calls `take`.

    `mine` tells the sessions that this host has or had: they are not looked for.
    """

    def __init__(
        self,
        bus: Bus,
        home: Path,
        host: str,
        adapters: Container[str],
        *,
        mine: Callable[[str], bool],
        take: Callable[[str], None],
    ) -> None:
        self._bus = bus
        self._home = home
        self._host = host
        self._adapters = adapters
        self._mine = mine
        self._take = take
        self._looked_at: set[str] = set()
        self._few = asyncio.Semaphore(_AT_A_TIME)
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as self._group:
            self._group.create_task(self._from_the_start())
            async with kv.watch(self._bus, subjects.KV_LEASES) as leases:
                async for stored in leases:
                    lease = kv.entry(stored)
                    if lease.value is None and is_id(lease.key, "ses"):
                        self.notice(lease.key)

    def notice(self, session: str) -> None:
        """The session's lease has ended, or a command for it came: it may be homeless."""
        if self._group is not None and session not in self._looked_at and not self._mine(session):
            self._looked_at.add(session)
            self._group.create_task(self._look(session))

    async def _from_the_start(self) -> None:
        """What was lost before this worker began."""
        with contextlib.suppress(TrunklineError):
            edition = await mirror.edition(self._bus, subjects.KV_SESSIONS)
            if edition is None:
                return
            for one in await kv.entries(self._bus, subjects.KV_SESSIONS, edition.key("*")):
                state = decode_state(bytes(decode_document(one.value or b"").state))
                if await self._may_need_owner(state):
                    self.notice(state.session)

    async def _look(self, session: str) -> None:
        try:
            await asyncio.sleep(GRACE)
            for _ in range(LOOKS):
                async with self._few:
                    if self._mine(session) or await read_lease(self._bus, session) is not None:
                        return
                    state = await self._state(session)
                    if not await self._may_need_owner(state):
                        return
                    if not await self._host_is_there(state.host):
                        await self._adopt(session)
                        return
                await asyncio.sleep(EVERY)
        except TrunklineError as error:
            log.warning("homeless_unknown", extra={"session": session, "code": error.code})
        finally:
            self._looked_at.discard(session)

    async def _state(self, session: str) -> SessionState:
        """About the present state: sessions come and go, and to fold each on every host would cost too much."""
        shown = await mirror.fetch(self._bus, subjects.KV_SESSIONS, session, decode_state)
        return shown.state if shown is not None else (await fold_log(self._bus, session)).memory.session

    async def _may_need_owner(self, state: SessionState) -> bool:
        if state.placement != "any" or state.host == self._host or (state.adapter or "") not in self._adapters:
            return False
        if state.status not in _AT_REST or not state.turns:
            return True
        last = await direct.last(self._bus, subjects.COMMANDS, subjects.session_commands(state.session))
        return last is not None and last.sequence > state.cmd_seq

    async def _host_is_there(self, host: str | None) -> bool:
        """Whether a worker of the host says so: then it is that one's business."""
        registered = [entry.value for entry in await kv.entries(self._bus, subjects.KV_WORKERS) if entry.value]
        return any(msgspec.json.decode(value, type=_Registered).host == host for value in registered)

    async def _adopt(self, session: str) -> None:
        """Make it a session of this host, if the log says that there is something to do in it."""
        folds = await fold_log(self._bus, session)
        state, cmd_seq = folds.memory.session, folds.memory.commands.cmd_seq
        closed = state.closed is not None
        if not folds.unfinished and not await has_unread(self._bus, session, after=cmd_seq, closed=closed):
            return
        log.warning("homeless_adopted", extra={"session": session, "host": state.host})
        record = Record(
            session=session, adapter=state.adapter or "", cwd=state.cwd or "", cmd_seq=cmd_seq, closed=closed
        )
        await asyncio.to_thread(Place(self._home, session).write, record)
        self._take(session)


class _Registered(msgspec.Struct, frozen=True):
    host: str | None = None
