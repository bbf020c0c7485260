"""What a hostile relay tries: each attack is refused under a name, and nothing of it reaches the gateway or a device."""

import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.integration.gateway.rig import Rig
from tests.integration.relay import stage
from tests.integration.relay.device import CutError, Keys, Talk, meet, talk, text64
from tests.integration.relay.hostile import Hook, Hostile, honest, hostile

from trunkline_client.pairing import pair as join
from trunkline_relay.app import Host
from trunkline_seal import CONTROL, TEXT, Identity, Opening, Route, pack
from trunkline_seal.channel import Sender
from trunkline_seal.handshake import Accepting
from trunkline_seal.pairing import Link
from trunkline_testkit import eventually
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError

Frames = list[tuple[bytes, bytes]]


@dataclass
class Scene:
    """A paired phone with an owner's rights behind a hostile relay. `owner` sees what has reached the gateway."""

    relay: Hostile
    host: Host
    rig: Rig
    owner: Client
    phone: Keys

    async def made(self) -> list[str]:
        """The actors of the tokens that somebody has made: the effect that the attacks are after."""
        tokens = (await self.owner.call("token.list"))["tokens"]
        return [
            token["actor"] for token in tokens if token.get("via", "created") == "created" and token["actor"] != "owner"
        ]

    async def refused(self, code: str) -> str:
        """The host has refused a connection by this code."""
        await eventually(lambda: self.host.visits.refused.get(code))
        return code


def wish(actor: str) -> bytes:
    """A request with an effect."""
    params = {"actor": actor, "role": "owner"}
    return json.dumps({"type": "req", "id": actor, "method": "token.create", "params": params}).encode()


async def greeted(one: Talk) -> Talk:
    await one.call("hello", protocol=1)
    return one


async def twice(one: Talk) -> None:
    for _ in range(2):
        await one.call("hello", protocol=1)


async def ended(one: Talk) -> None:
    """The connection is over for the device, without a word of the gateway's."""
    with contextlib.suppress(CutError, TrunklineError):
        while True:
            await one.next()
    assert one.closed == {}


async def a_frame_is_repeated(scene: Scene) -> str:
    async with talk(scene.phone) as one:
        await greeted(one)
        await one.call("token.create", actor="once", role="owner")
        await scene.relay.to_host(one.line.sid, scene.relay.of(one.line.sid)[-1])
        await ended(one)
    assert await scene.made() == ["once"]
    return await scene.refused("bad_seal")


async def frames_are_reordered(scene: Scene) -> str:
    held: Frames = []

    def reorder(sid: bytes, ct: bytes) -> Frames:
        held.insert(0, (sid, ct))
        return held if len(held) == 2 else []

    async with talk(scene.phone) as one:
        await greeted(one)
        scene.relay.up = reorder
        await one.send(TEXT, wish("first"))
        await one.send(TEXT, wish("second"))
        await ended(one)
    assert await scene.made() == []
    return await scene.refused("bad_seal")


async def a_frame_is_dropped(scene: Scene) -> str:
    dropped: list[bytes] = []

    def drop(sid: bytes, ct: bytes) -> Frames:
        if dropped:
            return [(sid, ct)]
        dropped.append(ct)
        return []

    async with talk(scene.phone) as one:
        await greeted(one)
        scene.relay.up = drop
        await one.send(TEXT, wish("dropped"))
        await one.send(TEXT, wish("after"))
        await ended(one)
    assert await scene.made() == []
    return await scene.refused("bad_seal")


async def a_frame_is_cut_short(scene: Scene) -> str:
    async with talk(scene.phone) as one:
        await greeted(one)
        scene.relay.up = lambda sid, ct: [(sid, ct[:-1])]
        await one.send(TEXT, wish("short"))
        await ended(one)
    assert await scene.made() == []
    return await scene.refused("bad_seal")


async def frames_of_two_connections_are_swapped(scene: Scene) -> str:
    async with talk(scene.phone) as one, talk(scene.phone) as two:
        await greeted(one)
        await greeted(two)
        other = {one.line.sid: two.line.sid, two.line.sid: one.line.sid}
        scene.relay.up = lambda sid, ct: [(other[sid], ct)]
        await one.send(TEXT, wish("one"))
        await two.send(TEXT, wish("two"))
        await ended(one)
        await ended(two)
    assert await scene.made() == []
    await eventually(lambda: scene.host.visits.refused.get("bad_seal") == 2)
    return await scene.refused("bad_seal")


async def a_whole_connection_is_played_again(scene: Scene) -> str:
    async with talk(scene.phone) as one:
        await greeted(one)
        await one.send(TEXT, wish("once"))
        await eventually(scene.made)
        frames = scene.relay.of(one.line.sid)
    sid = await scene.relay.invent(device=text64(scene.phone.route.public))
    for frame in frames:
        await scene.relay.to_host(sid, frame)
    code = await scene.refused("bad_seal")
    assert await scene.made() == ["once"]
    return code


