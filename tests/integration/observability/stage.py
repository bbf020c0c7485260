"""The whole product under load, scraped by a real Prometheus, its traces taken by a fake collector."""

import asyncio
import contextlib
import datetime as dt
import json
import os
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

import aiohttp
from tests.integration.observability.prometheus import Prometheus
from tests.integration.observability.receiver import Receiver
from tests.integration.teams.stage import Lead
from tests.integration.terminals.looking import Looking
from tests.unit.observability.certified import certified

from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.ports import free_port
from trunkline_testkit.product import Client, Product, running
from trunkline_wire import TrunklineError, subjects

RULES: Final = Path(__file__).parents[3] / "deploy" / "prometheus" / "rules"
JOBS: Final = {"gateway", "permissions", "projector", "teams", "worker"}
POLICY: Final = """
[[rule]]
name = "harmless"
action = "allow"
command = "ls*"

[[rule]]
name = "soon"
action = "ask"
command = "soon*"
expires_after = 1
on_expiry = "deny"
"""


class Stage:
    def __init__(self, product: Product, nats: NatsServer, receiver: Receiver, metrics: Prometheus) -> None:
        self.product = product
        self.nats = nats
        self.receiver = receiver
        self.metrics = metrics

    def log_lines(self, service: str) -> list[dict[str, Any]]:
        return _lines(self.product.trunkline_home / "logs" / f"{service}.log")

    async def load(self, directory: Path) -> None:
        """A little of everything that the product does, and of what goes wrong in it."""
        async with await self.product.client(tcp=True) as client, asyncio.TaskGroup() as group:
            group.create_task(_sessions(client, directory))
            group.create_task(self._revoked(client))
            group.create_task(self._asks(client, directory))
            group.create_task(self._terminal(client, directory))
            group.create_task(self._team())
            group.create_task(self._trouble(client, directory))

    async def _asks(self, client: Client, directory: Path) -> None:
        session = await _session(client, directory)
        await client.subscribe(session, start="start")
        await client.call("session.prompt", session=session, text="ask ls; ask make; ask soon; question really?")
        asked = await client.wait("permission.requested", session=session, count=2)
        await eventually(lambda: _waits(client, asked["data"]["ask"]), 30)
        with contextlib.suppress(TrunklineError):
            await client.call("ask.answer", session=session, ask=asked["data"]["ask"], behaviour="nonsense")
        await client.call("ask.answer", session=session, ask=asked["data"]["ask"], behaviour="allow")
        await client.wait("question.asked", session=session)
        # It stays open: an agent waits.

    async def _terminal(self, client: Client, directory: Path) -> None:
        created = await client.call("session.create", adapter="pty", agent="shell", cwd=str(directory))
        await client.call("terminal.open", session=created["session"])
        viewer = await Looking.connect(self.product.state["gateway"], created["session"], token=self.product.token)
        async with viewer:
            await viewer.until(lambda: viewer.paintings > 0, 60)
            await viewer.say("take")
            await viewer.until(lambda: viewer.writes, 60)
            await viewer.type("echo he'l'lo\r")
            await viewer.shows("hello")
            await self._seen("max(trunkline_terminals) > 0")

    async def _team(self) -> None:
        settings = BusSettings(url=self.nats.url, name="lead")
        async with Bus.open(settings) as bus, Lead.open(bus) as lead:
            await lead.life()
            await lead.said(8)
            # What nobody can read goes to the dead letters.
            subject = f"{subjects.ALL_ANSWERS.partition('.*')[0].removesuffix('.>')}.{lead.session}.nobody"
            await bus.js.publish(subject, b"{")

    async def _trouble(self, client: Client, directory: Path) -> None:
        session = await _session(client, directory, model="demo-large")
        await client.subscribe(session, start="start")
        for turn, prompt in enumerate(("novelty; cost 0.25", "fail on purpose", "say x; cost 1.5", "crash 3"), 1):
            await client.call("session.prompt", session=session, text=prompt)
            await client.wait("turn.completed", session=session, count=turn)
        stalled = await _session(client, directory)
        await client.call("session.prompt", session=stalled, text="silent")
        with contextlib.suppress(TrunklineError):
            await client.call("session.get", session="ses_" + "0" * 32)
        async with aiohttp.ClientSession() as http:
            url = f"{self.product.state['gateway']}/api/v1/session.list"
            await http.post(url, json={}, headers={"Authorization": "Bearer nonsense"})
        await self._resumes(client, session)
        await client.call("token.create", role="viewer", actor="ci", lasts=3 * 86400)
        await self._seen('sum(trunkline_sessions{status="stalled"}) > 0')

    async def _revoked(self, client: Client) -> None:
        """Whose token is revoked is put out at once."""
        made = await client.call("token.create", role="viewer", actor="guest")
        headers = {"Authorization": f"Bearer {made['token']}"}
        guest = await Client.connect(self.product.state["gateway"], headers=headers)
        async with guest:
            await client.call("token.revoke", id=made["id"])
            async with asyncio.timeout(60):
                await guest.ended()

    async def outage(self) -> None:
        """The NATS server dies and comes back; everybody goes on."""
        self.nats.kill()
        self.nats.start()
        await self._seen("sum(trunkline_bus_disconnects_total) > 0")
        await self._seen("min(trunkline_bus_connected) == 1")

    async def settled(self, seconds: float) -> None:
        """Returns when Prometheus has looked for so long since now."""
        begun = time.time()
        await self._seen(f"min(timestamp(up)) > {begun + seconds}")

    async def _resumes(self, client: Client, session: str) -> None:
        cursor = client.cursor
        async with await self.product.client() as second:
            await second.subscribe(session, cursor=cursor)
            # A cursor for other patterns is none for these.
            await second.call("subscribe", session=session, patterns=["turn.*"], cursor=cursor)
            fresh: dict[str, Any] = {"from": "snapshot"}
            await second.call("subscribe", session=session, patterns=["*"], **fresh)

    async def _seen(self, expr: str) -> None:
        async def seen() -> bool:
            return bool(await self.metrics.instant(expr))

        await eventually(seen, 60, interval=0.2)


