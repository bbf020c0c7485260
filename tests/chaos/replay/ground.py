"""Plays a story on a real server, with live projections behind a proxy, and rebuilds them from the log."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
from tests.chaos.replay.story import CHANNELS, Fault, Message, Step
from tests.integration.projector.stage import documents

from trunkline_bus import direct, kv, leader, topology
from trunkline_bus.cells import Cells
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.projection import Projection
from trunkline_bus.reader import read
from trunkline_bus.stored import Stored
from trunkline_bus.views import View, decode_document
from trunkline_gateway.directory import Directory
from trunkline_permissions.view import AsksView
from trunkline_projector.histories import PagesView
from trunkline_projector.sessions import SessionsView
from trunkline_projector.workspaces import Listed, Workspaces, reduce
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.proxy import Action, NatsProxy, Passing
from trunkline_wire import encode, subjects
from trunkline_wire.ids import is_id

VIEWS: tuple[type[View[Any]], ...] = (SessionsView, PagesView, AsksView)


class Line:
    """The services that project, on one connection."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._tasks: list[asyncio.Task[None]] = []
        self.projections: list[Projection[Any]] = []
        self._bus: Bus | None = None

    async def start(self) -> None:
        bus = self._bus = await Bus.open(BusSettings(url=self._url))
        self.projections = [Projection(bus, view(), "projector") for view in VIEWS]
        self._tasks = [asyncio.create_task(one.run()) for one in self.projections]
        self._tasks.append(asyncio.create_task(Workspaces(bus).run()))

    async def caught_up(self, bus: Bus) -> None:
        """Wait until all that concerns each projection is stored."""
        for view, projection in zip(VIEWS, self.projections, strict=True):
            last = [await direct.last(bus, subjects.EVENTS, one) for one in view.filters]
            end = max((one.sequence for one in last if one is not None), default=0)
            await asyncio.wait_for(projection.ready.wait(), 60)
            await eventually(lambda projection=projection, end=end: projection.stored >= end, 60)

    async def stop(self) -> None:
        """Killed where it stands."""
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._bus is not None:
            await self._bus.close()
            self._bus = None
        for result in results:
            if isinstance(result, Exception):
                raise result


