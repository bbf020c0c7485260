"""10,000 updates at full speed through a real adapter: from the agent's stdout to the log and to a client.

The limit is what no adapter can do without: the same lines read from the same program's pipe, and parsed.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
from tests.bench import updating
from tests.bench.child import ROOT
from tests.bench.clients import Attached, attached
from tests.bench.pipeline import SERVICES
from tests.bench.report import Figure, cpu

from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.reader import read_session
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.product import Product, running
from trunkline_wire.turn import MessageAssistant, ToolCompleted

AGENT: Final = Path(updating.__file__)
TURNS: Final = 5
UPDATES: Final = 10_000
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "acp": {"native": {"command": [sys.executable, str(AGENT)]}},
    "codex": {},
}


async def measure() -> list[Figure]:
    figures: list[Figure] = []
    for adapter in OPTIONS:
        with tempfile.TemporaryDirectory() as folder, NatsServer() as server:
            program = Path(folder) / "codex"
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{AGENT}" "$@"\n')
            program.chmod(0o755)
            environment = {"TRUNKLINE_PROGRAM_CODEX": str(program)}
            async with (
                running(Path(folder) / "home", environment, "--nats-url", server.url) as up,
                attached(up) as client,
                Bus.open(BusSettings(url=server.url)) as bus,
            ):
                figures += await _turns(adapter, up, [psutil.Process(server.pid)], client, bus)
    return figures


async def _turns(adapter: str, up: Product, others: list[psutil.Process], client: Attached, bus: Bus) -> list[Figure]:
    processes = others + [found for name in SERVICES if (found := up.find(name)) is not None]
    created = await client.call("session.create", adapter=adapter, cwd=str(ROOT), options=OPTIONS[adapter])
    session = created["session"]
    await client.subscribe(session)
    text = updating.text_of(adapter)
    parsed: list[tuple[float, float]] = []
    walls: list[float] = []
    spent = 0.0
    equal = True
    for number in range(TURNS + 1):
        if number:
            parsed.append(await _parse(adapter))
        begin, before = len(client.line.arrived), _cpu(processes)
        wall = await client.play("go")
        if number:  # the first turn warms up
            walls.append(wall)
            spent += _cpu(processes) - before
        equal &= "".join(client.messages(begin)) == text
    said, ended = "", set[str]()
    for stored in await read_session(bus, session):
        match (event := stored.event()).data:
            case MessageAssistant(content=content):
                said += "".join(getattr(block, "text", "") for block in content)
            case ToolCompleted(status="completed"):
                ended.add(f"{event.turn} {event.item}")
            case _:
                pass
    assert said == text * (TURNS + 1), f"{adapter}: the log's text differs"
    assert len(ended) == updating.ROUNDS * (TURNS + 1), f"{adapter}: {len(ended)} tool calls have an end"
    each, alone = spent / TURNS / UPDATES * 1e6, statistics.median(one for _, one in parsed) / UPDATES * 1e6
    return [
        Figure(
            name=f"{UPDATES:,} updates through {adapter}, to log and client",
            unit="s",
            value=statistics.median(walls),
            limit=statistics.median(one for one, _ in parsed),
            limit_name="reading and parsing alone",
            goal=None,
            note=f"text {'equal' if equal else 'DIFFERS'}, every tool call ended",
        ),
        Figure(
            name=f"CPU of an update through {adapter}, all services",
            unit="us",
            value=each,
            limit=alone,
            limit_name="reading and parsing alone",
            goal=None,
        ),
    ]


async def _parse(adapter: str) -> tuple[float, float]:
    """(wall, CPU) seconds to read the same lines from the same program and parse them, as a program would that does nothing else."""
    decoder = msgspec.json.Decoder()
    agent = await asyncio.create_subprocess_exec(
        *(sys.executable, str(AGENT), "--print", adapter),
        stdout=asyncio.subprocess.PIPE,
        env=dict(os.environ),
        limit=1 << 24,
    )
    assert agent.stdout is not None
    line = await agent.stdout.readline()
    count, begin, spent = 0, time.perf_counter(), cpu()
    while line:
        decoder.decode(line)
        count += 1
        line = await agent.stdout.readline()
    assert count == UPDATES
    took = time.perf_counter() - begin, cpu() - spent
    await agent.wait()
    return took


def _cpu(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)
