"""The host's side: devices come through a relay to the gateway as themselves, and not once they are revoked."""

import asyncio
import json
import stat
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestServer
from tests.integration.gateway.rig import Rig
from tests.integration.relay import stage
from tests.integration.relay.device import CutError, Keys, line, opened, talk, text64
from tests.integration.relay.stage import Served, pair

from trunkline_client import Address, Connection, ConnectionLostError, Paired, Sealed
from trunkline_client.pairing import pair as join
from trunkline_relay import keys
from trunkline_relay.app import Host, hosting
from trunkline_relay.network import Network
from trunkline_relay.settings import RelaySettings
from trunkline_seal import CONTROL, TEXT
from trunkline_seal.control import MAX_OF_DEVICE
from trunkline_seal.pairing import Link
from trunkline_testkit import eventually
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError


async def refusal(device: Keys, path: str = "/ws") -> str:
    """Why a device does not get through."""
    try:
        async with talk(device, path):
            return ""
    except TrunklineError as error:
        return error.code
    except CutError as cut:
        return cut.said or "cut"


async def test_a_paired_device_is_who_it_was_paired_as(host: Host, rig: Rig) -> None:
    phone = await pair(rig.home, role="approver", name="Phone")
    async with talk(phone) as one, talk(phone, pad=256) as other:
        assert [one.about[said] for said in ("host", "version", "identity", "number")] == [
            "box",
            "0.1.0",
            text64(phone.host),
            1,
        ]
        for each in (one, other):
            hello = await each.call("hello", protocol=1, client="phone")
            assert (hello["actor"], hello["role"], hello["device"]) == ("ann", "approver", phone.device)
        with pytest.raises(TrunklineError, match="owner"):
            await one.call("token.list")
        (device,) = (await one.call("device.list"))["devices"]
        assert (device["name"], device["role"]) == ("Phone", "approver")
        async with await rig.client() as owner:
            await eventually(lambda: _seen(owner))
        assert len(host.visits) == 2
        await one.control({"closed": {"code": 1000, "reason": ""}}, last=True)
        with pytest.raises(CutError):
            await one.next()
        assert (await other.call("device.list"))["total"] == 1
    await eventually(lambda: len(host.visits) == 0)


async def _seen(owner: Client) -> bool:
    return "seen" in (await owner.call("device.list"))["devices"][0]


@pytest.mark.usefixtures("host")
async def test_it_sees_the_sessions(rig: Rig) -> None:
    phone = await pair(rig.home)
    writer = await rig.session()
    await rig.settled(writer)
    async with talk(phone) as one:
        await one.call("hello", protocol=1)
        assert [state["session"] for state in (await one.call("session.list"))["sessions"]] == [writer.session]
    await writer.close()


async def test_a_revoked_device_is_out_at_once_and_others_learn_the_new_identity(
    host: Host, rig: Rig, relay: Served
) -> None:
    eve, bob, ann = [await pair(rig.home, name=name) for name in ("eve", "bob", "ann")]
    old = host.devices.host.newest.public
    async with await rig.client() as owner, talk(eve) as gone, talk(ann) as stays:
        await gone.call("hello", protocol=1)
        await stays.call("hello", protocol=1)
        await owner.call("device.revoke", id=eve.device)
        assert await gone.until_closed() == "revoked"
        assert gone.closed == {"code": 1008, "reason": "revoked"}
        await eventually(lambda: len(next(iter(relay.switch.hosts.values())).admitted) == 2)
        assert await refusal(eve) == "unpaired"
        new = host.devices.host.newest.public
        assert new != old
        await stays.call("device.list")
        await eventually(lambda: host.visits)
        while not stays.identities:
            await stays.next()
        assert stays.identities == [(new, 2)]
    # Ann was told, Bob was not there: he comes by the old one once more, and is told then. It is kept for nobody else.
    ann.host = new
    async with talk(ann) as again:
        assert again.about["identity"] == text64(new)
    ann.host = old
    assert await refusal(ann) == "unpaired"
    assert [one.keys.public for one in host.devices.host.identities] == [new, old]
    async with talk(bob) as late:
        assert late.about["identity"] == text64(new)
    bob.host = new
    async with talk(bob):
        await eventually(lambda: [one.keys.public for one in host.devices.host.identities] == [new])
    bob.host = old
    assert await refusal(bob) == "cut"
    assert keys.load(rig.home) == host.devices.host


