"""What a relay costs: memory and CPU of a device's connection, the time that an envelope takes longer, and sealing itself."""

import asyncio
import contextlib
import os
import resource
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import psutil
from tests.bench.child import module
from tests.bench.report import Figure

from trunkline_seal import CONTROL, TEXT, Accepting, Identity, Opening, Route, control, pack, unpack
from trunkline_seal.channel import PART_BYTES, Channel
from trunkline_seal.control import b64, plain
from trunkline_testkit.ports import free_port

IDLE: Final = 1_000
ACTIVE: Final = 100
A_HOST: Final = 200
"""Devices; a relay lets a host have 256."""
DOWN_A_SECOND: Final = 20
"""Envelopes to an active device, as many as a session has updates; it sends one."""
LOAD_S: Final = 10.0
REST_S: Final = 25.0
"""A heartbeat of every idle connection lies in it."""
PROBES: Final = 500
KB: Final = bytes(1024)


async def measure() -> list[Figure]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    async with AsyncExitStack() as stack:
        url, process = await stack.enter_async_context(relay())
        echo = await stack.enter_async_context(module("tests.bench.echo"))
        assert echo.stdout is not None
        port = int(await echo.stdout.readline())
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        first = await Host.come(http, url)
        probe = await first.device(http)
        before = process.memory_full_info().uss
        began = spent(process)
        idle = await crowd(http, url, IDLE)
        arriving = (spent(process) - began) / IDLE
        each = (process.memory_full_info().uss - before) / IDLE / 1000
        quiet = await latency(http, f"http://127.0.0.1:{port}/", first, probe)
        resting = await busy(process, asyncio.sleep(REST_S))
        active = await crowd(http, url, ACTIVE)
        loaded = await busy(process, load(active))
        under = await latency(http, f"http://127.0.0.1:{port}/", first, probe, load(active))
        for host in (first, *idle, *active):
            host.leave()
    an_active = (loaded - resting) / ACTIVE * 1000
    return [
        figure(
            f"relay: memory of a device, {IDLE:,} idle", "KB", each, 40.0, note=f"{arriving * 1000:.2f} ms CPU to come"
        ),
        figure(
            f"relay: CPU of an active device, {ACTIVE}",
            "ms/s",
            an_active,
            2.5,
            note=f"{DOWN_A_SECOND} envelopes down and 1 up a second; {IDLE:,} idle ones took {resting * 1000:.1f} ms/s",
        ),
        added("relay: added to an envelope of 1 KB, p50", quiet),
        added("the same under that load", under),
        *sealing(),
    ]


def figure(name: str, unit: str, value: float, limit: float, *, note: str = "") -> Figure:
    return Figure(name=name, unit=unit, value=value, limit=limit, limit_name="the budget", goal=1.0, note=note)


def added(name: str, times: tuple[float, float]) -> Figure:
    way, there_and_back = times
    note = f"{way:.2f} ms from device to host, plain echo {there_and_back:.2f} ms there and back"
    return figure(name, "ms", way - there_and_back / 2, 2.0, note=note)


@asynccontextmanager
async def relay() -> AsyncGenerator[tuple[str, psutil.Process]]:
    with tempfile.TemporaryDirectory() as home:
        port = free_port()
        environment = {"PATH": os.environ["PATH"], "TRUNKLINE_HOME": home, "TRUNKLINE_LOG_LEVEL": "error"}
        flags = ("--port", str(port), "--rate", "0")
        async with module("trunkline_relay.server", *flags, environment=environment) as process:
            async with asyncio.timeout(30):
                while True:
                    with contextlib.suppress(OSError):
                        (await asyncio.open_connection("127.0.0.1", port))[1].close()
                        break
                    await asyncio.sleep(0.05)
            yield f"http://127.0.0.1:{port}", psutil.Process(process.pid)


