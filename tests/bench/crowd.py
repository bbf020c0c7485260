"""A crowd: 200 clients on 20 sessions at two gateways, against plain aiohttp that sends as much to as many.

First a backlog is handed out at full speed, then facts come at a pace and say when they were written.
"""

import asyncio
import json
import re
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import psutil
from tests.bench.blast import MARK
from tests.bench.child import module
from tests.bench.fanout import Gateway, another, cpu, gateway
from tests.bench.report import Figure, percentile
from tests.bench.sockets import Counter, close, connect, subscribed

from trunkline_bus import direct
from trunkline_wire import encode, make_event, subjects, timestamp
from trunkline_wire.blocks import TextBlock
from trunkline_wire.turn import MessageAssistant

CLIENTS: Final = 200
SESSIONS: Final = 20
GATEWAYS: Final = 2
FACTS: Final = 200
"""Of each session in the backlog."""
ROUNDS: Final = 3
PACED: Final = 1_000
"""Facts that come at a pace, of all sessions: 5 s."""
EVERY_S: Final = 0.005
TEXT: Final = 300
MB: Final = 1024 * 1024
_CLOCK: Final = re.compile(rb"at=(\d{19});")
_TAIL: Final = 32
"""Bytes kept of a read, in which a clock may have been cut."""


class Timer(Counter):
    """Notes how old each clock is when it comes, in ms."""

    def __init__(self) -> None:
        super().__init__()
        self.ages: list[float] = []
        self._rest = b""

    def buffer_updated(self, nbytes: int) -> None:
        now = time.time_ns()
        data = self._rest + bytes(self.received(nbytes))
        end = 0
        for found in _CLOCK.finditer(data):
            self.ages.append((now - int(found[1])) / 1e6)
            end = found.end()
        self._rest = data[max(end, len(data) - _TAIL) :]
        super().buffer_updated(nbytes)


class Result(msgspec.Struct, kw_only=True):
    """Deliveries a second of a backlog, CPU us a delivery, ages in ms of what came at a pace, bytes that it grew."""

    rate: float
    us: float
    ages: list[float]
    grew: int
    frame: int


def clock(number: int) -> str:
    return f"at={time.time_ns()}; {number} ".ljust(TEXT, "x")


class Crowd:
    """The gateways and the sessions that are written to."""

    def __init__(self, gateways: Sequence[Gateway]) -> None:
        self.gateways = gateways
        self._bus = gateways[0].bus
        self._seqs = dict[str, int]()

    @property
    def sessions(self) -> list[str]:
        return list(self._seqs)

    async def begin(self) -> None:
        for _ in range(SESSIONS):
            self._seqs[await self.gateways[0].new_session()] = 1

    async def fact(self, session: str, text: str) -> None:
        self._seqs[session] += 1
        data = MessageAssistant(content=[TextBlock(text=text)])
        event = make_event(data, session=session, time=timestamp(), seq=self._seqs[session], epoch=1)
        headers = {subjects.HEADER_ID: event.id, subjects.HEADER_TYPE: event.type}
        await self._bus.writing.publish(subjects.event(session, "agent.fact"), encode(event), headers=headers)

    async def fill(self) -> None:
        """The backlog, the sessions in turn; the last fact of each has the mark."""
        end = await direct.end(self._bus, subjects.EVENTS)
        for number in range(FACTS):
            for session in self.sessions:
                text = "x" * TEXT if number < FACTS - 1 else "x" * (TEXT - len(MARK)) + MARK.decode()
                await self.fact(session, text)
            await self._bus.writing.flush()
        while await direct.end(self._bus, subjects.EVENTS) < end + FACTS * SESSIONS:  # noqa: ASYNC110 - the server's doing
            await asyncio.sleep(0.02)

    async def backlog(self, clients: Sequence[Counter]) -> tuple[float, float, int]:
        """Wall seconds, CPU seconds of all gateways, and bytes of a frame, for a backlog of every session."""
        processes = [one.process for one in self.gateways]
        arrived = [client.expect(MARK) for client in clients]
        before = sum(client.bytes for client in clients)
        for process in processes:
            process.suspend()
        try:
            await self.fill()
            spent, begin = sum(map(cpu, processes)), time.perf_counter()
        finally:
            for process in processes:
                process.resume()
        await asyncio.wait_for(asyncio.gather(*arrived), 120)
        wall = time.perf_counter() - begin
        frame = (sum(client.bytes for client in clients) - before) // (FACTS * len(clients))
        return wall, sum(map(cpu, processes)) - spent, frame

    async def pace(self) -> None:
        """Facts of all sessions in turn, each with the time at which it was written."""
        begin = time.perf_counter()
        for number in range(PACED):
            await asyncio.sleep(max(0.0, begin + number * EVERY_S - time.perf_counter()))
            await self.fact(self.sessions[number % SESSIONS], clock(number))
            await self._bus.writing.flush()