async def test_a_device_that_is_revoked_while_the_host_is_away_costs_the_identity_too(rig: Rig, relay: Served) -> None:
    async with stage.host(rig.home, relay.url) as first:
        eve = await pair(rig.home)
        old = first.devices.host.newest.public
    async with await rig.client() as owner:
        await owner.call("device.revoke", id=eve.device)
    async with stage.host(rig.home, relay.url) as second:
        assert second.devices.host.newest.public != old
        assert await refusal(eve) == "unpaired"


@pytest.mark.usefixtures("host")
async def test_what_a_device_may_not_open(rig: Rig) -> None:
    phone = await pair(rig.home)
    assert await refusal(phone, "/api/v1/session.list") == "bad_params"
    assert await refusal(phone, "/ws/terminal/../../health") == "bad_params"
    token = phone.token
    for phone.token in ("x", "", "x\r\nTrunkline-Device: x", "\N{SNOWMAN}"):
        assert await refusal(phone) == "unauthorized"
    phone.token = token
    stranger = Keys(relay=phone.relay, host_name=phone.host_name, host=phone.host, token=token)
    assert await refusal(stranger) == "unpaired"
    # A route key that is let in does not make an identity known.
    stranger.route = phone.route
    assert await refusal(stranger) == "unpaired"
    await rig.stop_gateway()
    assert await refusal(phone) == "not_running"
    await rig.start_gateway()
    assert await refusal(phone) == ""


async def test_the_host_tells_how_it_wants_messages_padded(rig: Rig, relay: Served) -> None:
    async with stage.host(rig.home, relay.url, pad=256), talk(await pair(rig.home)) as one:
        assert one.about["pad"] == 256


async def test_the_host_vouches_for_the_app_that_its_gateway_has(rig: Rig, relay: Served, tmp_path: Path) -> None:
    (tmp_path / "app.json").write_text(json.dumps({"files": {"index.html": "0b" * 32, "assets/a.js": "aa" * 32}}))
    await rig.restart_gateway(app=tmp_path)
    known = bytes.fromhex("668eae00cce7f112d9806bd6578b445ed37b420fb21199c67d828c2a2f511806")
    async with stage.host(rig.home, relay.url) as host:
        await eventually(lambda: "app" in host.about())
        async with stage.offer(rig.home) as asked:
            assert Link.parse((await asked.next())["link"]).app == known
        async with talk(await pair(rig.home)) as one:
            assert one.about["app"] == text64(known)