async def _waits(client: Client, ask: str) -> bool:
    return any(one["ask"] == ask for one in (await client.call("ask.list"))["asks"])


async def _session(client: Client, directory: Path, **options: Any) -> str:
    created = await client.call("session.create", adapter="demo", cwd=str(directory), options=options)
    session: str = created["session"]
    return session


async def _sessions(client: Client, directory: Path) -> None:
    for number in range(4):
        session = await _session(client, directory / f"project-{number}")
        await client.subscribe(session, start="start")
        for turn in range(4):
            text = f"say hello from {number}; cost 0.0{turn + 1}; big {700_000 if turn == 0 else 1000}"
            await client.call("session.prompt", session=session, text=text)
            await client.wait("turn.completed", session=session, count=turn + 1)


@contextlib.asynccontextmanager
async def stage(directory: Path) -> AsyncGenerator[Stage]:
    """Everything up: NATS, Trunkline, the monitor, Prometheus; scraped once."""
    home = directory / "home"
    (home / ".trunkline").mkdir(parents=True, mode=0o700)
    (home / ".trunkline" / "policy.toml").write_text(POLICY)
    for number in range(4):
        (directory / "work" / f"project-{number}").mkdir(parents=True)
    async with contextlib.AsyncExitStack() as stack:
        nats = stack.enter_context(NatsServer())
        receiver = await stack.enter_async_context(Receiver())
        environment = {
            "TRUNKLINE_OTLP_ENDPOINT": receiver.url,
            "TRUNKLINE_LOG_FORMAT": "json",
            "TRUNKLINE_ADAPTERS_STALLED_AFTER": "2",
            "TRUNKLINE_GATEWAY_SHELLS": "true",
            "TRUNKLINE_PROJECTOR_PARTS": "4",
            "OTEL_BSP_SCHEDULE_DELAY": "500",
        }
        product = await stack.enter_async_context(running(home, environment, "--nats-url", nats.url))
        ports = {
            "worker" if service == "adapters" else service: _health(product, service)
            for service in ("gateway", "permissions", "projector", "teams", "adapters")
        }
        tls = await stack.enter_async_context(certified(directory, dt.datetime.now(dt.UTC) + dt.timedelta(days=60)))
        ports["monitor"] = await stack.enter_async_context(_monitor(home, nats, tls))
        metrics = Prometheus(directory / "prometheus", ports, RULES)
        await stack.enter_async_context(metrics)

        async def scraped() -> bool:
            return await metrics.up() == {*JOBS, "monitor"}

        await eventually(scraped, 60, interval=0.2)
        try:
            yield Stage(product, nats, receiver, metrics)
        finally:
            await _close_all(product)


async def _close_all(product: Product) -> None:
    """No session has an agent any more: what is ended one by one is no burden at the end."""
    async with await product.client() as client:
        for session in (await client.call("session.list"))["sessions"]:
            with contextlib.suppress(TrunklineError):
                await client.call("session.close", session=session["session"])


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]


def _health(product: Product, service: str) -> str:
    """`host:port` of a service's metrics, as it says at its start."""
    lines = _lines(product.trunkline_home / "logs" / f"{service}.log")
    return next(line["health"] for line in lines if line["event"] == "starting").removeprefix("http://")


@contextlib.asynccontextmanager
async def _monitor(home: Path, nats: NatsServer, tls: str) -> AsyncGenerator[str]:
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "TRUNKLINE_HOME": str(home / ".trunkline"),
        "TRUNKLINE_MONITOR_SERVERS": nats.monitor_url,
        "TRUNKLINE_MONITOR_EVERY_S": "1",
        "TRUNKLINE_MONITOR_CERTIFICATES": tls,
        "TRUNKLINE_HTTP_PORT": str(port),
        "TRUNKLINE_LOG_FORMAT": "json",
    }
    log = (home / "monitor.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "trunkline_monitor", env=environment, stdout=log, stderr=log
    )
    log.close()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()
