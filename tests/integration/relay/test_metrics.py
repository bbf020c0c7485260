"""What the host's side counts: how it is connected, who comes, and what becomes of it."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import REGISTRY
from tests.integration.gateway.rig import Rig
from tests.integration.relay.device import CutError, Keys, line, meet, talk
from tests.integration.relay.stage import Served, offer, pair

from trunkline_relay.app import run_app
from trunkline_relay.settings import RelaySettings
from trunkline_service import Health
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"trunkline_relay_host_{name}", labels) or 0.0


@asynccontextmanager
async def service(rig: Rig, relay: Served) -> AsyncGenerator[None]:
    """The host's side as `trunkline up` runs it."""
    stopping = asyncio.Event()
    settings = RelaySettings(home=rig.home, url=relay.url, name="box")
    running = asyncio.create_task(run_app(settings, Health("relay", "0.1.0"), stopping))
    try:
        await eventually(lambda: value("connected", kind="embedded") == 1.0)
        yield
    finally:
        stopping.set()
        await running


async def test_the_line_and_the_visits(rig: Rig, relay: Served) -> None:
    async with service(rig, relay):
        phone = await pair(rig.home)
        begun, up, down = value("visits_begun_total"), _bytes("up"), _bytes("down")
        async with talk(phone) as one:
            await one.call("hello", protocol=1)
            assert value("visits") == 1.0
        assert value("visits_begun_total") == begun + 1
        # the two handshake messages are larger than this, whatever is said in them
        assert _bytes("up") - up > 96
        assert _bytes("down") - down > 56
        await eventually(lambda: value("visits") == 0.0)

        before = value("reconnects_total")
        await relay.stop()
        await eventually(lambda: value("connected", kind="embedded") == 0.0)
        await relay.start()
        await eventually(lambda: value("connected", kind="embedded") == 1.0, 20)
        assert value("reconnects_total") == before + 1


@pytest.mark.usefixtures("host")
async def test_refusals_and_handshakes(rig: Rig) -> None:
    phone = await pair(rig.home)
    unpaired, sealed, failed = _refused("unpaired"), _refused("bad_seal"), value("handshakes_failed_total")
    stranger = Keys(relay=phone.relay, host_name=phone.host_name, host=phone.host, route=phone.route, token="x")
    with pytest.raises(TrunklineError, match="unpaired"):
        async with talk(stranger):
            pass
    await eventually(lambda: _refused("unpaired") == unpaired + 1)
    assert value("handshakes_failed_total") == failed
    async with line(phone) as one:
        await one.send(os.urandom(200))
        with pytest.raises(CutError):
            await one.receive()
    await eventually(lambda: _refused("bad_seal") == sealed + 1)
    assert value("handshakes_failed_total") == failed + 1


@pytest.mark.usefixtures("host")
async def test_pairings(rig: Rig) -> None:
    paired, unused, refused = (_pairings(one) for one in ("paired", "unused", "bad_pairing"))
    await pair(rig.home)
    assert _pairings("paired") == paired + 1
    async with offer(rig.home) as asked:
        await asked.next()
    await eventually(lambda: _pairings("unused") == unused + 1)
    async with offer(rig.home) as asked, meet((await asked.next())["link"]):
        assert (await asked.next())["type"] == "arrived"
        asked.say({"agree": False})
        assert (await asked.next())["type"] == "failed"
    assert _pairings("bad_pairing") == refused + 1
    assert _pairings("unused") == unused + 1


def _bytes(direction: str) -> float:
    return value("bytes_total", direction=direction)


def _refused(code: str) -> float:
    return value("refused_total", code=code)


def _pairings(outcome: str) -> float:
    return value("pairings_total", outcome=outcome)
