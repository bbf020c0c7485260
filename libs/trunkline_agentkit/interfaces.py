"""The two interfaces of one session: its agent spoken with in the agent's protocol, or the agent's own terminal. One at a time."""

import asyncio
import contextlib
import logging
from typing import Final

from trunkline_agentkit.death import HELD
from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.history import Entry, KeepsHistories, Reading, context
from trunkline_agentkit.life import AgentLife
from trunkline_agentkit.own_terminal import SOURCE, OpensTerminals, missed
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.protocol import BackendAdapter, Interruptible, unsupported
from trunkline_agentkit.settings import OwnerSettings
from trunkline_agentkit.sweep import end_family
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_bus.writer import SessionWriter
from trunkline_wire import AgentRef, Event, Source, TrunklineError
from trunkline_wire.commands import HandOver
from trunkline_wire.session import SessionHandedOver
from trunkline_wire.work import ErrorRaised, NativeMessage

log = logging.getLogger(__name__)

_READY_WITHIN: Final = 60.0
"""Seconds that a program may take to show its first screen."""


class TerminalTalk:
    """What was said in a session's terminal, from the agent's own history into the log."""

    def __init__(self, bus: Bus, pen: Pen, writer: SessionWriter, adapter: BackendAdapter) -> None:
        self._bus = bus
        self._pen = pen
        self._writer = writer
        self._adapter = adapter

    async def catch_up(self) -> None:
        """Writes what the log lacks of it. Where the history can't be read, it says so, and nothing else is kept from going on."""
        state = self._pen.memory.session
        if state.interface != "terminal":
            return
        self._writer.use_agent(AgentRef(adapter=self._adapter.name, agent=state.agent, version=state.version))
        await self._writer.flush()
        events = [stored.event() for stored in await read_session(self._bus, state.session)]
        try:
            entries = await asyncio.to_thread(self._missed, events)
        except (TrunklineError, OSError) as error:
            message = (
                f"What was said in the terminal is missing here, for the agent's own history can't be read: {error}"
            )
            self._pen.write(ErrorRaised(code="history_lost", message=message))
            return
        keeps = self._pen.memory.options.keep_native == "all"
        for entry in entries:
            await self._writer.room()
            self._pen.write(
                entry.data,
                id=entry.id,
                turn=entry.turn,
                item=entry.item,
                lane=entry.lane,
                native=entry.native if keeps or isinstance(entry.data, NativeMessage) else None,
                time=entry.time,
                source=SOURCE,
            )

    def _missed(self, events: list[Event]) -> list[Entry]:
        """Blocking."""
        adapter, state = self._adapter, self._pen.memory.session
        if not isinstance(adapter, KeepsHistories):
            return []
        file = next((one for one in adapter.histories(state.agent) if one.native == state.native_session), None)
        if file is None:
            raise TrunklineError("history_lost", f"there is none of {state.native_session!r}")
        reading = Reading(state.session, file.native, adapter.history_translator(context(state.session, file.native)))
        return list(missed(events, reading.entries(adapter.history_lines(file))))


class Interfaces:
    """The change from one interface to the other."""

    def __init__(
        self, pen: Pen, writer: SessionWriter, life: AgentLife, adapter: BackendAdapter, settings: OwnerSettings
    ) -> None:
        self._pen = pen
        self._writer = writer
        self._life = life
        self._adapter = adapter
        self._settings = settings

    async def hand_over(self, args: HandOver, command: str, source: Source | None) -> object:
        """Ends what runs of the session, and starts the other on the same conversation.

        Returns what the command's outcome says: the interface, and how a person attaches. Raises TrunklineError `busy`,
        `unsupported`, `history_lost`, and what keeps the other from starting; a terminal that does not start is taken back.
        """
        state = self._pen.memory.session
        if not isinstance(self._adapter, OpensTerminals):
            raise unsupported("terminal", f"{self._adapter.manifest.title} has no terminal to hand the session over to")
        if args.to != state.interface:
            if args.to == "terminal" and not (state.native_session and state.turns):
                raise TrunklineError(
                    "history_lost", "nothing was said yet that a terminal could take up: send a prompt first"
                )
            await self._come_to_rest(interrupt=args.interrupt)
            await self._change(args, command, source)
        try:
            await self._start()
        except TrunklineError:
            if args.to == "terminal" and args.to != state.interface:
                await self._change(HandOver(to="structured"), command, source)
            raise
        state = self._pen.memory.session
        return {"interface": state.interface, "attach": state.attach}

    async def _come_to_rest(self, *, interrupt: bool) -> None:
        state, agent = self._pen.memory.session, self._life.agent
        works = agent is not None and any(task.status in {"pending", "running"} for task in state.tasks)
        if not (self._life.busy or state.open_asks or works):
            return
        if not interrupt:
            raise TrunklineError(
                "busy",
                "a turn runs, a task in the background does, or an ask is open: wait, or hand over with `interrupt`",
            )
        if agent is None or not isinstance(agent.session, Interruptible):
            return
        # What does not end by itself ends with its agent.
        with contextlib.suppress(TrunklineError, TimeoutError):
            async with asyncio.timeout(self._settings.effect_within):
                await agent.session.interrupt(cancel_queued=True)
                await self._life.idle()

    async def _change(self, args: HandOver, command: str, source: Source | None) -> None:
        async def write() -> None:
            if args.to == "structured":
                # Whatever tmux still holds: two programs must not have one conversation.
                await end_family({SESSION_MARK: f"{HELD}{self._pen.memory.session.session}"})
            by = source.actor if source else None
            self._pen.write(SessionHandedOver(to=args.to, by=by), cause=command, source=source)
            await self._writer.flush()

        await self._life.replace_agent("handed_over", write, grace=self._settings.close_grace)

    async def _start(self) -> None:
        """What starts in a terminal has started once it shows something; an agent, once its adapter says so."""
        agent = await self._life.ensure()
        if self._pen.memory.session.interface == "structured":
            return
        waits = [asyncio.create_task(event.wait()) for event in (agent.ready, agent.gone)]
        try:
            await asyncio.wait(waits, timeout=_READY_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if agent.gone.is_set():
            said = agent.exit.stderr_tail.strip()[-1000:] if agent.exit is not None else ""
            raise TrunklineError("agent_failed", f"it ended at its start: {said or 'it said nothing'}")
