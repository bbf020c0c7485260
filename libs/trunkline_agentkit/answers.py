"""Decisions on the session's asks: folded in the order of the log, delivered once, to the agent that asked."""

import logging

from msgspec.structs import replace

from trunkline_agentkit.life import AgentLife
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.protocol import PermissionHandler
from trunkline_agentkit.running import Running
from trunkline_bus import direct, ownership
from trunkline_bus.connection import Bus
from trunkline_bus.reader import Reader
from trunkline_bus.writer import SessionWriter
from trunkline_fold.asks import AskRecord, AsksState, fold_asks
from trunkline_wire import Event, TrunklineError, subjects
from trunkline_wire.asks import AskDecided, AskDelivered, AskExpired, PermissionRequested

log = logging.getLogger(__name__)


class Answers:
    """Reads the session's asks and their decisions behind the claim. `asks` is the fold up to there."""

    def __init__(self, bus: Bus, pen: Pen, writer: SessionWriter, life: AgentLife, asks: AsksState) -> None:
        self._bus = bus
        self._pen = pen
        self._writer = writer
        self._life = life
        self._asks = asks

    async def run(self) -> None:
        """Delivers until it is cancelled."""
        await self._deliver_what_waits()
        session = self._pen.memory.session.session
        filters = [subjects.event(session, "permission"), subjects.event(session, "agent.ask")]
        async with Reader(
            self._bus, self._bus.layout.of(session), filters, after=self._writer.claim_sequence
        ) as reader:
            async for stored in reader:
                event = stored.event()
                self._asks = fold_asks(self._asks, event, stored.sequence)
                if isinstance(event.data, AskDecided | AskExpired):
                    # The owner's own asks and withdrawals are in its memory since they were written.
                    self._pen.memory.fold(event)
                    await self._deliver(event, event.data.ask, stored.sequence)

    async def _deliver_what_waits(self) -> None:
        """What was decided before the claim, and an adopted agent still waits for."""
        agent = self._life.agent
        if agent is None or not isinstance(agent.session, PermissionHandler):
            return
        waits_for = await agent.session.pending() or set[str]()
        for record in self._asks.deliverable:
            if record.ask not in waits_for or record.ended_sequence is None:
                continue
            stored = await direct.at(self._bus, self._bus.layout.of(self._writer.session), record.ended_sequence)
            if stored is not None:
                await self._deliver(stored.event(), record.ask, stored.sequence)

    async def _deliver(self, event: Event, ask: str, sequence: int) -> None:
        record = self._asks.asks.get(ask)
        agent = self._life.agent
        if record is None or record.ended_sequence != sequence or not record.deliverable:
            return  # it lost against an earlier end
        if agent is None or agent.incarnation != record.incarnation:
            log.info("decision_without_agent", extra={"session": record.session, "ask": ask})
            return
        if not isinstance(agent.session, PermissionHandler):
            log.warning("decision_undeliverable", extra={"session": record.session, "ask": ask})
            return
        if await self._fenced():
            log.info("decision_after_fence", extra={"session": record.session, "ask": ask})
            return
        try:
            await agent.session.decide(ask, _decision(record))
        except TrunklineError as error:
            # Withdrawn or ended meanwhile: the agent's own word on it follows, or its end does.
            log.info("decision_too_late", extra={"session": record.session, "ask": ask, "code": error.code})
            return
        self._delivered(agent, record, event)

    async def _fenced(self) -> bool:
        """Whether another owner has claimed the session: then the ask may have ended with that claim, before its decision.

        Claims stand among the facts, which are too many to read them all back for this.
        """
        return await ownership.last_epoch(self._bus, self._writer.session) != self._writer.epoch

    def _delivered(self, agent: Running, record: AskRecord, event: Event) -> None:
        self._pen.write(AskDelivered(ask=record.ask), turn=agent.intake.turn, cause=event.id)
        known = {**self._asks.asks, record.ask: replace(record, delivered=True)}
        self._asks = replace(self._asks, asks=known)
        self._life.touch()


def _decision(record: AskRecord) -> AskDecided:
    decision = record.decision
    if decision is not None:
        # What is allowed for good by a rule of the session is allowed once for the agent, which asks again.
        return decision if decision.remembers is None else replace(decision, option=_once(record), remembers=None)
    behaviour = record.expired.behaviour if record.expired is not None else "deny"
    return AskDecided(ask=record.ask, behaviour=behaviour, by="policy", message="Nobody answered in time.")


def _once(record: AskRecord) -> str | None:
    requested = record.requested
    options = requested.options if isinstance(requested, PermissionRequested) else []
    return next((option.id for option in options if option.kind == "allow_once"), None)
