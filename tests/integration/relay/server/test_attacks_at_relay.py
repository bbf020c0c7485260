"""What a relay refuses, each with its code, over real WebSockets."""

import secrets
from pathlib import Path

import aiohttp
import pytest
from tests.integration.relay.server.ends import Street, relay, street

from trunkline_relay import serve
from trunkline_relay.gate import digest
from trunkline_seal import control, pack
from trunkline_seal.control import b64
from trunkline_seal.keys import Route
from trunkline_testkit import eventually

ANN = Route.new()


async def test_a_host_that_does_not_prove_its_key() -> None:
    async with relay() as at, street() as people:
        for text in (
            control.host_text("relay.evil.org", b"x" * 32),
            control.device_text("127.0.0.1", "hst_x", b"x" * 32),
            b"",
        ):
            host = await people.host_at(at.url)
            await host.prove(Route.new(), text)
            assert await host.refusal() == "unauthorized"
        stranger = await people.host_at(at.url)
        other = Route.new()
        signature = Route.new().sign(control.host_text(stranger.relay, stranger.challenge))
        await stranger.say(control.Host(route=b64(other.public), signature=b64(signature)))
        assert await stranger.refusal() == "unauthorized"
        assert at.switch.hosts == {}


@pytest.mark.parametrize(
    "said",
    [
        '{"type":"admit","devices":[]}',
        '{"type":"host"}',
        '{"type":"host","route":"-","signature":"-"}',
        '{"type":"host","route":"\u00e4","signature":""}',
        "{",
        "[" * 100_000,
        '{"type":"host","x":' + "[" * 100_000,
        "",
        b"\x00" * 32,
    ],
    ids=["admit", "empty", "no base64", "not ascii", "no json", "deep", "deep inside", "nothing", "bytes"],
)
async def test_answers_that_are_none(said: str | bytes) -> None:
    async with relay() as at, street() as people:
        host = await people.host_at(at.url)
        await (host.ws.send_str(said) if isinstance(said, str) else host.ws.send_bytes(said))
        assert await host.refusal() == "bad_frame"


async def test_an_answer_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "PROOF_S", 0.05)
    async with relay() as at, street() as people:
        assert await (await people.host_at(at.url)).refusal() == "timeout"
        assert await (await people.device_at(at.url, "hst_x")).refusal() == "timeout"


async def test_a_signature_for_another_relay_host_or_challenge() -> None:
    async with relay() as at, street() as people:
        host = await people.host(at.url, None, ANN)
        for relay_name, name, challenge in (
            ("relay.evil.org", host.name, None),
            (None, "hst_" + "a" * 26, None),
            (None, host.name, b"x" * 32),
        ):
            device = await people.device_at(at.url, host.name)
            text = control.device_text(relay_name or device.relay, name, challenge or device.challenge)
            await device.prove(ANN, host.name, text)
            assert await device.refusal() == "unauthorized"
        device = await people.device_at(at.url, host.name)
        await device.prove(ANN, host.name, control.host_text(device.relay, device.challenge))
        assert await device.refusal() == "unauthorized"


async def test_an_answer_that_was_good_once_is_not_good_again() -> None:
    async with relay() as at, street() as people:
        host = await people.host(at.url, None, ANN)
        first = await people.device_at(at.url, host.name)
        answer = control.encode(
            control.Device(
                route=b64(ANN.public),
                signature=b64(ANN.sign(control.device_text(first.relay, host.name, first.challenge))),
            )
        )
        await first.ws.send_str(answer)
        await first.opened()
        again = await people.device_at(at.url, host.name)
        await again.ws.send_str(answer)
        assert await again.refusal() == "unauthorized"


async def test_a_device_that_is_not_admitted() -> None:
    async with relay() as at, street() as people:
        host = await people.host(at.url, None, ANN)
        device = await people.device_at(at.url, host.name)
        await device.prove(Route.new(), host.name)
        assert await device.refusal() == "unpaired"


async def test_a_host_that_is_not_there() -> None:
    async with relay() as at, street() as people:
        for name in ("hst_" + "a" * 26, "x", "hst_*", "hst_" + "a" * 3000):
            device = await people.device_at(at.url, name)
            await device.prove(ANN, name)
            assert await device.refusal() == "host_away"


async def test_a_pairing_that_was_used_is_too_old_or_was_withdrawn() -> None:
    async with relay() as at, street() as people:
        host = await people.host(at.url)
        for name, seconds in (("once", 60.0), ("old", 0.0), ("withdrawn", 60.0)):
            await host.say(control.Offer(pairing=name, seconds=seconds))
        await host.say(control.Withdraw(pairing="withdrawn"))
        first = await people.device_at(at.url, host.name)
        await first.say(control.Pairing(pairing="once"))
        await first.opened()
        assert await host.opened() == control.Opened(sid=first.sid.hex(), pairing="once")
        for name in ("once", "old", "withdrawn", "none"):
            device = await people.device_at(at.url, host.name)
            await device.say(control.Pairing(pairing=name))
            assert await device.refusal() == "bad_pairing", name


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (pack(bytes(16), b"x"), "bad_frame"),
        (b"", "bad_frame"),
        (b"\x02" + bytes(20), "bad_frame"),
        (b"\x01" + bytes(16) + b"\x00\x00\x00\x09abc", "bad_frame"),
        (pack(bytes(16), bytes(serve.MAX_ENVELOPE)), "too_large"),
        (pack(bytes(16), bytes(4 * serve.MAX_ENVELOPE)), "closed with 1009"),
    ],
    ids=["another's sid", "empty", "version", "size", "oversize", "far oversize"],
)
async def test_frames_that_a_device_may_not_send(frame: bytes, code: str) -> None:
    async with relay() as at, street() as people:
        host = await people.host(at.url, None, ANN)
        bystander, _ = await people.device(at.url, ANN, host)
        device, opened = await people.device(at.url, ANN, host)
        await device.ws.send_bytes(frame)
        assert await device.refusal() == code
        closed = await host.next()
        assert isinstance(closed, control.Close), "nothing of it reached the host"
        assert closed.sid == opened.sid
        await bystander.send(b"still here")
        assert await host.next() == pack(bystander.sid, b"still here")


