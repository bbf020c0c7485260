"""A session of 16,000 events and 50 MB, and one of 160: how long the first page and older ones take, and what the gateway grows.

A page's server time is what gateway and nats-server ran between request and answer, as the kernel counts it.
"""

import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.bench.fanout import Gateway, gateway
from tests.bench.histories import time_run
from tests.bench.report import Figure, percentile

from trunkline_bus import direct, kv, mirror, pages, views
from trunkline_bus.connection import Bus
from trunkline_testkit import eventually
from trunkline_testkit.product import Client
from trunkline_wire import Data, encode, make_event, subjects, timestamp
from trunkline_wire.blocks import TextBlock
from trunkline_wire.ids import new_host_id, new_session_id
from trunkline_wire.session import SessionCreated
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted

EVENTS: Final = 16_000
SHORT: Final = 160
MB: Final = 1024 * 1024
PAGE: Final = 50
FIRST_MS: Final = 100.0
GROWS_MB: Final = 50.0
ROUNDS: Final = 9
UNACKED: Final = 1_000
_TEXT: Final = "Ein Blick in die Geschichte. " * 215


def life(count: int) -> Iterator[tuple[Data, str | None]]:
    """So many events, with the item of each: prompts, calls with long results, and long answers."""
    yield SessionCreated(adapter="bench", cwd="/", host=new_host_id(), workspace="ws_" + "0" * 32), None
    for number in range(1, count):
        turn, step = divmod(number, 4)
        match step:
            case 0:
                yield MessageUser(content=[TextBlock(text=f"prompt {turn}")]), f"itm_{turn:016x}{0:016x}"
            case 1:
                yield ToolStarted(name="Bash", kind="execute", input={"command": "ls"}), f"itm_{turn:016x}{1:016x}"
            case 2:
                yield ToolCompleted(status="completed", content=[TextBlock(text=_TEXT)]), f"itm_{turn:016x}{1:016x}"
            case _:
                yield MessageAssistant(content=[TextBlock(text=f"{turn} {_TEXT}")]), f"itm_{turn:016x}{3:016x}"


async def store(bus: Bus, session: str, count: int) -> int:
    """Put the session into the log; its bytes."""
    before, size = await direct.end(bus, subjects.EVENTS), 0
    for seq, (data, item) in enumerate(life(count), 1):
        event = make_event(data, session=session, time=timestamp(), seq=seq, epoch=1, item=item)
        headers = {subjects.HEADER_ID: event.id, subjects.HEADER_TYPE: event.type}
        subject, raw = subjects.event(session, "agent.fact"), encode(event)
        size += len(raw)
        if seq % UNACKED and seq < count:
            await bus.writing.publish(subject, raw, headers=headers)
            continue
        stored = await bus.js.publish(subject, raw, headers=headers, timeout=60)
        if stored.seq != before + seq:
            raise RuntimeError(f"the server dropped {before + seq - stored.seq} of {seq} events")
    return size


async def indexed(bus: Bus, session: str, count: int) -> bool:
    """Whether the projector has all of the session in its index of pages."""
    used = await mirror.edition(bus, subjects.KV_PAGES)
    entry = None if used is None else await kv.get(bus, subjects.KV_PAGES, used.key(session))
    if entry is None or entry.value is None:
        return False
    return pages.decode_index(bytes(views.decode_document(entry.value).state)).total == count


class Lengthy:
    """A gateway, a projector, and both sessions. `bytes` are those of the long one's events."""

    def __init__(self, running: Gateway, home: Path, servers: list[int], size: int, long: str, short: str) -> None:
        self.bytes = size
        self.long, self.short = long, short
        self.bus = running.bus
        self.url, self.token = running.url, running.token
        self._running = running
        self._home = home
        self._servers = servers

    async def client(self) -> Client:
        return await Client.connect("http://localhost", socket=str(self._home / "gateway.sock"))

    def memory(self) -> int:
        """Private bytes of the gateway."""
        return self._running.process.memory_full_info().uss

    def ran(self) -> float:
        return time_run([self._running.process.pid, *self._servers])


@asynccontextmanager
async def lengthy(home: Path) -> AsyncGenerator[Lengthy]:
    async with gateway(home, "projector") as running:
        short, long = new_session_id(), new_session_id()
        await store(running.bus, short, SHORT)
        size = await store(running.bus, long, EVENTS)
        for session, count in ((short, SHORT), (long, EVENTS)):
            await eventually(lambda s=session, c=count: indexed(running.bus, s, c), 120)
        yield Lengthy(running, home, [running.server.pid], size, long, short)


class Took(msgspec.Struct):
    """Milliseconds from request to answer, and those that gateway and nats-server ran meanwhile."""

    wall: float
    ran: float


async def _timed(history: Lengthy, client: Client, method: str, **params: Any) -> tuple[Any, Took]:
    spent, begin = history.ran(), time.perf_counter()
    answer = await client.call(method, **params)
    wall = (time.perf_counter() - begin) * 1e3
    return answer, Took(wall, history.ran() - spent)


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        async with lengthy(Path(folder)) as history, await history.client() as client:
            await client.call("session.history", session=history.short)  # the connection is warm
            before = history.memory()
            first: dict[str, list[Took]] = {}
            for session in (history.short, history.long) * ROUNDS:
                _, took = await _timed(history, client, "session.history", session=session)
                first.setdefault(session, []).append(took)
            _, opened = await _timed(history, client, "subscribe", session=history.long)
            older: list[Took] = []
            page, _ = await _timed(history, client, "session.history", session=history.long)
            while page["has_more"]:
                where = {"session": history.long, "before": page["before"]}
                page, took = await _timed(history, client, "session.history", **where)
                older.append(took)
            grew = (history.memory() - before) / MB
    size = f"{EVENTS:,} events, {history.bytes / MB:.0f} MB"
    short = percentile([one.ran for one in first[history.short]], 0.5)
    long = percentile([one.ran for one in first[history.long]], 0.5)
    walls = [one.wall for one in first[history.long]]
    return [
        _page(f"first page, {size}, server time", long, f"wall {percentile(walls, 0.5):.1f} ms"),
        Figure(
            name="the same against a session of its last hundredth",
            unit="ms",
            value=long,
            limit=short,
            limit_name=f"{SHORT} events",
            goal=2.0,
        ),
        _page("subscribe with its snapshot, server time", opened.ran, f"wall {opened.wall:.1f} ms"),
        _page(
            f"older page, median of {len(older)}, server time",
            percentile([one.ran for one in older], 0.5),
            f"worst {max(one.ran for one in older):.1f} ms",
        ),
        Figure(
            name="gateway's memory for all of its pages",
            unit="MB",
            value=grew,
            limit=GROWS_MB,
            limit_name="what it may grow",
            goal=1.0,
        ),
    ]


def _page(name: str, value: float, note: str) -> Figure:
    return Figure(
        name=name, unit="ms", value=value, limit=FIRST_MS, limit_name="what a page may take", goal=1.0, note=note
    )
