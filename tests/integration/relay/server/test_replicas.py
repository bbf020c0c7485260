"""Several relays that are one, on a real nats-server with the rights of the user `relay`."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import nats
import pytest
from tests.integration.relay.server.ends import Street, relay, street

from trunkline_bus.credentials import ensure_keys, public_key, server_config
from trunkline_relay import replicas
from trunkline_relay.server import Serving
from trunkline_seal import control, pack
from trunkline_seal.control import b64
from trunkline_seal.keys import Route
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.ports import free_port
from trunkline_testkit.processes import Guard
from trunkline_wire import subjects

ANN = Route.new()


class Stage:
    def __init__(self, server: NatsServer, seed: Path, relays: list[Serving], people: Street) -> None:
        self.server = server
        self.seed = seed
        self.relays = relays
        self.people = people

    @property
    def urls(self) -> list[str]:
        return [one.url for one in self.relays]


@asynccontextmanager
async def stage(directory: Path, count: int = 2) -> AsyncGenerator[Stage]:
    keys = ensure_keys(directory / "keys")
    config = server_config({user: public_key(file) for user, file in keys.items()})
    server = NatsServer(config=config)
    await asyncio.to_thread(server.start)
    try:
        async with AsyncExitStack() as stack:
            people = await stack.enter_async_context(street())
            relays = [
                await stack.enter_async_context(relay(nats_url=server.url, nats_seed=keys["relay"]))
                for _ in range(count)
            ]
            yield Stage(server, keys["relay"], relays, people)
    finally:
        await asyncio.to_thread(server.stop)


async def test_a_device_reaches_a_host_at_another_replica(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        here, there = on.urls
        host = await on.people.host(here, None, ANN)
        far, opened = await on.people.device(there, ANN, host)
        near, _ = await on.people.device(here, ANN, host)
        frames = [pack(far.sid, bytes([number]) * 60_000) for number in range(50)]
        for frame in frames:
            await far.ws.send_bytes(frame)
        assert [await host.next() for _ in frames] == frames
        for frame in frames:
            await host.ws.send_bytes(frame)
        assert [await far.next() for _ in frames] == frames
        await near.send(b"near")
        assert await host.next() == pack(near.sid, b"near")
        await host.ws.send_bytes(frames[0])
        await host.say(control.Close(sid=opened.sid))
        assert await far.next() == frames[0], "what was said before the close arrives"
        assert await far.refusal() == "closed with 1000"


async def test_the_replica_that_has_the_host_decides(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        here, there = on.urls
        host = await on.people.host(here, None, ANN)
        await host.say(control.Offer(pairing="once"))
        stranger = await on.people.device_at(there, host.name)
        await stranger.prove(Route.new(), host.name)
        assert await stranger.refusal() == "unpaired"
        forger = await on.people.device_at(there, host.name)
        await forger.prove(ANN, host.name, control.device_text("evil.org", host.name, forger.challenge))
        assert await forger.refusal() == "unauthorized"
        new = await on.people.device_at(there, host.name)
        await new.say(control.Pairing(pairing="once"))
        await new.opened()
        assert await host.opened() == control.Opened(sid=new.sid.hex(), pairing="once")
        again = await on.people.device_at(there, host.name)
        await again.say(control.Pairing(pairing="once"))
        assert await again.refusal() == "bad_pairing"
        nobody = await on.people.device_at(there, "hst_" + "a" * 26)
        await nobody.prove(ANN, "hst_" + "a" * 26)
        assert await nobody.refusal() == "host_away"


async def test_a_device_is_revoked_wherever_it_is(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        host = await on.people.host(on.urls[0], None, ANN)
        far, opened = await on.people.device(on.urls[1], ANN, host)
        await host.admit()
        assert await far.refusal() == "unpaired"
        assert await host.next() == control.Close(sid=opened.sid, reason="the device was revoked")


async def test_each_end_hears_of_the_other_s(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        host = await on.people.host(on.urls[0], None, ANN)
        far, opened = await on.people.device(on.urls[1], ANN, host)
        await far.ws.close()
        assert await host.next() == control.Close(sid=opened.sid, reason="the device has gone")
        far, _ = await on.people.device(on.urls[1], ANN, host)
        await host.ws.close()
        assert await far.refusal() == "host_away"
        assert [one.replicas and (one.replicas.guests, one.replicas.afar) for one in on.relays] == [({}, {})] * 2


async def test_a_host_that_comes_to_another_replica_leaves_the_first(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        key = Route.new()
        old = await on.people.host(on.urls[0], key, ANN)
        new = await on.people.host(on.urls[1], key, ANN)
        assert await old.refusal() == "already_running"
        device, _ = await on.people.device(on.urls[0], ANN, new)
        await device.send(b"x")
        assert await new.next() == pack(device.sid, b"x")


def mute(*_: object) -> bool:
    return False


async def test_visits_over_a_replica_that_dies_end_within_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "BEAT_S", 0.05)
    monkeypatch.setattr(replicas, "SILENT_S", 0.5)
    async with stage(tmp_path) as on:
        first, second = on.relays
        host = await on.people.host(first.url, None, ANN)
        far, opened = await on.people.device(second.url, ANN, host)
        near = await on.people.host(second.url, None, ANN)
        guest, _ = await on.people.device(first.url, ANN, near)
        assert first.replicas is not None
        # Dead as seen from the other: it neither beats nor ends anything.
        monkeypatch.setattr(first.replicas, "_publish", mute)
        monkeypatch.setattr(first.replicas, "pass_on", mute)
        assert await far.refusal() == "host_away"
        closed = await near.next()
        assert isinstance(closed, control.Close)
        assert closed.sid == guest.sid.hex()
        assert opened.device == b64(ANN.public)


async def test_a_replica_that_is_killed_takes_its_visits_with_it_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "SILENT_S", 2.5)
    async with stage(tmp_path, 1) as on:
        port = free_port()
        flags = ("--nats-url", on.server.url, "--nats-seed", str(on.seed), "--port", str(port), "--home", str(tmp_path))
        killed = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trunkline_relay.server", *flags),
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        guard = Guard(killed.pid)
        try:
            there = f"http://127.0.0.1:{port}"
            elsewhere = await eventually(
                lambda: on.people.host(there, None, ANN), 30, ignore=(aiohttp.ClientConnectionError,)
            )
            here = await on.people.host(on.urls[0], None, ANN)
            far, _ = await on.people.device(on.urls[0], ANN, elsewhere)
            guest, _ = await on.people.device(there, ANN, here)
            near, _ = await on.people.device(on.urls[0], ANN, here)
            killed.kill()
            await killed.wait()
            assert await far.refusal() == "host_away"
            closed = await here.next()
            assert isinstance(closed, control.Close)
            assert closed.sid == guest.sid.hex()
            await near.send(b"still here")
            assert await here.next() == pack(near.sid, b"still here")
            again = await on.people.host(on.urls[0], elsewhere.route, ANN)
            await on.people.device(on.urls[0], ANN, again)
        finally:
            if killed.returncode is None:
                killed.kill()
                await killed.wait()
            guard.release()


async def test_visits_end_with_the_server_and_come_again_with_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        here, there = on.urls
        host = await on.people.host(here, None, ANN)
        far, opened = await on.people.device(there, ANN, host)
        near, _ = await on.people.device(here, ANN, host)
        names = [one.replicas and one.replicas.name for one in on.relays]
        await asyncio.to_thread(on.server.stop)
        assert await far.refusal() == "host_away"
        closed = await host.next()
        assert isinstance(closed, control.Close)
        assert closed.sid == opened.sid
        await near.send(b"who is at the same replica stays")
        assert await host.next() == pack(near.sid, b"who is at the same replica stays")
        alone = await on.people.device_at(there, host.name)
        await alone.prove(ANN, host.name)
        assert await alone.refusal() == "host_away"
        await asyncio.to_thread(on.server.start)
        await eventually(lambda: all(one.replicas and one.replicas.trouble is None for one in on.relays))
        await eventually(lambda: not {one.replicas and one.replicas.name for one in on.relays} & set(names))
        again, _ = await on.people.device(there, ANN, host)
        await again.send(b"x")
        assert await host.next() == pack(again.sid, b"x")


async def test_the_relay_s_user_hears_and_writes_nothing_else(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        errors: list[str] = []

        async def on_error(error: Exception) -> None:
            errors.append(str(error).lower())

        client = await nats.connect(
            on.server.url, nkeys_seed=str(on.seed), inbox_prefix="_INBOX_relay", error_cb=on_error
        )
        try:
            for subject in (subjects.ALL_EVENTS, "_INBOX.>", "_INBOX_gateway.>", "$JS.API.>", ">"):
                await client.subscribe(subject)
                await eventually(lambda subject=subject: any(f'"{subject.lower()}"' in said for said in errors))
            for subject in ("trunk.sys.x", "$JS.API.INFO", "$KV.trunk_tokens.x"):
                await client.publish(subject, b"{}")
                await eventually(lambda subject=subject: any(f'"{subject.lower()}"' in said for said in errors))
        finally:
            await client.close()


async def test_what_is_no_message_of_ours_does_no_harm(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        host = await on.people.host(on.urls[0], None, ANN)
        first = on.relays[0].replicas
        assert first is not None
        client = await nats.connect(on.server.url, nkeys_seed=str(on.seed), inbox_prefix="_INBOX_relay")
        try:
            for subject in (
                subjects.relay_open(host.name),
                subjects.RELAYS_ALIVE,
                subjects.relay_visit("end", first.name, "x"),
                subjects.relay_visit("up", first.name, "00" * 16),
                subjects.relay_visit("down", first.name, "00" * 16),
            ):
                for data in (b"", b"{", b'{"sid":"zz","replica":"r"}', b'{"sid":"00","replica":"r"}', b"[]"):
                    await client.publish(subject, data)
            await client.flush()
        finally:
            await client.close()
        far, _ = await on.people.device(on.urls[1], ANN, host)
        await far.send(b"x")
        assert await host.next() == pack(far.sid, b"x")
        assert on.relays[0].switch.visits == 1
