"""A service as a process: what signals, settings and an absent NATS do to it."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import nats
import pytest

from trunkline_testkit import eventually
from trunkline_testkit.forbidden import TRUST_NOBODY
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.ports import free_port

PROGRAM = """
import sys
from trunkline_service import run
async def main(service):
    service.ready()
    if "fail" in sys.argv[0]: raise ValueError("broken")
    await service.stopping.wait()
    if "stuck" in sys.argv[0]:
        import asyncio
        await asyncio.Event().wait()
    print("drained", flush=True)
sys.argv[0] = sys.argv.pop(1)
run("gateway", main, topology=True)
"""


class Started:
    def __init__(self, process: Process) -> None:
        self.process = process
        self.lines: list[dict[str, object]] = []
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.lines.append(json.loads(line))

    def said(self, event: str) -> dict[str, object] | None:
        return next((line for line in self.lines if line["event"] == event), None)

    async def end(self, number: int = signal.SIGTERM) -> tuple[int, bytes]:
        self.process.send_signal(number)
        return await self.wait()

    async def wait(self) -> tuple[int, bytes]:
        assert self.process.stdout is not None
        async with asyncio.timeout(10):
            out = await self.process.stdout.read()
            await self.reading
            return await self.process.wait(), out


async def start(home: Path, url: str, how: str = "plain", *flags: str) -> Started:
    environ = {
        "PATH": os.environ["PATH"],
        "TRUNKLINE_HOME": str(home),
        "TRUNKLINE_NATS_URL": url,
        "TRUNKLINE_LOG_FORMAT": "json",
        **TRUST_NOBODY,
    }
    return Started(
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, how, *flags, stdout=PIPE, stderr=PIPE, env=environ
        )
    )


@pytest.fixture
async def running(home: Path, fresh_nats: NatsServer) -> AsyncIterator[Started]:
    started = await start(home, fresh_nats.url)
    await eventually(lambda: started.said("ready"))
    yield started
    if started.process.returncode is None:
        started.process.kill()
        await started.wait()


async def test_a_signal_drains_and_ends_in_order(running: Started) -> None:
    code, out = await running.end()
    assert (code, out) == (0, b"drained\n")
    assert running.said("stopped")


async def test_health_ready_and_metrics_are_served(running: Started) -> None:
    line = running.said("starting")
    assert line is not None
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{line['health']}/ready") as answer:
            body = await answer.json()
            assert (answer.status, body["status"], body["checks"]) == (200, "ok", {"nats": "ok"})
        async with http.get(f"{line['health']}/metrics") as answer:
            assert 'trunkline_bus_connected{connection="writing"} 1.0' in await answer.text()


@pytest.mark.usefixtures("running")
async def test_it_is_a_nats_service(fresh_nats: NatsServer) -> None:
    async with await nats.connect(fresh_nats.url) as connection:
        reply = await connection.request("$SRV.INFO.trunkline-gateway", timeout=2)
        info = json.loads(reply.data)
        assert (info["name"], info["type"]) == ("trunkline-gateway", "io.nats.micro.v1.info_response")
        assert [endpoint["subject"] for endpoint in info["endpoints"]] == ["trunk.health.gateway"]
        reply = await connection.request("trunk.health.gateway", timeout=2)
        assert json.loads(reply.data)["status"] == "ok"


async def test_an_absent_nats_is_waited_for(home: Path) -> None:
    port = free_port()
    started = await start(home, f"nats://someone:hunter2@127.0.0.1:{port}")
    warning = await eventually(lambda: started.said("nats_unreachable"), 15)
    assert "hunter2" not in json.dumps(started.lines)
    assert f"127.0.0.1:{port}" in str(warning["url"])
    server = NatsServer(port=port)
    await asyncio.to_thread(server.start)
    try:
        await eventually(lambda: started.said("ready"), 15)
        assert await started.end() == (0, b"drained\n")
    finally:
        await asyncio.to_thread(server.stop)


async def test_a_signal_ends_the_wait_for_nats(home: Path) -> None:
    started = await start(home, f"nats://127.0.0.1:{free_port()}")
    await eventually(lambda: started.said("starting"))
    assert await started.end(signal.SIGINT) == (0, b"")


async def test_a_failure_is_exit_code_1(home: Path, fresh_nats: NatsServer) -> None:
    started = await start(home, fresh_nats.url, "fail")
    assert (await started.wait())[0] == 1
    failed = started.said("failed")
    assert failed is not None
    assert "ValueError: broken" in str(failed["exception"])


async def test_what_does_not_drain_is_cut(home: Path, fresh_nats: NatsServer) -> None:
    started = await start(home, fresh_nats.url, "stuck", "--drain-s", "0.2")
    await eventually(lambda: started.said("ready"))
    assert await started.end() == (0, b"")
    assert started.said("drain_cut")


async def test_a_second_signal_ends_it_at_once(home: Path, fresh_nats: NatsServer) -> None:
    started = await start(home, fresh_nats.url, "stuck")
    await eventually(lambda: started.said("ready"))
    started.process.send_signal(signal.SIGTERM)
    await eventually(lambda: started.said("draining"))
    assert (await started.end())[0] == 128 + signal.SIGTERM


async def test_bad_settings_are_exit_code_2(home: Path) -> None:
    (home / "trunkline.toml").write_text('nats_ulr = "x"')
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        "plain",
        stdout=PIPE,
        stderr=PIPE,
        env={"TRUNKLINE_HOME": str(home), "PATH": os.environ["PATH"]},
    )
    out, err = await process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert err.startswith(b"bad_settings: unknown setting 'nats_ulr'")


async def test_check_prints_effective_settings(home: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        "plain",
        "--check",
        "--nats-url",
        "nats://a:hunter2@h:1",
        stdout=PIPE,
        env={"TRUNKLINE_HOME": str(home), "PATH": os.environ["PATH"]},
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    assert json.loads(out)["nats_url"] == "nats://********@h:1"
    assert json.loads(out)["home"] == str(home)
