"""Team events from facts and observations: reads, hears, appends behind the last event of the lead's team subject, reads on.

Safe to run twice and to kill anywhere: an event's id and time are those of its source, an append is accepted only behind
what was folded, and what is in the log is not written again. Nothing is written before both streams have been read to
the end that they had at the start.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from typing import Final

from trunkline_bus import metrics, trace
from trunkline_bus.connection import Bus
from trunkline_bus.dead_letters import bury
from trunkline_bus.derived import DerivedWriter
from trunkline_bus.feed import Feed
from trunkline_bus.lag import lag_of
from trunkline_bus.reader import Reader, read
from trunkline_bus.stored import Stored
from trunkline_fold.team import Heard, Team, TeamsState, fold_teams, initial_teams, next_event
from trunkline_fold.team.board import TaskStatus
from trunkline_teams.router import Router, by_lead
from trunkline_teams.view import is_of_team
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import is_id
from trunkline_wire.observed import decode_observation
from trunkline_wire.session import SessionErased

log = logging.getLogger(__name__)

SERVICE: Final = "teams"
CONSUMER: Final = "team-events"
RETRY_S: Final = 0.5
_WAITABLE: Final = frozenset({"log_unavailable", "log_unwritable", "log_full"})


class Keeper:
    """`run` writes team events until it is cancelled. `ready` is set once both backlogs are read. `feed` has the view's filters."""

    def __init__(self, bus: Bus, feed: Feed) -> None:
        self.ready = asyncio.Event()
        self.boards: dict[str, TeamsState] = {}
        self._bus = bus
        self._feed = feed
        self._writer = DerivedWriter(bus, SERVICE)
        self._router = Router()
        self._frozen: set[str] = set()
        self._open: dict[str, deque[Heard]] = {}
        """By lead: what may call for events that are not written yet, in the order in which it was heard."""
        self._news = asyncio.Event()
        self._events_read = asyncio.Event()
        self._observed_read = asyncio.Event()

    @property
    def teams(self) -> int:
        """Teams that have not ended."""
        return sum(1 for _ in self._unended())

    @property
    def waiting(self) -> int:
        """Leads whose events are not all written."""
        return len(self._open)

    @property
    def members(self) -> int:
        """Members of teams that have not ended."""
        return sum(len(team.members) for team in self._unended())

    def tasks(self, status: TaskStatus) -> int:
        """Tasks in a status on the boards of teams that have not ended."""
        return sum(task.status == status for team in self._unended() for task in team.tasks.values())

    def _unended(self) -> Iterator[Team]:
        return (team for board in self.boards.values() for team in board.teams.values() if team.ended is None)

    async def run(self) -> None:
        """Raises `log_regressed` when the log is not the one it was: start again."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read_events(), name="team-facts")
            group.create_task(self._read_observed(), name="team-observations")
            await self._events_read.wait()
            await self._observed_read.wait()
            self.ready.set()
            log.info("caught_up", extra={"leads": len(self.boards), "teams": self.teams})
            group.create_task(self._settle(), name="team-events")

    # reading

    async def _read_events(self) -> None:
        async with self._feed.follow(0) as follower:
            with lag_of(CONSUMER, lambda: follower.pending) as lag:
                async for batch in follower.batches():
                    for stored in batch:
                        with trace.taking(CONSUMER, stored):
                            await self._take(stored)
                    if batch:
                        lag.took(batch, live=self.ready.is_set())
                    if follower.caught_up.is_set():
                        self._events_read.set()
                    elif batch:
                        # Folding a long backlog must not starve the health server.
                        await asyncio.sleep(0)

    async def _read_observed(self) -> None:
        # What is seen of an agent may tell of a team before its own stream does; both are read side by side.
        async with Reader(self._bus, subjects.OBSERVED, [subjects.ALL_OBSERVED]) as reader:
            async for batch in reader.batches():
                for stored in batch:
                    try:
                        observation = decode_observation(stored.raw)
                    except TrunklineError as error:
                        if self.ready.is_set():
                            await bury(self._bus, SERVICE, stored, error)
                        continue
                    self._note(self._router.observation(observation, stored.sequence))
                if reader.caught_up.is_set():
                    self._observed_read.set()

    async def _take(self, stored: Stored) -> None:
        session, of_team = stored.session, is_of_team(stored)
        if session is None or session in self._frozen or not is_id(session, "ses"):
            return
        if not of_team and not self._router.wants(session, stored.type, stored.raw):
            return
        try:
            event = stored.event()
            if of_team or isinstance(event.data, SessionErased):
                self._put(fold_teams(self._board(session), event, stored.sequence))
            if not of_team:
                self._note(self._router.event(event, stored.sequence))
        except Exception as error:  # noqa: BLE001 - whatever a fold raises is poison
            self._frozen.add(session)
            await bury(self._bus, SERVICE, stored, error)

    def _note(self, found: list[tuple[str, Heard]]) -> None:
        for _, heard in found:
            for caveat in heard.caveats:
                metrics.TEAM_CAVEATS.labels(caveat.code).inc()
        for lead, heards in by_lead(found).items():
            if lead in self._frozen:
                continue
            self._open.setdefault(lead, deque()).extend(heards)
            self._news.set()

    def _board(self, session: str) -> TeamsState:
        return self.boards.get(session) or initial_teams(session)

    def _put(self, board: TeamsState) -> None:
        self.boards[board.session] = board
        waiting = self._open.get(board.session)
        while waiting and board.written((waiting[0].stream, waiting[0].sequence, len(waiting[0].ops) - 1)):
            waiting.popleft()

    # writing

    async def _settle(self) -> None:
        """Appends what the logs call for, lead by lead."""
        while True:
            self._news.clear()
            for lead in list(self._open):
                await self._settle_one(lead)
            await self._news.wait()

    async def _settle_one(self, lead: str) -> None:
        waiting = self._open[lead]
        while waiting and lead not in self._frozen:
            try:
                if not await self._step(lead, waiting[0]) and waiting:
                    waiting.popleft()
            except TrunklineError as error:
                if error.code not in _WAITABLE:
                    log.exception("team_event_refused", extra={"session": lead, "code": error.code})
                    self._frozen.add(lead)
                    break
                log.warning("team_event_waits", extra={"session": lead, "code": error.code})
                await asyncio.sleep(RETRY_S)
        if not waiting or lead in self._frozen:
            del self._open[lead]

    async def _step(self, lead: str, heard: Heard) -> bool:
        """Append one event; False if this input calls for no more."""
        board = self._board(lead)
        derived = next_event(board, heard)
        if derived is None:
            return False
        event = derived.event()
        sequence = await self._writer.append_event("team", event, expected=board.team_seq)
        if sequence is None:
            metrics.TEAM_LOST_APPENDS.inc()
            await self._read_anew(lead)
        elif self._board(lead) is board:
            self._put(fold_teams(board, event, sequence))
        return True

    async def _read_anew(self, lead: str) -> None:
        """Another replica was quicker: what it wrote comes first."""
        subject = subjects.event(lead, "team")
        for stored in await read(self._bus, subjects.EVENTS, [subject], after=self._board(lead).team_seq):
            self._put(fold_teams(self._board(lead), stored.event(), stored.sequence))