async def the_first_frame_of_an_earlier_connection_comes_for_the_new_one(scene: Scene) -> str:
    async with talk(scene.phone) as one:
        proof = scene.relay.of(one.line.sid)[1]
    seen: list[bytes] = []

    def swap(sid: bytes, ct: bytes) -> Frames:
        seen.append(ct)
        return [(sid, ct if len(seen) == 1 else proof)]

    scene.relay.up = swap
    with pytest.raises(CutError):
        async with talk(scene.phone):
            pass
    return await scene.refused("bad_seal")


async def a_key_is_substituted_at_pairing(scene: Scene) -> str:
    """The relay takes the device's first message for its own, and pairs a key of its own instead."""
    own = Keys()
    caught: list[bytes] = []

    def take(sid: bytes, ct: bytes) -> Frames:
        with pytest.raises(TrunklineError, match="bad_seal"):
            Accepting([own.identity], sid, ct)
        caught.append(ct)
        # It may know the host's key; of the secret it has only the name.
        about = {"pair": text64(bytes(16)), "route": text64(own.route.public), "commit": "", "key": text64(bytes(32))}
        opening = Opening(own.identity, scene.phone.host, sid, json.dumps(about).encode())
        return [(sid, opening.first)]

    async with stage.offer(scene.rig.home, actor="eve") as asked:
        link = (await asked.next())["link"]
        scene.relay.up = take
        with pytest.raises(CutError):
            async with meet(link):
                pass
        failed = await asked.next()
    assert len(caught) == 1
    assert len((await scene.owner.call("device.list"))["devices"]) == 1
    return failed["code"]


async def an_old_pairing_is_played_again(scene: Scene) -> str:
    before = len(scene.relay.ups)
    await stage.pair(scene.rig.home, name="tablet")
    frames = [ct for _, ct in scene.relay.ups[before:]]
    sid = await scene.relay.invent(pairing=scene.relay.pairing)
    for frame in frames:
        await scene.relay.to_host(sid, frame)
    code = await scene.refused("bad_pairing")
    assert len((await scene.owner.call("device.list"))["devices"]) == 2
    return code


async def a_link_is_used_twice(scene: Scene) -> str:
    """The relay lets a second device come by a link while the first one waits for the person to say yes."""
    async with stage.offer(scene.rig.home) as asked:
        link = (await asked.next())["link"]
        async with meet(link) as meeting:
            await asked.next()
            with pytest.raises(CutError):
                async with meet(link):
                    pass
            asked.say({"agree": True})
            first = await meeting.outcome()
    devices = (await scene.owner.call("device.list"))["devices"]
    assert {one["id"] for one in devices} == {scene.phone.device, first.device}
    return await scene.refused("bad_pairing")


async def a_decision_is_injected(scene: Scene) -> str:
    async with talk(scene.phone) as one:
        await greeted(one)
        answer = {"type": "req", "id": "1", "method": "ask.answer", "params": {"ask": "ask_x", "behaviour": "allow"}}
        for frame in Sender(bytes(32), one.line.sid).seal(TEXT, json.dumps(answer).encode()):
            await scene.relay.to_host(one.line.sid, frame)
        await ended(one)
    assert await scene.rig.answers_stored() == 0
    return await scene.refused("bad_seal")


async def the_relay_answers_the_handshake_with_a_key_of_its_own(scene: Scene) -> str:
    def answer(sid: bytes, ct: bytes) -> Frames:
        del ct
        fresh = Identity.new()
        sender = Sender(bytes(32), sid)
        said = b"".join(sender.seal(CONTROL, json.dumps({"host": "box", "identity": text64(fresh.public)}).encode()))
        return [(sid, fresh.public + sender.header + said)]

    scene.relay.down = answer
    with pytest.raises(TrunklineError) as refused:
        async with talk(scene.phone):
            pass
    return refused.value.code


async def the_clear_part_of_an_envelope_is_changed(scene: Scene) -> str:
    def elsewhere(_: bytes, ct: bytes) -> Frames:
        return [(bytes(16), ct)]

    async with talk(scene.phone) as one:
        await greeted(one)
        scene.relay.up = elsewhere
        await one.send(TEXT, wish("elsewhere"))
        await eventually(lambda: len(scene.relay.of(one.line.sid)) == 4)
        whole = pack(one.line.sid, scene.relay.of(one.line.sid)[-1])
    line = scene.host.line
    for changed in (b"\2" + whole[1:], whole[:17] + b"\0\0\0\1" + whole[21:]):
        await scene.relay.raw_to_host(changed)
        await eventually(lambda: line.trouble.startswith("bad_frame: an envelope "))
        line.hurry()
        await eventually(lambda: line.ready)
    assert await scene.made() == []
    return "bad_frame"


