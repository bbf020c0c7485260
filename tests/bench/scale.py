"""What a thousand sessions cost the services and the server: CPU, memory, bytes of log and state, subjects; for 100, 1,000
and 10,000 sessions on one server, one after the other. The cost should be the same for each thousand: that is the figure.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import psutil
from tests.bench.child import module
from tests.bench.idle import settled
from tests.bench.projecting import session_events, store
from tests.bench.report import Figure

from trunkline_bus import direct, jsapi, mirror, topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.places import read_place
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_wire import subjects

STEPS: Final = (100, 1_000, 10_000)
"""`BENCH_SCALE="100 1000"` in the environment takes others."""
TURNS: Final = 1
"""Of each session: a prompt, two tool calls, an answer, with usage; ten events."""
TOGETHER: Final = 100
"""Sessions that live at a time, in every step: the closer a session's events, the more of them one write of its state holds."""
WARM: Final = 100
"""Sessions before the first step: what they bring with them, caches and code, is no session's own."""
SERVICES: Final = ("projector", "permissions", "gateway")
NATS: Final = "nats-server"
STATES: Final = (subjects.KV_SESSIONS, subjects.KV_PAGES, subjects.KV_ASKS)
LINEAR: Final = 1.3


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """Of so many sessions: CPU seconds and bytes of private memory by process, messages, subjects, bytes by stream."""

    sessions: int
    events: int
    subjects: int
    cpu: dict[str, float]
    memory: dict[str, int]
    stored: dict[str, int]

    def minus(self, other: "Bill") -> "Bill":
        return Bill(
            sessions=self.sessions - other.sessions,
            events=self.events - other.events,
            subjects=self.subjects - other.subjects,
            cpu={name: seconds - other.cpu[name] for name, seconds in self.cpu.items()},
            memory={name: size - other.memory[name] for name, size in self.memory.items()},
            stored={name: size - other.stored[name] for name, size in self.stored.items()},
        )

    @property
    def thousands(self) -> float:
        return self.sessions / 1000


class Ground(msgspec.Struct, kw_only=True):
    bus: Bus
    processes: dict[str, psutil.Process]

    async def add(self, sessions: int) -> None:
        """Store so many more, and wait until they are projected; asked seldom, for the server's CPU is measured."""
        for _ in range(0, sessions, TOGETHER):
            await store(self.bus, TOGETHER, lambda: session_events(TURNS))
        end = await direct.end(self.bus, subjects.EVENTS)
        async with asyncio.timeout(1200):
            while not await self._projected(end):  # noqa: ASYNC110 - another process's doing
                await asyncio.sleep(2)

    async def _projected(self, end: int) -> bool:
        for name, bucket in (("sessions", subjects.KV_SESSIONS), ("pages", subjects.KV_PAGES)):
            edition = await mirror.edition(self.bus, bucket)
            place = await read_place(self.bus, name, edition) if edition is not None else None
            if place is None or place.position < end:
                return False
        return True

    async def bill(self, sessions: int) -> Bill:
        """What has been spent so far, once the services are at rest."""
        memory = await settled(self.processes)
        times = {name: process.cpu_times() for name, process in self.processes.items()}
        events = await jsapi.request(self.bus.js, f"STREAM.INFO.{subjects.EVENTS}")
        buckets = {name: await jsapi.request(self.bus.js, f"STREAM.INFO.KV_{name}") for name in STATES}
        return Bill(
            sessions=sessions,
            events=events["state"]["messages"],
            subjects=events["state"]["num_subjects"],
            cpu={name: spent.user + spent.system for name, spent in times.items()},
            memory=memory,
            stored={"log": events["state"]["bytes"]} | {name: info["state"]["bytes"] for name, info in buckets.items()},
        )


async def measure() -> list[Figure]:
    async with ground() as on:
        await on.add(WARM)
        before, bills = await on.bill(WARM), list[Bill]()
        for step in [int(step) for step in os.environ.get("BENCH_SCALE", "").split()] or STEPS:
            await on.add(step)
            after = await on.bill(before.sessions + step)
            bills.append(after.minus(before))
            before = after
    return [figure for bill in bills for figure in figures(bill, bills[1])]


def figures(bill: Bill, standard: Bill) -> list[Figure]:
    """Each cost of a thousand sessions against that of the step of 1,000."""
    stored = {name: size for name, size in bill.stored.items() if name != "log"}
    costs: list[tuple[str, str, float, float, str]] = [
        ("CPU", "s", sum(bill.cpu.values()), sum(standard.cpu.values()), _parts(bill.cpu, bill, 1.0, "s")),
        (
            "memory",
            "MB",
            sum(bill.memory.values()) / 1e6,
            sum(standard.memory.values()) / 1e6,
            _parts(bill.memory, bill, 1e-6, "MB"),
        ),
        (
            "log",
            "MB",
            bill.stored["log"] / 1e6,
            standard.stored["log"] / 1e6,
            f"{bill.events / bill.sessions:.0f} events a session",
        ),
        (
            "state",
            "MB",
            sum(stored.values()) / 1e6,
            sum(size for name, size in standard.stored.items() if name != "log") / 1e6,
            "",
        ),
        ("subjects", "", bill.subjects, standard.subjects, ""),
    ]
    return [
        Figure(
            name=f"{name} of 1,000 sessions, measured at {bill.sessions:,}",
            unit=unit,
            value=value / bill.thousands,
            limit=limit / standard.thousands,
            limit_name="those at 1,000",
            # A hundred sessions are few beside what a process does anyway.
            goal=LINEAR if bill.sessions >= 1_000 else None,
            note=note,
        )
        for name, unit, value, limit, note in costs
    ]


def _parts(each: dict[str, float] | dict[str, int], bill: Bill, scale: float, unit: str) -> str:
    return ", ".join(f"{name} {value * scale / bill.thousands:.1f}" for name, value in each.items()) + f" {unit}"


@asynccontextmanager
async def ground() -> AsyncGenerator[Ground]:
    """A server that syncs as it does by default, and one of each service."""
    async with AsyncExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(NatsServer())
        bus = await stack.enter_async_context(Bus.open(BusSettings(url=server.url, name="bench")))
        await topology.apply(bus.js)
        await bus.read_log_id()
        environment = {
            "PATH": os.environ["PATH"],
            "TRUNKLINE_HOME": home,
            "TRUNKLINE_NATS_URL": server.url,
            "TRUNKLINE_LOG_LEVEL": "error",
        }
        processes = {NATS: psutil.Process(server.pid)}
        for name in SERVICES:
            arguments = ("--port", "0") if name == "gateway" else ()
            process = await stack.enter_async_context(module(f"trunkline_{name}", *arguments, environment=environment))
            processes[name] = psutil.Process(process.pid)
        await eventually((Path(home) / "gateway.json").exists, 60)
        yield Ground(bus=bus, processes=processes)
