"""A device reaches a gateway through a relay: pairing, calls, large messages both ways, refusals, a host that changes its identity."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace
from tests.integration.relay.scripted_host import ScriptedHost, gateway_at, relay_here

from trunkline_client import Address, Connection, ConnectionLostError, Paired, Sealed, open_session, open_socket
from trunkline_client.pairing import pair
from trunkline_seal import Identity
from trunkline_seal.pairing import Link as PairingLink
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError

MADE = {"device": "dev_1", "actor": "ann", "role": "owner", "token": "tl_secret", "host": "box"}


async def _gateway(request: web.Request) -> web.WebSocketResponse:
    """Answers `hello`, and every other call with its parameters; bytes come back as they are."""
    assert request.headers["Authorization"] == "Bearer tl_secret"
    ws = web.WebSocketResponse(max_msg_size=0)
    await ws.prepare(request)
    async for message in ws:
        if message.type is aiohttp.WSMsgType.BINARY:
            await ws.send_bytes(message.data)
            continue
        said = json.loads(message.data)
        if said["method"] == "leave":
            await ws.close(code=4001, message=b"revoked")
            break
        await ws.send_json({"type": "res", "id": said["id"], "ok": True, "payload": said["params"]})
    return ws


@asynccontextmanager
async def _host() -> AsyncGenerator[ScriptedHost]:
    app = web.Application()
    app.router.add_get("/ws", _gateway)
    app.router.add_get("/ws/terminal/{session}", _gateway)
    async with (
        TestServer(app) as server,
        relay_here() as relay,
        ScriptedHost(relay, gateway_at(str(server.make_url("")).rstrip("/"))) as host,
    ):
        yield host


async def _paired(host: ScriptedHost) -> Paired:
    codes: list[tuple[str, str]] = []

    def show(code: str, name: str) -> None:
        codes.append((code, name))
        host.answer.set_result({"paired": MADE})

    paired = await pair(PairingLink.parse(await host.offer()), "Ann's phone", show)
    assert codes == [(host.code, "box")]
    return paired


def _address(paired: Paired) -> Address:
    return Address(url=paired.relay, sealed=Sealed(paired))


async def test_a_device_pairs_and_calls() -> None:
    async with _host() as host:
        paired = await _paired(host)
        assert (paired.device, paired.token, paired.host) == ("dev_1", "tl_secret", "box")
        assert host.asked["name"] == "Ann's phone"
        async with await Connection.connect(_address(paired)) as connection:
            assert connection.server == {"protocol": 1, "client": "python"}
            assert await connection.call("echo", text="ä" * 10) == {"text": "ä" * 10}
        assert host.opened == [{"open": "/ws", "token": "tl_secret", "pad": 0}]
        await eventually(lambda: host.closed == [{"code": 1000, "reason": ""}])


async def test_messages_larger_than_the_window_go_both_ways() -> None:
    async with _host() as host:
        paired = await _paired(host)
        async with await Connection.connect(_address(paired)) as connection:
            text = "x" * (3 * 1024 * 1024)
            answers = await asyncio.gather(*(connection.call("echo", text=text) for _ in range(3)))
            assert [answer["text"] == text for answer in answers] == [True] * 3


async def test_a_terminals_bytes_go_both_ways_padded() -> None:
    async with _host() as host:
        address = _address(_with(await _paired(host), pad=1024))
        async with open_session(address) as http:
            ws = await open_socket(http, address, "/ws/terminal/ses_1")
            sizes: list[int] = []
            host.spoil = lambda frame: (sizes.append(len(frame)), frame)[1]
            await ws.send_bytes(b"ls")
            assert (await ws.receive(timeout=5)).data == b"ls"
            await ws.send_str(json.dumps({"id": 1, "method": "leave", "params": {}}))
            ended = await ws.receive(timeout=5)
            await ws.close()
        assert ended.type is aiohttp.WSMsgType.CLOSE
        assert ended.data == 4001
        assert host.opened[0]["open"] == "/ws/terminal/ses_1"
        # 17 bytes are the seal's
        assert all((size - 17) % 1024 == 0 for size in sizes)


async def test_a_host_may_want_more_padding_and_none_that_there_can_not_be() -> None:
    async with _host() as host:
        paired = await _paired(host)
        for wanted, own, said in ((512, 0, 512), (512, 1024, 1024), (65536, 0, 65536)):
            host.about = {"pad": wanted}
            async with await Connection.connect(_address(_with(paired, pad=own))) as connection:
                assert await connection.call("echo", text="x") == {"text": "x"}
            assert host.opened[-1]["pad"] == said
        for wrong in (-1, 65537, "256"):
            host.about = {"pad": wrong}
            with pytest.raises(TrunklineError) as refused:
                await Connection.connect(_address(paired))
            assert refused.value.code == "bad_frame"


def _shown(code: str, name: str) -> None:
    assert (len(code), name) == (7, "box")


async def test_a_host_that_says_no_at_pairing_is_named() -> None:
    async with _host() as host:
        link = PairingLink.parse(await host.offer())
        host.answer.set_result({"failed": {"code": "bad_pairing", "message": "nobody has confirmed it"}})
        with pytest.raises(TrunklineError) as refused:
            await pair(link, "phone", _shown)
        assert (refused.value.code, refused.value.message) == ("bad_pairing", "nobody has confirmed it")
        with pytest.raises(TrunklineError) as refused:
            await pair(link, "phone", _shown)
        assert refused.value.code == "bad_pairing"


async def test_refusals_that_last_are_told_and_those_that_pass_are_lost_connections() -> None:
    async with _host() as host:
        paired = await _paired(host)
        host.refusal = {"code": "unauthorized", "message": "the token was revoked"}
        with pytest.raises(TrunklineError) as refused:
            await Connection.connect(_address(paired))
        assert refused.value.code == "unauthorized"
        host.refusal = {"code": "not_running", "message": "the gateway starts"}
        with pytest.raises(ConnectionLostError):
            await Connection.connect(_address(paired))
        host.refusal = None
        with pytest.raises(TrunklineError) as refused:
            await Connection.connect(_address(_with(paired, seed=bytes(32))))
        assert refused.value.code == "unpaired"
        await host.leave()
        with pytest.raises(ConnectionLostError, match="not connected"):
            await Connection.connect(_address(paired))
        await host.arrive()
        async with await Connection.connect(_address(paired)) as connection:
            assert await connection.call("echo", a=1) == {"a": 1}


async def test_a_newer_identity_is_kept() -> None:
    async with _host() as host:
        kept: list[Paired] = []
        sealed = Sealed(await _paired(host), kept.append)
        host.identities.append(Identity.new())
        host.about = {"number": 2}
        address = Address(url="", sealed=sealed)
        async with await Connection.connect(address) as connection:
            assert [one.identity for one in kept] == [host.identities[1].public]
            host.identities.append(Identity.new())
            (visit,) = host.visits.values()
            await visit.say({"identity": _b64(host.identities[2].public), "number": 3})
            await eventually(lambda: len(kept) == 2)
            await visit.say({"identity": _b64(host.identities[1].public), "number": 2})
            assert await connection.call("echo", a=1) == {"a": 1}
        host.about = {"number": 3}
        # who still had the first would not be let in any more
        host.identities = host.identities[2:]
        async with await Connection.connect(address) as connection:
            assert await connection.call("echo", a=1) == {"a": 1}
        assert len(kept) == 2


async def test_a_changed_frame_is_a_lost_connection() -> None:
    async with _host() as host:
        paired = await _paired(host)
        async with await Connection.connect(_address(paired)) as connection:
            host.spoil = lambda frame: bytes((frame[0] ^ 1,)) + frame[1:]
            with pytest.raises(ConnectionLostError):
                await connection.call("echo", a=1)
        with pytest.raises(ConnectionLostError):
            await Connection.connect(_address(paired))


async def test_no_repr_has_a_secret() -> None:
    async with _host() as host:
        paired = await _paired(host)
        said = repr(_address(paired))
        assert all(repr(secret)[2:-1] not in said for secret in (paired.seed, paired.secret, paired.key))
        assert "tl_secret" not in said


def _with(paired: Paired, **changes: Any) -> Paired:
    return replace(paired, **changes)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