ATTACKS: dict[Callable[[Scene], Awaitable[str]], str] = {
    a_frame_is_repeated: "bad_seal",
    frames_are_reordered: "bad_seal",
    a_frame_is_dropped: "bad_seal",
    a_frame_is_cut_short: "bad_seal",
    frames_of_two_connections_are_swapped: "bad_seal",
    a_whole_connection_is_played_again: "bad_seal",
    the_first_frame_of_an_earlier_connection_comes_for_the_new_one: "bad_seal",
    a_key_is_substituted_at_pairing: "bad_pairing",
    an_old_pairing_is_played_again: "bad_pairing",
    a_link_is_used_twice: "bad_pairing",
    a_decision_is_injected: "bad_seal",
    the_relay_answers_the_handshake_with_a_key_of_its_own: "bad_seal",
    the_clear_part_of_an_envelope_is_changed: "bad_frame",
}


@pytest.fixture
async def scene(rig: Rig) -> AsyncGenerator[Scene]:
    async with hostile() as relay, stage.host(rig.home, relay.url) as host, await rig.client() as owner:
        yield Scene(relay, host, rig, owner, await stage.pair(rig.home))


def test_there_are_thirteen() -> None:
    assert len(ATTACKS) == 13


@pytest.mark.parametrize(("attack", "code"), ATTACKS.items(), ids=lambda one: getattr(one, "__name__", None))
async def test_it_is_refused_by_name_and_the_next_connection_is_whole(
    scene: Scene, attack: Callable[[Scene], Awaitable[str]], code: str
) -> None:
    assert await attack(scene) == code
    scene.relay.up = scene.relay.down = honest
    async with talk(scene.phone) as one:
        assert (await one.call("hello", protocol=1))["device"] == scene.phone.device


async def test_what_comes_down_is_guarded_as_what_goes_up(scene: Scene) -> None:
    """The device's side of repeating, leaving out and cutting: it trusts nothing after it."""
    harms: dict[str, Hook] = {
        "repeated": lambda sid, ct: [(sid, ct), (sid, ct)],
        "cut": lambda sid, ct: [(sid, ct[:-1])],
        "changed": lambda sid, ct: [(sid, ct[:-1] + bytes([ct[-1] ^ 1]))],
    }
    for name, harm in harms.items():
        scene.relay.down = honest
        async with talk(scene.phone) as one:
            scene.relay.down = harm
            with pytest.raises(TrunklineError, match="bad_seal"):
                await twice(one)
            assert one.closed == {}, name


async def test_a_device_is_not_who_the_relay_says(scene: Scene) -> None:
    """The relay lets in a stranger under a paired device's route key: the identity tells."""
    stranger = Keys(relay=scene.relay.url, host_name=scene.phone.host_name, host=scene.phone.host)
    stranger.route, stranger.token = scene.phone.route, scene.phone.token
    mixed = replace(scene.phone, route=Route.new())
    for pretending in (stranger, mixed):
        with pytest.raises(TrunklineError) as refused:
            async with talk(pretending):
                pass
        assert refused.value.code == "unpaired"


@pytest.mark.parametrize("sid", ["no hex", "00" * 15, ""])
async def test_a_relay_that_names_what_can_be_no_connection_is_left_and_the_host_lives(
    scene: Scene, sid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline_relay.host.FIRST_S", 0.01)
    attempts = scene.host.line.attempts
    await scene.relay.tell_host(type="opened", sid=sid)
    await eventually(lambda: scene.host.running.done() or scene.host.line.attempts > attempts)
    assert not scene.host.running.done()
    await eventually(lambda: scene.host.line.ready)
    async with talk(scene.phone) as one:
        await one.call("hello", protocol=1)


async def test_a_relay_that_names_what_can_be_no_connection_is_none_for_a_device() -> None:
    def show(_: str, __: str) -> None:
        raise AssertionError("there is no code to show")

    async def device(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        await ws.send_json({"type": "challenge", "challenge": text64(bytes(32))})
        await ws.receive()
        await ws.send_json({"type": "opened", "sid": "no hex"})
        return ws

    app = web.Application()
    app.router.add_get("/relay/v1/device/{host}", device)
    link = Link.new("http://relay", bytes(32), Identity.new().public, bytes(32))
    async with TestServer(app) as server:
        relay = str(server.make_url("")).rstrip("/")
        with pytest.raises(TrunklineError, match="in hex") as refused:
            await join(replace(link, relay=relay), "phone", show)
    assert refused.value.code == "bad_frame"