async def test_a_device_that_says_nothing_is_not_waited_for(
    host: Host, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline_relay.visits.HANDSHAKE_S", 0.2)
    phone = await pair(rig.home)
    async with line(phone) as silent:
        with pytest.raises(CutError):
            await silent.receive()
    async with line(phone) as half:
        await opened(half, phone, {"route": text64(phone.route.public)})
        with pytest.raises(CutError):
            await half.receive()
    assert host.visits.refused == {"timeout": 2}


@pytest.mark.usefixtures("host")
async def test_a_slow_device_holds_up_the_gateway_and_nobody_else(rig: Rig) -> None:
    phone = await pair(rig.home)
    async with talk(phone) as slow, talk(phone) as quick:
        for each in (slow, quick):
            await each.call("hello", protocol=1)
        slow.acks = False
        big = "x" * 200_000
        taken = slow.taken

        async def ask() -> None:
            for number in range(6):
                request = {"type": "req", "id": f"big{number}", "method": "session.prompt", "params": {big: number}}
                await slow.send(0, json.dumps(request).encode())

        # What the gateway answers names the parameter that it does not know twice: more than the window.
        asking = asyncio.create_task(ask())
        while slow.taken - taken < 512 * 1024:
            await slow.next()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(slow.next(), 0.5)
        await asking
        assert 512 * 1024 <= slow.taken - taken < 512 * 1024 + 401_000
        assert (await quick.call("device.list"))["total"] == 1
        assert slow.acked >= 5 * 200_000
        slow.acks = True
        await slow.control({"ack": slow.taken})
        while slow.taken - taken < 6 * 400_000:
            await slow.next()


@pytest.mark.usefixtures("host")
async def test_a_large_message_goes_in_parts(rig: Rig) -> None:
    phone = await pair(rig.home)
    async with talk(phone) as one:
        await one.call("hello", protocol=1)
        with pytest.raises(TrunklineError, match="bad_params") as refused:
            await one.call("session.prompt", **{"x" * 900_000: 1})
        assert len(str(refused.value)) > 900_000 or refused.value.code == "bad_params"


async def test_it_comes_back_to_a_relay_that_was_away(host: Host, rig: Rig, relay: Served) -> None:
    phone = await pair(rig.home)
    attempts = host.line.attempts
    await relay.stop()
    await eventually(lambda: not host.line.ready)
    assert host.status()["connected"] is False
    await relay.start()
    host.hurry()
    await eventually(lambda: host.line.ready)
    assert host.line.attempts > attempts
    assert await refusal(phone) == ""


async def test_a_relay_that_refuses_is_asked_again_more_and_more_rarely(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trunkline_relay.host.FIRST_S", 0.01)
    monkeypatch.setattr("trunkline_relay.host.LONGEST_S", 0.05)
    monkeypatch.setattr("trunkline_relay.app.WAIT_S", 0.1)

    async def refuse(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        tokens.append(request.headers.get("Authorization", ""))
        await ws.send_json({"type": "error", "code": "unauthorized", "message": "not you"})
        return ws

    tokens: list[str] = []
    app = web.Application()
    app.router.add_get("/relay/v1/host", refuse)
    async with TestServer(app) as server, hosting(_settings(rig, server, token="let-me-in")) as host:
        await eventually(lambda: len(tokens) > 4)
        assert host.status()["trouble"] == "unauthorized: the relay refuses this host: not you"
        async with stage.ask(rig.home, do="pair", invitation="x") as asked:
            assert (await asked.next())["code"] == "host_away"
    assert set(tokens) == {"Bearer let-me-in"}
    away = [vars(one) for one in caplog.records if one.message == "relay_away"]
    assert [one["again_in_s"] for one in away[:5]] == [0.01, 0.02, 0.04, 0.05, 0.05]
    assert "let-me-in" not in str(away)


async def test_a_relay_sends_nobody_elsewhere(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_relay.host.FIRST_S", 0.01)
    asked: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        asked.append(request.path)
        raise web.HTTPFound("/private" if request.path.startswith("/relay/") else "/end")

    app = web.Application()
    app.router.add_get("/{path:.*}", elsewhere)
    async with TestServer(app) as server:
        relay = str(server.make_url("")).rstrip("/")
        async with hosting(_settings(rig, server)) as host:
            await eventually(lambda: len(asked) > 2)
            assert "redirects" in host.status()["trouble"]
        link = Link.new(relay, bytes(32), bytes(32), bytes(32))
        with pytest.raises(TrunklineError, match="redirects"):
            await join(link, "phone", lambda _code, _host: None)
        paired = Paired(
            relay=relay, host="box", route=bytes(32), identity=bytes(32), device="dev_1", actor="ann", role="owner",
            seed=bytes(32), secret=bytes(32), token="tl_1", key=bytes(32),
        )  # fmt: skip
        with pytest.raises(ConnectionLostError, match="redirects"):
            await Connection.connect(Address(url=relay, sealed=Sealed(paired)))
    assert "/private" not in asked


async def test_another_network_is_a_reason_to_try_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = frozenset({("eth0", "192.0.2.7")})
    monkeypatch.setattr("trunkline_relay.network._addresses", lambda: addresses)
    monkeypatch.setattr("trunkline_relay.host.LOOK_S", 0.02)
    monkeypatch.setattr("trunkline_relay.host.FIRST_S", 3600.0)
    async with TestServer(web.Application()) as server, hosting(_settings(rig, server)) as host:
        for attempt in (1, 2, 3):
            await eventually(lambda attempt=attempt: host.line.attempts == attempt)
            await eventually(lambda: host.line.trouble)
            addresses = frozenset({("eth0", f"192.0.2.{attempt}")})


def _settings(rig: Rig, server: BaseTestServer, **other: str) -> RelaySettings:
    return RelaySettings(home=rig.home, url=str(server.make_url("/")), **other)  # type: ignore[arg-type]


@pytest.mark.usefixtures("host")
async def test_the_door_is_the_owners_alone(rig: Rig) -> None:
    assert stat.S_IMODE((rig.home / "relay.sock").stat().st_mode) == 0o600
    async with stage.ask(rig.home, do="status") as asked:
        status = await asked.next()
    assert (status["kind"], status["connected"], status["name"], status["devices"]) == ("embedded", True, "box", 0)
    async with stage.ask(rig.home, do="anything") as asked:
        assert (await asked.next())["code"] == "bad_frame"


async def test_a_host_that_stops_says_so(rig: Rig, relay: Served) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(stage.host(rig.home, relay.url))
        phone = await pair(rig.home)
        async with talk(phone) as one:
            await one.call("hello", protocol=1)
            await stack.aclose()
            assert await one.until_closed() == "stopping"
        assert await refusal(phone) == "host_away"


async def test_a_connection_from_an_address_that_the_machine_no_longer_has_is_left(
    rig: Rig, relay: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[str] = []
    monkeypatch.setattr("trunkline_relay.host.LOOK_S", 0.02)
    monkeypatch.setattr("trunkline_relay.host.FIRST_S", 0.02)

    def has(_: Network, address: str) -> bool:
        return address not in gone

    monkeypatch.setattr(Network, "has", has)
    async with stage.host(rig.home, relay.url) as host:
        attempts = host.line.attempts
        gone.append("127.0.0.1")
        await eventually(lambda: host.line.attempts > attempts)
        gone.clear()
        await eventually(lambda: host.line.ready)


async def test_a_device_that_breaks_the_rules_is_cut_off_by_name(host: Host, rig: Rig) -> None:
    phone = await pair(rig.home)
    breaches: dict[str, tuple[int, bytes]] = {
        "more acknowledged than was sent": (CONTROL, b'{"ack": 1000000}'),
        "no control message": (CONTROL, b"[]"),
        "no text": (TEXT, b"\xff"),
    }
    for number, (kind, message) in enumerate(breaches.values(), 1):
        async with talk(phone) as one:
            await one.send(kind, message)
            await one.until_closed()
            assert one.closed == {}
        await eventually(lambda number=number: host.visits.refused == {"bad_frame": number})


async def test_one_connection_too_many_ends_and_does_not_wait(
    host: Host, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone = await pair(rig.home)
    monkeypatch.setattr("trunkline_relay.visits.MAX_VISITS", 1)
    await eventually(lambda: len(host.visits) == 0)
    async with talk(phone), asyncio.timeout(5):
        assert await refusal(phone) == "cut"
    await eventually(lambda: len(host.visits) == 0)
    assert await refusal(phone) == ""
    assert host.visits.refused == {"rate_limited": 1}


async def test_a_device_with_all_its_connections_keeps_nobody_out(host: Host, rig: Rig) -> None:
    phone, other = await pair(rig.home), await pair(rig.home)
    async with AsyncExitStack() as stack:
        for _ in range(MAX_OF_DEVICE):
            await stack.enter_async_context(talk(phone))
        assert await refusal(phone) == "rate_limited"
        assert await refusal(other) == ""
    await eventually(lambda: len(host.visits) == 0)
    assert await refusal(phone) == ""


async def test_the_host_counts_for_itself_whatever_a_relay_lets_through(
    host: Host, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline_relay.visits.MAX_OF_DEVICE", 2)
    monkeypatch.setattr("trunkline_relay.visits.MAX_VISITS", 3)
    phone, other, third = [await pair(rig.home) for _ in range(3)]
    await eventually(lambda: len(host.visits) == 0)
    async with talk(phone), talk(phone):
        assert await refusal(phone) == "cut"
        await eventually(lambda: len(host.visits) == 2)
        async with talk(other):
            assert await refusal(third) == "cut"
            await pair(rig.home)
    assert host.visits.refused == {"rate_limited": 2}


@pytest.mark.usefixtures("host")
async def test_no_token_but_its_own_counts_in_a_devices_channel(rig: Rig) -> None:
    phone, other = await pair(rig.home, role="viewer"), await pair(rig.home, role="owner")
    async with await rig.client() as owner:
        made = await owner.call("token.create", actor="ann", role="owner")
    own = phone.token
    for token in (other.token, made["token"]):
        phone.token = token
        assert await refusal(phone) == "unauthorized"
        phone.token = own
        async with talk(phone) as one:
            with pytest.raises((CutError, TrunklineError), match="unauthorized"):
                await one.call("hello", protocol=1, token=token)
    async with talk(phone) as one:
        assert (await one.call("hello", protocol=1, token=own))["role"] == "viewer"
