"""The owner's side of a terminal on a real nats-server: frames, paintings, windows, and who types."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import nats.errors

from trunkline_agentkit.protocol import Terminal
from trunkline_agentkit.terminal import TerminalHost
from trunkline_bus.client import Received
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.tasks import end
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsLike
from trunkline_wire import encode, subjects
from trunkline_wire.ids import new_session_id
from trunkline_wire.terminal import WINDOW, Frame, TerminalReply, TerminalRequest, keys_message, read_frame

KB = 1024


class FakeTerminal:
    """A fake of a session with a terminal: its screen is the number of bytes that were printed."""

    size = (80, 24)
    writable = True

    def __init__(self) -> None:
        self.shows: Callable[[bytes], None] | None = None
        self.printed = 0
        self.typed = ""
        self.failing = False

    def follow(self, shows: Callable[[bytes], None] | None) -> None:
        self.shows = shows

    def print(self, data: bytes) -> None:
        self.printed += len(data)
        if self.shows is not None:
            self.shows(data)

    async def paint(self, history: int, place: Callable[[bytes], None]) -> None:
        if self.failing:
            raise RuntimeError("no screen")
        place(f"{self.printed} printed, {history} above".encode())

    async def type(self, keys: str) -> None:
        if self.failing:
            raise OSError("gone")
        self.typed += keys

    async def resize(self, columns: int, rows: int) -> None:
        self.size = (columns, rows)

    def messages(self) -> Any:
        raise AssertionError("the terminal alone is looked at here")


class Desk:
    """The host under test, and what comes for the gateways that asked."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.session = new_session_id()
        self.terminal = FakeTerminal()
        self.started = 0
        self.host = TerminalHost(bus, self.session, ensure=self._ensure, touch=lambda: None)
        self.frames: dict[str, list[Frame]] = {}

    async def _ensure(self) -> None:
        self.started += 1
        self.start()

    def start(self) -> None:
        self.host.use(self.terminal)  # pyright: ignore[reportArgumentType]  # all that the host looks at

    async def hear(self, gateway: str) -> None:
        frames = self.frames[gateway] = []

        def take(message: Received) -> None:
            frame = read_frame(message.data)
            assert frame is not None
            frames.append(frame)

        await self.bus.reading.subscribe_direct(subjects.terminals_out(gateway), take)
        await self.bus.reading.flush()

    async def ask(self, kind: Any, gateway: str = "", **fields: Any) -> TerminalReply:
        request = TerminalRequest(kind=kind, gateway=gateway, **fields)
        answer = await self.bus.reading.request(subjects.terminal_ctl(self.session), encode(request), timeout=5)
        return msgspec.json.decode(answer.data, type=TerminalReply)

    async def type(self, viewer: str, keys: bytes) -> None:
        await self.bus.reading.publish(subjects.terminal_in(self.session), keys_message(viewer, keys))

    def output(self, gateway: str) -> list[Frame]:
        return [frame for frame in self.frames[gateway] if frame.kind == b"o"]

    def paintings(self, gateway: str) -> list[tuple[int, bytes]]:
        return [(frame.offset, frame.painting[1]) for frame in self.frames[gateway] if frame.kind == b"p"]


@asynccontextmanager
async def desk(server: NatsLike) -> AsyncGenerator[Desk]:
    async with Bus.open(BusSettings(url=server.url)) as bus:
        found = Desk(bus)
        assert isinstance(found.terminal, Terminal)
        running = asyncio.create_task(found.host.run())
        try:
            await bus.commands.flush()
            await eventually(lambda: found.ask("release", viewer="nobody"), ignore=(nats.errors.NoRespondersError,))
            yield found
        finally:
            await end(running)


async def test_paintings_and_what_follows_them_join_without_a_hole(nats_server: NatsLike) -> None:
    async with desk(nats_server) as there:
        await there.hear("one")
        assert (await there.ask("open")).state is not None
        assert there.started == 1
        there.terminal.print(b"before")
        reply = await there.ask("attach", "one", viewer="v1", history=7)
        assert reply.state is not None
        assert (reply.state.running, reply.state.columns) == (True, 80)
        there.terminal.print(b"after")
        await eventually(lambda: there.output("one"))
        assert there.paintings("one") == [(6, b"6 printed, 7 above")]
        assert [(frame.offset, frame.content) for frame in there.output("one")] == [(6, b"after")]
        assert {frame.terminal for frame in there.frames["one"]} == {reply.state.terminal}


async def test_a_gateway_that_stands_still_gets_a_window_and_later_a_painting(nats_server: NatsLike) -> None:
    async with desk(nats_server) as there:
        there.start()
        for name in ("frozen", "live"):
            await there.hear(name)
            await there.ask("attach", name, viewer=name)
        for number in range(1, 41):
            there.terminal.print(b"x" * 64 * KB)
            await eventually(lambda number=number: len(there.output("live")) >= number)
            request = TerminalRequest(kind="ack", gateway="live", offset=number * 64 * KB)
            await there.bus.reading.publish(subjects.terminal_ctl(there.session), encode(request))
            await there.ask("release", viewer="nobody")
        assert sum(len(frame.content) for frame in there.output("frozen")) == WINDOW
        assert sum(len(frame.content) for frame in there.output("live")) == 40 * 64 * KB
        request = TerminalRequest(kind="ack", gateway="frozen", offset=WINDOW)
        await there.bus.reading.publish(subjects.terminal_ctl(there.session), encode(request))
        await eventually(lambda: len(there.paintings("frozen")) == 2)
        there.terminal.print(b"and on")
        await eventually(lambda: there.output("frozen")[-1].content == b"and on")
        assert there.paintings("frozen")[-1][0] == there.output("frozen")[-1].offset == 40 * 64 * KB


async def test_one_types_at_a_time(nats_server: NatsLike) -> None:
    async with desk(nats_server) as there:
        there.start()
        await there.type("a", b"nobody")
        taken = await there.ask("take", viewer="a", actor="ann")
        assert taken.state is not None
        assert taken.state.writer is not None
        assert taken.state.writer.actor == "ann"
        await there.type("a", "wör".encode()[:2])
        await there.type("a", "wör".encode()[2:] + b"ld")
        await eventually(lambda: there.terminal.typed == "wörld")
        refused = await there.ask("take", viewer="b", actor="bob")
        assert refused.error is not None
        assert refused.error.code == "terminal_taken"
        assert (await there.ask("resize", viewer="b", columns=10, rows=10)).error is not None
        assert (await there.ask("take", viewer="b", actor="bob", force=True)).error is None
        await there.type("a", b"no")
        await there.type("b", b"!")
        await eventually(lambda: there.terminal.typed == "wörld!")
        await there.ask("resize", viewer="b", columns=100, rows=5000)
        await eventually(lambda: there.terminal.size == (100, 1000))
        released = await there.ask("release", viewer="b")
        assert released.state is not None
        assert released.state.writer is None


async def test_nothing_that_fails_there_ends_the_session(nats_server: NatsLike) -> None:
    async with desk(nats_server) as there:
        there.start()
        await there.ask("take", viewer="a")
        there.terminal.failing = True
        await there.type("a", b"keys")
        await there.bus.reading.publish(subjects.terminal_ctl(there.session), b"no request")
        await there.hear("one")
        failed = await there.ask("attach", "one", viewer="v")
        assert failed.error is not None
        assert failed.error.code == "internal"
        there.terminal.failing = False
        assert (await there.ask("attach", "one", viewer="v")).error is None
        assert (await there.ask("alive", "stranger", viewers=["v"])).known is False