class Ground:
    def __init__(self, server: NatsServer, bus: Bus, proxy: NatsProxy) -> None:
        self.bus = bus
        self._server = server
        self._proxy = proxy
        self._line = Line(proxy.url)
        self._saved = False
        self.directory = Directory(bus)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls) -> "AsyncGenerator[Ground]":
        server = NatsServer(sync_interval="always")
        try:
            await asyncio.to_thread(server.start)
            async with Bus.open(BusSettings(url=server.url)) as bus, NatsProxy(server.url) as proxy:
                await topology.apply(bus.js)
                await bus.read_log_id()
                ground = cls(server, bus, proxy)
                watching = asyncio.create_task(ground.directory.run())
                await ground._line.start()
                try:
                    yield ground
                finally:
                    proxy.on_publish = None
                    proxy.heal()
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)
                    await ground._line.stop()
        finally:
            await asyncio.to_thread(server.stop)

    async def play(self, story: list[Step]) -> None:
        for step in story:
            if isinstance(step, Message):
                await self._store(step)
            else:
                await self._harm(step)

    async def _store(self, message: Message) -> None:
        if message.erases is None:
            await self._append(message, message.subject)
            return
        # As an operator does it: on all subjects, then what is below goes.
        first, *_ = [await self._append(message, subjects.event(message.erases, channel)) for channel, _ in CHANNELS]
        everything = subjects.session_events(message.erases)
        await self.bus.js.purge_stream(subjects.EVENTS, subject=everything, seq=first)

    async def _append(self, message: Message, subject: str) -> int:
        about = {subjects.HEADER_ID: message.id, subjects.HEADER_TYPE: message.type}
        while not isinstance(stored := await leader.publish(self.bus.mux, subject, message.raw, about), int):
            await self.bus.mux.connected()
        return stored

    async def _harm(self, fault: Fault) -> None:
        match fault:
            case "restart":
                await self._line.stop()
                await self._line.start()
            case "broken flush":
                self._break_flush("hold")
            case "unheard flush":
                self._break_flush("pass_then_hold")
            case "rival":
                rival = Line(self._server.url)
                await rival.start()
                await rival.caught_up(self.bus)
                await rival.stop()
            case "outage":
                await asyncio.to_thread(self._server.kill)
                await asyncio.to_thread(self._server.start)
                await self.bus.mux.connected()
            case "lost writes":
                await self._lose_writes()

    def _break_flush(self, action: Action) -> None:
        """The next write to a bucket of documents gets lost with its line, or is stored and its ack gets lost."""

        def on_publish(message: Passing) -> Action | None:
            if not message.subject.startswith("$KV."):
                return None
            self._proxy.on_publish = None
            asyncio.get_running_loop().call_later(0.01, self._cut_off)
            return action

        self._proxy.on_publish = on_publish

    def _cut_off(self) -> None:
        self._proxy.reset()
        self._proxy.heal()

    async def _lose_writes(self) -> None:
        """The server dies and has lost what was written to the buckets since a moment ago, as it does on one replica."""
        streams = Path(self._server.store) / "jetstream" / "$G" / "streams"
        await asyncio.to_thread(self._server.terminate)
        copy = Path(self._server.home) / "copy"
        buckets = [kv.stream(view.bucket) for view in VIEWS]
        for name in buckets:
            await asyncio.to_thread(shutil.copytree, streams / name, copy / name)
        await asyncio.to_thread(self._server.start)
        await self.bus.mux.connected()
        await self._line.caught_up(self.bus)
        await asyncio.to_thread(self._server.kill)
        for name in buckets:
            shutil.rmtree(streams / name)
            shutil.move(copy / name, streams / name)
        await asyncio.to_thread(self._server.start)
        await self.bus.mux.connected()

    async def compare(self) -> None:
        """All that the live projections have stored against a rebuild from zero, byte for byte."""
        await self._line.caught_up(self.bus)
        for view in VIEWS:
            wanted = rebuild(view(), await read(self.bus, subjects.EVENTS, view.filters))
            with contextlib.suppress(AssertionError):
                await eventually(lambda view=view, wanted=wanted: self._stored(view, wanted), 20)
            found = await documents(self.bus, view)
            assert {key: (found.get(key), wanted.get(key)) for key in differing(found, wanted)} == {}
        sessions = await documents(self.bus, SessionsView)
        await eventually(lambda: self._workspaces(sessions), 30)
        last = await direct.last(self.bus, subjects.EVENTS, subjects.ALL_EVENTS)
        await eventually(lambda: last is None or self.directory.position >= last.sequence, 30)
        states = {key: decode_document(raw).state for key, raw in sessions.items()}
        shown = {key: encode(state) for key, state in self.directory.states.items()}
        assert {key: bytes(raw) for key, raw in states.items()} == shown

    async def _stored(self, view: type[View[Any]], wanted: dict[str, bytes]) -> bool:
        return await documents(self.bus, view) == wanted

    async def _workspaces(self, sessions: dict[str, bytes]) -> bool:
        members: dict[str, list[Listed]] = {}
        for raw in sessions.values():
            listed = msgspec.json.decode(bytes(decode_document(raw).state), type=Listed)
            if listed.workspace is not None and is_id(listed.workspace, "ws"):
                members.setdefault(listed.workspace, []).append(listed)
        there = {entry.key: entry.value for entry in await kv.entries(self.bus, subjects.KV_WORKSPACES)}
        assert there == {key: encode(reduce(key, listed)) for key, listed in members.items()}
        return True


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> set[str]:
    """The keys that are not the same in both."""
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def rebuild(view: View[Any], log: list[Stored]) -> dict[str, bytes]:
    """The documents that a projection has that reads the log from zero, without any I/O."""
    cells = Cells(view)
    made: dict[str, bytes] = {}
    for stored in log:
        key = view.key(stored)
        if key is None:
            continue
        if key not in cells:
            cells.begin(key)
        cells.apply(stored)
        parts = view.attachments(cells[key].state)
        made |= {f"{key}.{name}": value for name, value in parts}
        cells.stored(key, {name for name, _ in parts})
        made[key] = cells.document(cells[key])
    return made