@asynccontextmanager
async def watching(crowd: Crowd) -> AsyncGenerator[list[Timer]]:
    """Every client, each subscribed to one session at one gateway."""
    async with AsyncExitStack() as stack:
        clients: list[Timer] = []
        for number, session in enumerate(crowd.sessions):
            for at in crowd.gateways:
                each = CLIENTS // SESSIONS // GATEWAYS
                found = await stack.enter_async_context(subscribed(at.url, at.token, session, each, kind=Timer))
                clients += found
            assert len(clients) == CLIENTS // SESSIONS * (number + 1)
        yield clients


def used(processes: Sequence[psutil.Process]) -> int:
    return sum(process.memory_full_info().uss for process in processes)


async def ours(one: Path, two: Path) -> Result:
    async with gateway(one) as first, another(first, two) as second:
        crowd = Crowd([first, second])
        await crowd.begin()
        processes = [first.process, second.process]
        before = used(processes)
        async with watching(crowd) as clients:
            runs = sorted([await crowd.backlog(clients) for _ in range(ROUNDS)])
            await crowd.pace()
            await all_came(clients, PACED // SESSIONS)
            grew = used(processes) - before
        wall, spent, frame = runs[ROUNDS // 2]
        return _result(clients, wall, spent, grew, frame)


async def plain(frame: int) -> Result:
    """As many clients at two programs of plain aiohttp: the same frames, to all of them one by one."""
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(module("tests.bench.blast")) for _ in range(GATEWAYS)]
        processes = [psutil.Process(server.pid) for server in servers]
        clients: list[Timer] = []
        stack.callback(close, clients)
        ports = [json.loads(await _line(server))["port"] for server in servers]
        before = used(processes)
        for port in ports:
            clients += [await connect(f"http://127.0.0.1:{port}", kind=Timer) for _ in range(CLIENTS // GATEWAYS)]
        runs: list[tuple[float, float]] = []
        for _ in range(ROUNDS):
            arrived = [client.expect(MARK) for client in clients]
            spent, begin = sum(map(cpu, processes)), time.perf_counter()
            for server in servers:
                _tell(server, f"{FACTS} {frame}")
            await asyncio.wait_for(asyncio.gather(*arrived), 120)
            runs.append((time.perf_counter() - begin, sum(map(cpu, processes)) - spent))
            await asyncio.gather(*map(_line, servers))
        # As much at a pace as a client of one session gets, and as often in all.
        for server in servers:
            _tell(server, f"{PACED // SESSIONS} {frame} {EVERY_S * SESSIONS}")
        await all_came(clients, PACED // SESSIONS)
        grew = used(processes) - before
        wall, spent = sorted(runs)[ROUNDS // 2]
        return _result(clients, wall, spent, grew, frame)


def _tell(server: asyncio.subprocess.Process, line: str) -> None:
    assert server.stdin is not None
    server.stdin.write(f"{line}\n".encode())


async def _line(server: asyncio.subprocess.Process) -> bytes:
    assert server.stdout is not None
    return await server.stdout.readline()


async def all_came(clients: Sequence[Timer], count: int) -> None:
    async with asyncio.timeout(60):
        while any(len(client.ages) < count for client in clients):  # noqa: ASYNC110 - other processes' doing
            await asyncio.sleep(0.02)


def _result(clients: Sequence[Timer], wall: float, spent: float, grew: int, frame: int) -> Result:
    deliveries = FACTS * CLIENTS
    ages = [age for client in clients for age in client.ages]
    return Result(rate=deliveries / wall, us=spent / deliveries * 1e6, ages=ages, grew=grew, frame=frame)


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        here = await ours(Path(one), Path(two))
    bare = await plain(here.frame)
    who = f"{CLIENTS} clients, {SESSIONS} sessions, {GATEWAYS} gateways"
    figures = [
        Figure(
            name=f"{who}, facts delivered",
            unit="/s",
            value=here.rate,
            limit=bare.rate,
            limit_name="plain aiohttp",
            goal=None,
            note=f"{here.frame} B; CPU {here.us:.1f} against {bare.us:.1f} us a delivery",
        )
    ]
    for name, share in (("median", 0.5), ("p99", 0.99)):
        figures.append(
            Figure(
                name=f"age of a fact at a client, {name}",
                unit="ms",
                value=percentile(here.ages, share),
                limit=percentile(bare.ages, share),
                limit_name="plain aiohttp",
                goal=None,
                note="ours by way of the log" if share == 0.5 else f"{1 / EVERY_S:.0f} facts a second in all",
            )
        )
    figures.append(
        Figure(
            name="memory of all gateways for the crowd",
            unit="MB",
            value=here.grew / MB,
            limit=bare.grew / MB,
            limit_name="plain aiohttp",
            goal=None,
            note=f"{here.grew / CLIENTS / 1000:.0f} KB a client, with the ring of latest facts",
        )
    )
    return figures
