"""A worker of whose log each session can be halted at a point of its own, so that one crash hits many commands at once."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import nats.errors

from trunkline_agentkit.place import Place
from trunkline_bus.connection import Bus
from trunkline_bus.reader import Reader
from trunkline_bus.stored import Stored
from trunkline_testkit import eventually
from trunkline_testkit.chaos.evidence import Evidence, read_journal
from trunkline_testkit.chaos.points import Mark, Point, Tally, kind_of
from trunkline_testkit.chaos.stage import Part, Stage
from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_testkit.proxy import Action, NatsProxy, Passing
from trunkline_wire import Data, Spawn, TrunklineError, encode, make_command, subjects, timestamp
from trunkline_wire.blocks import TextBlock
from trunkline_wire.commands import Prompt
from trunkline_wire.ids import new_command_id, new_event_id, new_session_id
from trunkline_wire.session import SessionOptions

ROOT: Final = Path(__file__).parents[3]
PYTHONPATH: Final = ":".join(str(ROOT / part) for part in ("", "libs", "services", "tests/chaos/installed"))
WAIT_S: Final = 60.0
ENDS: Final = frozenset({"command.finished", "command.failed", "command.rejected"})


class Halt:
    """Counts what the worker publishes of each session, and lets nothing of a session pass from its point on."""

    def __init__(self, proxies: Sequence[NatsProxy]) -> None:
        self.marks: dict[str, list[Mark]] = {}
        self.halted: set[str] = set()
        self._points: dict[str, Point] = {}
        self._tallies: dict[str, Tally] = {}
        self._answers: dict[str, tuple[str, bool]] = {}
        """Session, and whether the answer is lost, by the subject that it comes to."""
        for proxy in proxies:
            proxy.on_publish, proxy.on_deliver = self._on_publish, self._on_deliver

    def watch(self, session: str, point: Point | None = None) -> None:
        """Counts from now on, up to `point` where one is given."""
        self._tallies[session], self.marks[session] = Tally(), []
        if point is not None:
            self._points[session] = point

    def release(self) -> None:
        """Everything passes again; what was lost stays lost."""
        self._points.clear()
        self._tallies.clear()
        self._answers.clear()
        self.halted.clear()

    def _on_publish(self, message: Passing) -> Action | None:
        session = _session(message.subject)
        if session not in self._tallies or kind_of(message.subject) not in {"fact", "ask"}:
            return None
        if session in self.halted:
            return "drop"
        mark = self._tallies[session].mark(message)
        self.marks[session].append(mark)
        point = self._points.get(session)
        if point is None or point.mark != mark:
            return None
        if point.when == "before":
            self.halted.add(session)
            return "drop"
        self._answers[message.reply] = (session, point.when == "stored")
        return None

    def _on_deliver(self, message: Passing) -> Action | None:
        session, lost = self._answers.pop(message.subject, ("", False))
        if session:
            self.halted.add(session)
        return "drop" if lost else None


def _session(subject: str) -> str:
    words = subject.split(".")
    return words[3] if words[:2] == ["trunk", "ev"] else ""


class Ground:
    """`worker` speaks to NATS through `halt`; `bus` is the test's own connection, over which it follows the log."""

    def __init__(self, stage: Stage, worker: Part, halt: Halt, bus: Bus) -> None:
        self.stage, self.worker, self.halt, self.bus = stage, worker, halt, bus
        self._log: dict[str, list[Stored]] = {}

    async def follow(self) -> None:
        """Reads the log until it is cancelled."""
        async with Reader(self.bus, subjects.EVENTS, [subjects.ALL_EVENTS], after=0) as reader:
            async for stored in reader:
                self._log.setdefault(stored.session or "", []).append(stored)

    async def create(self, **options: Any) -> str:
        """A session of the agent with a journal."""
        session = new_session_id()
        environment = {"CHAOS_JOURNAL": str(self._journal(session)), "PYTHONPATH": PYTHONPATH}
        request = Spawn(
            id=new_event_id(),
            session=session,
            adapter="chaos",
            cwd=str(self.stage.home),
            time=timestamp(),
            host="any",
            options=SessionOptions(environment=environment, **options),
        )
        await self.bus.js_cmd.publish(subjects.spawn("any", "chaos"), encode(request))
        await self.has(session, "session.created")
        return session

    async def command(self, session: str, args: Data, id: str | None = None, target: str | None = None) -> str:
        """Sends it, again and again with the same id until it is in the log."""
        command = make_command(args, id=id or new_command_id(), session=session, time=timestamp(), target=target)
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    await self.bus.js_cmd.publish(subjects.command(session, "tester"), encode(command))
                except (nats.errors.Error, TrunklineError, TimeoutError, OSError):
                    await asyncio.sleep(0.05)
                else:
                    return command.id

    async def prompt(self, session: str, text: str, id: str | None = None) -> str:
        return await self.command(session, Prompt(content=[TextBlock(text=text)]), id)

    def evidence(self, session: str) -> Evidence:
        return Evidence(session, list(self._log.get(session, ())), journal=read_journal(self._journal(session)))

    async def has(self, session: str, type: str, **data: Any) -> dict[str, Any]:
        """The first event of `type` whose data has `data`, once it is there."""

        def found() -> dict[str, Any] | None:
            return first(self.evidence(session).events, type, **data)

        return await eventually(found, WAIT_S, interval=0.1)

    async def ended(self, session: str, command: str) -> dict[str, Any]:
        """The command's outcome, once it is there."""

        def found() -> dict[str, Any] | None:
            events = self.evidence(session).events
            return next((e for e in events if e["type"] in ENDS and e["data"]["command"] == command), None)

        return await eventually(found, WAIT_S, interval=0.1)

    async def ownerless(self, session: str) -> None:
        """Waits until the session's owner has left, by the host's own record."""

        def left() -> bool:
            record = Place(self.stage.home, session).record  # read anew
            return record is not None and record.worker is None

        await eventually(left, WAIT_S, interval=0.1)

    async def kill_server(self) -> None:
        """The server, or the node that leads the log, dies and comes back."""
        victim = self.stage.nats
        if isinstance(victim, NatsCluster):
            victim = await asyncio.to_thread(victim.stream_leader, "EVENTS")
        await asyncio.to_thread(victim.restart)
        if isinstance(self.stage.nats, NatsCluster):
            await asyncio.to_thread(self.stage.nats.wait_ready)

    def _journal(self, session: str) -> Path:
        return self.stage.home / f"{session}.jsonl"


def first(events: list[dict[str, Any]], type: str, **data: Any) -> dict[str, Any] | None:
    return next((e for e in events if e["type"] == type and all(e["data"].get(k) == v for k, v in data.items())), None)


@asynccontextmanager
async def ground_on(stage: Stage) -> AsyncGenerator[Ground]:
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(NatsProxy(server.url)) for server in stage.servers]
        halt = Halt(proxies)
        worker = await stage.start("adapters", via=proxies, only="chaos")
        bus = await stack.enter_async_context(stage.bus())
        ground = Ground(stage, worker, halt, bus)
        following = asyncio.create_task(ground.follow())
        try:
            yield ground
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await worker.end()