async def test_a_device_does_not_reach_another_visit_by_its_sid() -> None:
    async with relay() as at, street() as people:
        host = await people.host(at.url, None, ANN)
        victim, _ = await people.device(at.url, ANN, host)
        device, _ = await people.device(at.url, ANN, host)
        await device.ws.send_bytes(pack(victim.sid, b"x"))
        assert await device.refusal() == "bad_frame"
        assert isinstance(await host.next(), control.Close)


async def test_a_host_does_not_reach_visits_of_another() -> None:
    async with relay() as at, street() as people:
        host, evil = await people.host(at.url, None, ANN), await people.host(at.url, None, ANN)
        device, _ = await people.device(at.url, ANN, host)
        await evil.ws.send_bytes(pack(device.sid, b"forged"))
        await evil.say(control.Close(sid=device.sid.hex()))
        await (await people.device(at.url, ANN, evil))[0].ws.close()  # what was said before is done with
        await host.ws.send_bytes(pack(device.sid, b"true"))
        assert await device.next() == pack(device.sid, b"true")


async def test_a_device_that_is_revoked_while_it_is_connected() -> None:
    async with relay() as at, street() as people:
        bob = Route.new()
        host = await people.host(at.url, None, ANN, bob)
        device, opened = await people.device(at.url, ANN, host)
        stays, _ = await people.device(at.url, bob, host)
        await host.admit(bob)
        assert await device.refusal() == "unpaired"
        assert await host.next() == control.Close(sid=opened.sid, reason="the device was revoked")
        again = await people.device_at(at.url, host.name)
        await again.prove(ANN, host.name)
        assert await again.refusal() == "unpaired"
        await stays.send(b"x")
        assert await host.next() == pack(stays.sid, b"x")


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (control.Close(sid="no hex"), "bad_frame"),
        (control.Close(sid="\u0661"), "bad_frame"),
        (control.Admit(devices=["AA=="]), "bad_params"),
        (control.Admit(devices=["?"]), "bad_frame"),
        (control.Offer(pairing=""), "bad_params"),
        (control.Host(route="", signature=""), "bad_frame"),
    ],
)
async def test_what_a_host_may_not_say_ends_it_and_its_devices_hear_it(said: control.Base, code: str) -> None:
    async with relay() as at, street() as people:
        host = await people.host(at.url, None, ANN)
        device, _ = await people.device(at.url, ANN, host)
        await host.say(said)
        assert await host.refusal() == code
        assert await device.refusal() == "host_away"
        await eventually(lambda: not at.switch.hosts)


async def test_a_host_that_floods_with_control_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "CONTROLS_AT_ONCE", 20)
    async with relay() as at, street() as people:
        host = await people.host(at.url)
        for _ in range(30):
            await host.say(control.Withdraw(pairing="x"))
        assert await host.refusal() == "rate_limited"


async def refused_before(people: Street, url: str, path: str, **headers: str) -> int:
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await people.connect(url, path, headers=headers)
    return caught.value.status


@pytest.mark.parametrize("path", [control.HOST_PATH, control.DEVICE_PATH + "hst_x"])
async def test_other_names_and_other_pages_are_refused_before_anything_is_said(path: str) -> None:
    async with relay(origins=["https://app.example.org"]) as at, street() as people:
        assert await refused_before(people, at.url, path, Host="relay.evil.org") == 403
        assert await refused_before(people, at.url, path, Origin="https://evil.org") == 403
        for origin in ("https://app.example.org", at.url):
            _, challenge = await people.connect(at.url, path, headers={"Origin": origin})
            assert len(challenge) == serve.CHALLENGE_BYTES


async def test_an_address_that_comes_too_often_and_a_relay_that_is_full() -> None:
    async with relay(rate=0.001, burst=2) as at, street() as people:
        await people.host(at.url)
        await people.host(at.url)
        assert await refused_before(people, at.url, control.HOST_PATH) == 429
    async with relay(max_connections=1) as at, street() as people:
        host = await people.host(at.url)
        assert await refused_before(people, at.url, control.HOST_PATH) == 429
        await host.ws.close()
        await eventually(lambda: not at.switch.hosts)


async def test_a_host_without_the_token_that_the_relay_wants(tmp_path: Path) -> None:

    file = tmp_path / "tokens"
    token = secrets.token_urlsafe(32)
    file.write_text(f"{digest(token)}\n")
    async with relay(tokens=file) as at, street() as people:
        for headers in ({}, {"Authorization": "Bearer other"}):
            host = await people.host_at(at.url, headers=headers)
            assert b'"unauthorized"' in host.challenge
        host = await people.host(at.url, None, ANN, headers={"Authorization": f"Bearer {token}"})
        await people.device(at.url, ANN, host)