class Host:
    """A host that says when an envelope came; what it has of devices it counts."""

    def __init__(self, url: str, ws: aiohttp.ClientWebSocketResponse, name: str) -> None:
        self.url = url
        self.ws = ws
        self.name = name
        self.devices: list[Device] = []
        self.came: dict[bytes, asyncio.Future[float]] = {}
        self.listening = asyncio.create_task(self._listen())

    @classmethod
    async def come(cls, http: aiohttp.ClientSession, url: str) -> "Host":
        route = Route.new()
        ws = await http.ws_connect(url + control.HOST_PATH, max_msg_size=0)
        signature = route.sign(control.host_text(urlsplit(url).netloc, await challenge(ws)))
        await ws.send_str(control.encode(control.Host(route=b64(route.public), signature=b64(signature))))
        ready = control.to_host((await ws.receive()).data)
        assert isinstance(ready, control.Ready), ready
        await ws.send_str(control.encode(control.Admit(devices=[b64(key.public) for key in KEYS])))
        return cls(url, ws, ready.host)

    async def device(self, http: aiohttp.ClientSession) -> "Device":
        ws = await http.ws_connect(self.url + control.DEVICE_PATH + self.name, max_msg_size=0)
        key = KEYS[len(self.devices) % len(KEYS)]
        signature = key.sign(control.device_text(urlsplit(self.url).netloc, self.name, await challenge(ws)))
        await ws.send_str(control.encode(control.Device(route=b64(key.public), signature=b64(signature))))
        opened = control.to_device((await ws.receive()).data)
        assert isinstance(opened, control.Opened), opened
        device = Device(ws, bytes.fromhex(opened.sid))
        self.devices.append(device)
        return device

    def leave(self) -> None:
        self.listening.cancel()
        for device in self.devices:
            device.reading.cancel()

    async def _listen(self) -> None:
        async for message in self.ws:
            if message.type is aiohttp.WSMsgType.BINARY:
                waiting = self.came.pop(unpack(message.data).sid, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(time.perf_counter())


class Device:
    def __init__(self, ws: aiohttp.ClientWebSocketResponse, sid: bytes) -> None:
        self.ws = ws
        self.sid = sid
        self.frame = pack(sid, KB)
        self.received = 0
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        """It answers pings meanwhile."""
        async for _ in self.ws:
            self.received += 1


KEYS: Final = [Route.new() for _ in range(-(-A_HOST // control.MAX_OF_DEVICE))]
"""Of the devices of each host: the relay checks a signature for each connection."""


async def challenge(ws: aiohttp.ClientWebSocketResponse) -> bytes:
    said = control.to_host((await ws.receive()).data)
    assert isinstance(said, control.Challenge), said
    return plain(said.challenge)


async def crowd(http: aiohttp.ClientSession, url: str, count: int) -> list[Host]:
    hosts = [await Host.come(http, url) for _ in range(-(-count // A_HOST))]
    for number in range(count):
        await hosts[number // A_HOST].device(http)
    return hosts


async def load(hosts: list[Host]) -> None:
    """Every device gets its envelopes and sends one a second, for LOAD_S."""

    devices = [(host, device) for host in hosts for device in host.devices]
    before = sum(device.received for _, device in devices)
    loop = asyncio.get_running_loop()
    began, pause = loop.time(), 1 / DOWN_A_SECOND
    for turn in range(round(LOAD_S * DOWN_A_SECOND)):
        for number, (host, device) in enumerate(devices):
            await host.ws.send_bytes(device.frame)
            if (turn + number) % DOWN_A_SECOND == 0:
                await device.ws.send_bytes(device.frame)
        await asyncio.sleep(max(0.0, began + (turn + 1) * pause - loop.time()))
    wanted = len(devices) * round(LOAD_S * DOWN_A_SECOND)
    async with asyncio.timeout(10):
        while sum(device.received for _, device in devices) - before < wanted:  # noqa: ASYNC110 - another process's doing
            await asyncio.sleep(0.05)


async def busy(process: psutil.Process, meanwhile: Awaitable[object]) -> float:
    """CPU seconds a second."""
    wall, cpu = time.perf_counter(), spent(process)
    await meanwhile
    return (spent(process) - cpu) / (time.perf_counter() - wall)


def spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


async def latency(
    http: aiohttp.ClientSession,
    echo: str,
    host: Host,
    device: Device,
    meanwhile: Coroutine[object, object, None] | None = None,
) -> tuple[float, float]:
    """Milliseconds, p50: an envelope from a device to its host, and one to a plain echo and back; they take turns."""
    loop = asyncio.get_running_loop()
    through: list[float] = []
    back: list[float] = []
    frame = pack(bytes(16), KB)
    working = asyncio.create_task(meanwhile) if meanwhile is not None else None
    async with http.ws_connect(echo, max_msg_size=0) as plain_ws:
        for _ in range(PROBES):
            waiting = host.came[device.sid] = loop.create_future()
            began = time.perf_counter()
            await device.ws.send_bytes(device.frame)
            through.append(await waiting - began)
            began = time.perf_counter()
            await plain_ws.send_bytes(frame)
            await plain_ws.receive()
            back.append(time.perf_counter() - began)
            await asyncio.sleep(0.005)
    if working is not None:
        await working
    return statistics.median(through) * 1000, statistics.median(back) * 1000


def sealing() -> list[Figure]:
    """CPU of what both ends do, beside no relay."""
    device, host = Identity.new(), Identity.new()
    about = b'{"route":"' + b"x" * 44 + b'"}'

    def shake() -> tuple[Channel, Channel]:
        opening = Opening(device, host.public, bytes(16), about)
        accepting = Accepting([host], bytes(16), opening.first)
        second, waiting = accepting.answer(about)
        ours, _, head = opening.answered(second)
        theirs, _ = waiting.proven(head + b"".join(ours.seal(CONTROL, about)))
        return ours, theirs

    shaking = [cpu_of(shake) for _ in range(200)]
    ours, theirs = shake()
    small, large = KB, bytes(PART_BYTES - 1)
    sealed: list[float] = []
    opened: list[float] = []
    parts: list[float] = []
    for message, seals, opens in [(small, sealed, opened)] * 1000 + [(large, parts, parts)] * 300:
        frames: list[bytes] = []
        seals.append(cpu_of(lambda message=message, frames=frames: frames.extend(ours.seal(TEXT, message))))
        opens.append(cpu_of(lambda frames=frames: theirs.open(frames[0])))
    return [
        figure("seal: a handshake, both sides, CPU, p50", "ms", statistics.median(shaking), 5.0),
        figure(
            "seal: 1 KB, sealed or opened, CPU, p50",
            "us",
            max(statistics.median(sealed), statistics.median(opened)) * 1000,
            200.0,
        ),
        figure("seal: a part of 64 KB, sealed or opened, CPU, worst", "ms", max(parts), 5.0),
    ]


def cpu_of(work: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1000
