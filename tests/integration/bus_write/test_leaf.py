"""A log's events at a hub: two real servers, the leaf's connection outwards, through a line that can be cut."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import nats.errors
import pytest_asyncio
from nats.aio.client import Client
from nats.js.api import ConsumerConfig, DeliverPolicy
from nats.js.client import JetStreamContext
from tests.integration.bus_write.sessions import new_writer, note

from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.credentials import public_key
from trunkline_bus.leaf import Leaf, hub_user, leaf_key, mirror
from trunkline_supervisor.broker import OwnBroker
from trunkline_testkit import eventually
from trunkline_testkit.line import Line
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.ports import free_port

FORBIDDEN = (
    "trunk.leaf.ann.api.STREAM.INFO.COMMANDS",
    "trunk.leaf.ann.api.CONSUMER.CREATE.KV_trunk_tokens",
    "trunk.leaf.ann.api.STREAM.DELETE.EVENTS",
    "trunk.leaf.ann.api.STREAM.MSG.GET.EVENTS",
    "$JS.ann.API.STREAM.NAMES",
)
"""What the hub's own programs ask of the leaf in vain."""


class Hub:
    def __init__(self, server: NatsServer, line: Line) -> None:
        self.server = server
        self.line = line


@pytest_asyncio.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    port = free_port()
    user = hub_user("ann", public_key(leaf_key(tmp_path / "nats")))
    # so that it is the leaf's own server that refuses what a test asks it
    user["permissions"]["publish"]["allow"].append("_INBOX.>")
    accounts = {"TEAM": {"jetstream": "enabled", "users": [{"user": "app", "password": "secret"}, user]}}
    config = f"leafnodes {{ host: 127.0.0.1, port: {port} }}\naccounts: {json.dumps(accounts)}"
    with NatsServer(name="hub", config=config, jetstream=["domain: hub"]) as server:
        async with Line(f"nats://127.0.0.1:{port}") as line:
            yield Hub(server, line)


@pytest_asyncio.fixture
async def home(tmp_path: Path, hub: Hub) -> AsyncIterator[OwnBroker]:
    """The server of `trunkline up`, with the hub as its hub."""
    directory = tmp_path / "nats"
    url = hub.line.url.replace("http://", "nats-leaf://")
    leaf = Leaf(url=url, name="ann", seed_file=leaf_key(directory))
    broker = OwnBroker(directory, tmp_path / "server.log", print, leaf=leaf)
    await broker.start()
    await broker.make_topology()
    yield broker
    await broker.stop()


async def connected(hub: Hub) -> Client:
    return await nats.connect(hub.server.url, user="app", password="secret", max_reconnect_attempts=-1)


async def stored(js: JetStreamContext) -> int:
    return (await js.stream_info("EVENTS_of_ann")).state.messages


async def test_a_consumer_at_the_hub_goes_on_over_a_cut_of_the_link(hub: Hub, home: OwnBroker) -> None:
    settings = BusSettings(url=home.url, seed_file=home.seeds["admin"])
    async with Bus.open(settings) as bus:
        app = await connected(hub)
        js = app.jetstream()
        writer = await new_writer(bus)
        for number in range(5):
            writer.append(note(f"before {number}"))
        await writer.flush()
        await eventually(lambda: _made(js), 30)
        await eventually(lambda: _has(js, bus), 60)
        durable = ConsumerConfig(durable_name="audit", deliver_policy=DeliverPolicy.ALL)
        pulled = await js.pull_subscribe("trunk.ev.>", "audit", stream="EVENTS_of_ann", config=durable)
        seen = list(await pulled.fetch(5, timeout=10))
        for message in seen:
            await message.ack()
        await hub.line.cut()
        for number in range(20):
            writer.append(note(f"during {number}"))
        await writer.close()
        await hub.line.mend()
        await eventually(lambda: _has(js, bus), 90)
        total = (await bus.js.stream_info("EVENTS")).state.last_seq
        while len(seen) < total:
            for message in await pulled.fetch(total - len(seen), timeout=10):
                await message.ack()
                seen.append(message)
        assert [message.metadata.sequence.stream for message in seen] == list(range(1, total + 1))
        here = [await bus.js.get_msg("EVENTS", number) for number in range(1, total + 1)]
        assert [message.data for message in seen] == [message.data for message in here]
        await app.close()


async def _made(js: JetStreamContext) -> str:
    return await mirror(js, "ann")


async def _has(js: JetStreamContext, bus: Bus) -> bool:
    return await stored(js) == (await bus.js.stream_info("EVENTS")).state.messages


async def test_nobody_at_the_hub_reads_anything_else_or_writes_here(hub: Hub, home: OwnBroker) -> None:
    async with Bus.open(BusSettings(url=home.url, seed_file=home.seeds["admin"])) as bus:
        app = await connected(hub)
        await eventually(lambda: _answered(app, "trunk.leaf.ann.api.STREAM.INFO.EVENTS"), 30)
        for subject in FORBIDDEN:
            assert not await _answered(app, subject), subject
        before = [(await bus.js.stream_info(name)).state.messages for name in ("EVENTS", "COMMANDS")]
        for subject in ("trunk.ev.1.ses_x.agent.fact", "trunk.cmd.ses_x.gateway", "trunk.leaf.ann.events.x"):
            await app.publish(subject, b"{}")
        await app.flush()
        assert await _answered(app, "trunk.leaf.ann.api.STREAM.INFO.EVENTS"), (
            "what was published has come as far as this"
        )
        after = [(await bus.js.stream_info(name)).state.messages for name in ("EVENTS", "COMMANDS")]
        assert after == before
        await app.close()


async def _answered(app: Client, subject: str) -> bool:
    try:
        await app.request(subject, b"{}", timeout=1)
    except (nats.errors.NoRespondersError, nats.errors.TimeoutError):
        return False
    return True
