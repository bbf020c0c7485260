"""What a relay does for those whom it lets in, over real WebSockets."""

import asyncio
import datetime as dt
import ssl
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from tests.integration.relay.server.ends import relay, street
from tests.unit.observability.certified import certified

from trunkline_bus import metrics
from trunkline_relay import lines
from trunkline_relay.server import serving
from trunkline_relay.server_settings import ServerSettings
from trunkline_seal import control, pack
from trunkline_seal.keys import Route
from trunkline_service.web import HEADERS
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError

ANN = Route.new()


def counted() -> dict[str, float]:
    return {
        f"{metric.name} {' '.join(sample.labels.values())}": sample.value
        for family in (metrics.RELAY_FRAMES, metrics.RELAY_BYTES, metrics.RELAY_REFUSED, metrics.RELAY_SLOW)
        for metric in family.collect()
        for sample in metric.samples
    }


async def test_envelopes_go_both_ways_as_they_are_and_are_counted() -> None:
    before = counted()
    async with relay(url="https://relay.example.org") as at, street() as people:
        host = await people.host_at(at.url)
        await host.prove(Route.new())
        assert await host.next() == control.Ready(host=host.name, url="https://relay.example.org")
        await host.admit(ANN)
        device, _ = await people.device(at.url, ANN, host)
        up, down = pack(device.sid, bytes(range(256)) * 250), pack(device.sid, b"")
        await device.ws.send_bytes(up)
        assert await host.next() == up
        await host.ws.send_bytes(down)
        assert await device.next() == down
        after = counted()
        for name, bytes_ in (("up", len(up)), ("down", len(down))):
            assert after[f"trunkline_relay_frames {name}"] - before.get(f"trunkline_relay_frames {name}", 0) == 1
            assert after[f"trunkline_relay_bytes {name}"] - before.get(f"trunkline_relay_bytes {name}", 0) == bytes_


async def test_what_was_said_before_a_close_still_arrives() -> None:
    async with relay() as at, street() as people:
        host = await people.host(at.url, None, ANN)
        device, opened = await people.device(at.url, ANN, host)
        frames = [pack(device.sid, bytes([number]) * 60_000) for number in range(20)]
        for frame in frames:
            await host.ws.send_bytes(frame)
        await host.say(control.Close(sid=opened.sid, reason="done"))
        assert [await device.next() for _ in frames] == frames
        assert await device.next() is None
        assert device.ws.close_code == aiohttp.WSCloseCode.OK


async def test_a_host_hears_that_a_device_has_gone() -> None:
    async with relay() as at, street() as people:
        host = await people.host(at.url, None, ANN)
        device, opened = await people.device(at.url, ANN, host)
        await device.ws.close()
        assert await host.next() == control.Close(sid=opened.sid, reason="the device has gone")


async def test_devices_of_a_host_that_goes_hear_that_it_is_away() -> None:
    async with relay() as at, street() as people:
        host = await people.host(at.url, None, ANN)
        device, _ = await people.device(at.url, ANN, host)
        await host.ws.close()
        assert await device.refusal() == "host_away"


async def test_a_host_that_comes_again_replaces_itself() -> None:
    async with relay() as at, street() as people:
        key = Route.new()
        old = await people.host(at.url, key, ANN)
        device, _ = await people.device(at.url, ANN, old)
        new = await people.host(at.url, key, ANN)
        assert await device.refusal() == "host_away"
        assert await old.refusal() == "already_running"
        again, _ = await people.device(at.url, ANN, new)
        await again.send(b"x")
        assert await new.next() == pack(again.sid, b"x")


async def test_a_device_that_reads_nothing_is_cut_and_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_WAITING", 256 * 1024)
    slow_before = counted().get("trunkline_relay_slow device", 0)
    async with relay() as at, street() as people:
        host = await people.host(at.url, None, ANN)
        slow, opened = await people.device(at.url, ANN, host)
        quick, _ = await people.device(at.url, ANN, host)
        told: list[object] = []

        async def listen() -> None:
            told.append(await host.next())

        listening = asyncio.create_task(listen())
        frame = pack(slow.sid, bytes(60_000))
        while not told:  # what the sockets themselves hold is the kernel's business
            await host.ws.send_bytes(frame)
            await host.ws.send_bytes(pack(quick.sid, b"tick"))
            assert await quick.next() == pack(quick.sid, b"tick")
        await listening
        assert told == [control.Close(sid=opened.sid, reason="the device is too slow")]
        assert counted()["trunkline_relay_slow device"] == slow_before + 1


