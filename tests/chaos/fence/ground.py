"""Where owners meet: one server or three, a line of its own for each owner, and the judge of what they leave."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.reader import read_session
from trunkline_bus.stored import Stored
from trunkline_bus.writer import SessionWriter
from trunkline_fold.check import check_session
from trunkline_testkit import eventually
from trunkline_testkit.chaos.points import kind_of
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_testkit.proxy import Action, NatsProxy, Passing
from trunkline_wire import AgentRef, TrunklineError
from trunkline_wire.session import SessionCreated
from trunkline_wire.subjects import HEADER_EXPECTED
from trunkline_wire.turn import MessageSystem

AGENT = AgentRef(adapter="demo")
WAIT_S = 40.0
"""An election takes up to nine seconds, on a busy machine more."""


class Line:
    """One owner's way to the servers: a proxy for each, cut, healed and reset together."""

    def __init__(self, proxies: Sequence[NatsProxy]) -> None:
        self.proxies = proxies

    @property
    def url(self) -> str:
        return ",".join(proxy.url for proxy in self.proxies)

    def cut(self) -> None:
        for proxy in self.proxies:
            proxy.cut()

    def heal(self) -> None:
        for proxy in self.proxies:
            proxy.heal()

    def reset(self) -> None:
        for proxy in self.proxies:
            proxy.reset()

    def watch_clear(self) -> None:
        """Lets everything pass from now on."""
        for proxy in self.proxies:
            proxy.on_publish = proxy.on_deliver = None

    def cut_at(self, type: str) -> asyncio.Event:
        """The next event of `type` stays on its way until `heal`; the event returned is set once it is there."""
        caught = asyncio.Event()

        def on_publish(message: Passing) -> Action | None:
            if message.type != type:
                return None
            self.watch_clear()
            asyncio.get_running_loop().call_soon(self.cut)
            caught.set()
            return "hold"

        for proxy in self.proxies:
            proxy.on_publish = on_publish
        return caught

    def deafen(self) -> asyncio.Event:
        """From now on facts reach the server, and no answer to one comes back; set with the first that was dropped."""
        dropped, awaited = asyncio.Event(), set[str]()

        def on_publish(message: Passing) -> None:
            if kind_of(message.subject) == "fact":
                awaited.add(message.reply)

        def on_deliver(message: Passing) -> Action | None:
            if message.subject not in awaited:
                return None
            dropped.set()
            return "drop"

        for proxy in self.proxies:
            proxy.on_publish, proxy.on_deliver = on_publish, on_deliver
        return dropped


class Ground:
    """`bus` is a connection that nobody disturbs."""

    def __init__(self, nats: NatsServer | NatsCluster, bus: Bus) -> None:
        self.nats = nats
        self.bus = bus

    @property
    def servers(self) -> list[NatsServer]:
        return self.nats.nodes if isinstance(self.nats, NatsCluster) else [self.nats]

    @property
    def replicas(self) -> int:
        return len(self.servers)

    async def kill(self) -> None:
        """Kills the server, or the node that leads EVENTS, and brings it back."""
        victim = self.nats
        if isinstance(victim, NatsCluster):
            victim = await asyncio.to_thread(victim.stream_leader, "EVENTS")
        await asyncio.to_thread(victim.restart)
        if isinstance(self.nats, NatsCluster):
            await asyncio.to_thread(self.nats.wait_ready)

    @asynccontextmanager
    async def line(self) -> AsyncGenerator[Line]:
        proxies = [NatsProxy(server.url) for server in self.servers]
        try:
            for proxy in proxies:
                await proxy.start()
            yield Line(proxies)
        finally:
            for proxy in proxies:
                await proxy.stop()

    @asynccontextmanager
    async def owner(self) -> AsyncGenerator[tuple[Line, Bus]]:
        """A line, and a connection over it."""
        async with self.line() as line:
            bus = await Bus.open(BusSettings(url=line.url, name="owner"))
            try:
                yield line, bus
            finally:
                line.watch_clear()
                line.heal()
                await bus.close()

    async def claim(self, session: str) -> SessionWriter:
        """A new owner, over the undisturbed connection. Claims again where the log was away for too long."""

        async def claimed() -> SessionWriter:
            return await claim(self.bus, session)

        return await eventually(claimed, WAIT_S, ignore=(TimeoutError,))

    async def stored(self, session: str) -> list[Stored]:
        return await read_session(self.bus, session)


@asynccontextmanager
async def ground_on(nats: NatsServer | NatsCluster) -> AsyncGenerator[Ground]:
    """On servers that run. The topology is applied where it is not there yet."""
    replicas = len(nats.nodes) if isinstance(nats, NatsCluster) else 1
    async with Bus.open(BusSettings(url=nats.url, name="ground")) as bus:

        async def applied() -> bool:
            # A cluster that has just elected its first leader refuses for some seconds.
            await topology.apply(bus.js, replicas=replicas, max_bytes=100_000_000)
            await bus.read_log_id()
            return True

        await eventually(applied, WAIT_S, ignore=(TrunklineError,))
        yield Ground(nats, bus)


def created(spawn: str | None = None) -> SessionCreated:
    return SessionCreated(adapter="demo", cwd="/", host="host-a", workspace="ws", spawn=spawn)


def note(text: str) -> MessageSystem:
    return MessageSystem(text=text)


async def claim(bus: Bus, session: str) -> SessionWriter:
    return await SessionWriter.claim(bus, session, worker="heir", host="host-a", agent=AGENT, despite_flapping=True)


def texts(stored: Sequence[Stored]) -> list[tuple[int | None, str]]:
    """(epoch, text) of the notes, in the order of the log."""
    events = [one.event() for one in stored]
    return [(event.epoch, str(event.data.text)) for event in events if isinstance(event.data, MessageSystem)]


def faults(stored: Sequence[Stored]) -> list[str]:
    """What is wrong with a session's log: its events, that each is stored once, and what each was appended behind."""
    found = [str(violation) for violation in check_session([(s.sequence, s.subject, s.event()) for s in stored])]
    ids = [one.id for one in stored]
    found += [f"{id} is stored {ids.count(id)} times" for id in set(ids) if ids.count(id) > 1]
    for before, one in itertools.pairwise([None, *stored]):
        expected = (one.headers or {}).get(HEADER_EXPECTED) if one is not None else None
        if one is not None and expected != str(before.sequence if before is not None else 0):
            found.append(f"{one.type} at {one.sequence} was appended behind {expected}")
    return found