async def test_a_relay_that_ends_closes_what_it_has() -> None:
    async with street() as people:
        async with relay() as at:
            host = await people.host(at.url, None, ANN)
            device, _ = await people.device(at.url, ANN, host)
            closing = asyncio.gather(host.next(), device.refusal())
        said, code = await closing
        assert said is None
        assert code in {"host_away", "closed with 1000"}


async def test_the_app_is_served_with_the_headers_of_the_gateway(tmp_path: Path) -> None:
    app = tmp_path / "app"
    (app / "assets").mkdir(parents=True)
    (app / "index.html").write_text("the app")
    (app / "sw.js").write_text("worker")
    (app / "assets" / "main-1a.js").write_text("code")
    async with relay(app=app) as at, aiohttp.ClientSession() as http:
        for path, text in (("/", "the app"), ("/pair", "the app"), ("/session/ses_1", "the app"), ("/sw.js", "worker")):
            async with http.get(at.url + path) as answer:
                assert (answer.status, await answer.text()) == (200, text)
                assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        async with http.get(f"{at.url}/assets/main-1a.js") as answer:
            assert answer.headers["Content-Type"] == "text/javascript"
            assert "immutable" in answer.headers["Cache-Control"]
        for path in ("/assets/..%2findex.html", "/assets/none.js", "/api/v1/sessions", "/ws"):
            async with http.get(at.url + path) as answer:
                assert answer.status == 404, path
        async with http.get(f"{at.url}/", headers={"Host": "evil.org"}) as answer:
            assert (answer.status, (await answer.json(content_type=None))["code"]) == (403, "bad_origin")


async def test_without_an_app_it_says_what_it_is(tmp_path: Path) -> None:
    async with relay(app=tmp_path) as at, aiohttp.ClientSession() as http, http.get(f"{at.url}/pair") as answer:
        assert answer.status == 200
        assert "relay of Trunkline" in await answer.text()
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


async def test_the_switch_is_empty_when_all_have_gone() -> None:
    async with relay() as at, street() as people:
        host = await people.host(at.url, None, ANN)
        devices = [(await people.device(at.url, ANN, host))[0] for _ in range(5)]
        assert at.switch.visits == 5
        for device in devices:
            await device.ws.close()
        await eventually(lambda: at.switch.visits == 0)
        await host.ws.close()
        await eventually(lambda: not at.switch.hosts)


async def test_a_device_that_sends_more_than_its_host_reads_waits_and_costs_the_host_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "MAX_WAITING", 512 * 1024)
    async with relay() as at, street() as people:
        host = await people.host(at.url, None, ANN)
        device, _ = await people.device(at.url, ANN, host)
        line = cast("Any", at.switch.hosts[host.name].line)
        enough = asyncio.Event()
        sent = 0

        def frame(number: int) -> bytes:
            return pack(device.sid, number.to_bytes(4) + bytes(60_000))

        async def send() -> None:
            nonlocal sent
            while not enough.is_set():
                await device.ws.send_bytes(frame(sent))
                sent += 1

        sending = asyncio.create_task(send())
        # Until what the sockets between hold is full, which is the kernel's business.
        await eventually(lambda: line._waiting > lines.MAX_WAITING // 4, 60)
        enough.set()
        received = 0
        while not sending.done() or received < sent:
            assert await host.next() == frame(received)
            received += 1
        await sending


async def test_with_a_certificate_it_speaks_tls_and_nothing_else(tmp_path: Path) -> None:
    async with certified(tmp_path, dt.datetime.now(dt.UTC) + dt.timedelta(days=1)):
        file = tmp_path / "certificate.pem"
    async with relay(certificate=file, key=file) as at, street() as people:
        assert at.url.startswith("https://127.0.0.1:")
        url = at.url.replace("127.0.0.1", "localhost")
        trusted = ssl.create_default_context(cafile=file)
        host = await people.host(url, None, ANN, ssl=trusted)
        device = await people.device_at(url, host.name, ssl=trusted)
        await device.prove(ANN, host.name)
        await device.opened()
        with pytest.raises(aiohttp.ClientConnectionError):
            await people.host(url.replace("https", "http"))
    (tmp_path / "none.pem").write_text("nonsense")
    with pytest.raises(TrunklineError, match="the certificate can't be used"):
        async with relay(certificate=tmp_path / "none.pem", key=file):
            pass


async def test_an_address_that_is_taken_says_so() -> None:
    async with relay() as at:
        with pytest.raises(TrunklineError, match="can't listen on 127") as caught:
            async with serving(ServerSettings(port=int(at.url.rpartition(":")[2]))):
                pass
        assert caught.value.code == "already_running"
