"""What must not come in: bad frames, wrong tokens, foreign pages; each with its stable code, and nothing hangs."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from tests.integration.gateway.rig import Rig, begin_turn

from trunkline_bus.reader import read
from trunkline_testkit import eventually
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import new_session_id

SID = new_session_id()


async def one_answer(rig: Rig, frame: str | bytes) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(rig.running.socket))) as http,
        http.ws_connect("http://localhost/ws") as ws,
    ):
        await (ws.send_bytes(frame) if isinstance(frame, bytes) else ws.send_str(frame))
        async with asyncio.timeout(5):
            answer = await ws.receive()
            assert answer.type is aiohttp.WSMsgType.TEXT, answer
            # the connection lives on
            await ws.send_str('{"type":"req","id":2,"method":"hello","params":{"protocol":1}}')
            assert json.loads((await ws.receive()).data)["ok"]
        return json.loads(answer.data)


def request(method: str, id: object = 7, **params: object) -> str:
    return json.dumps({"type": "req", "id": id, "method": method, "params": params})


@pytest.mark.parametrize(
    ("frame", "id", "code", "field"),
    [
        ("{", None, "bad_frame", None),
        ("[]", None, "bad_frame", None),
        ("null", None, "bad_frame", None),
        ('"x"', None, "bad_frame", None),
        (b"\xff\xfe", None, "bad_frame", None),
        ('{"type":"req","id":7}', 7, "bad_frame", None),
        ('{"type":"req","method":"session.list"}', None, "bad_frame", None),
        ('{"type":"event","id":7,"method":"session.list"}', 7, "bad_frame", None),
        ('{"type":"req","id":7,"method":5}', 7, "bad_frame", None),
        ('{"type":"req","id":{},"method":"session.list"}', None, "bad_frame", None),
        ('{"type":"req","id":"a","method":"session.list","params":[]}', "a", "bad_params", None),
        (request("session.fly"), 7, "unknown_method", None),
        (request("x" * 5000), 7, "unknown_method", None),
        (request("session.get"), 7, "bad_params", "session"),
        (request("session.get", session=5), 7, "bad_params", "session"),
        (request("session.get", session=SID, colour=1), 7, "bad_params", "colour"),
        (request("session.get", session="ses_x"), 7, "bad_id", None),
        (request("session.get", session=SID), 7, "unknown_session", None),
        (request("session.list", limit="many"), 7, "bad_params", "limit"),
        (request("session.list", limit=0), 7, "bad_params", "limit"),
        (request("session.prompt", session=SID, text="\ud800"), 7, "unknown_session", None),
        (request("hello", protocol=2), 7, "bad_params", "protocol"),
        (request("subscribe", session=SID, deltas="yes"), 7, "bad_params", "deltas"),
        (request("session.list", x="y" * 1_100_000), 7, "too_large", None),
        ("x" * 1_100_000, None, "too_large", None),
        ('{"type":"req","id":7,"method":"session.list","params":' + "[" * 100_000 + "}", None, "bad_frame", None),
    ],
)
async def test_a_bad_frame_gets_its_code_and_the_connection_lives_on(
    rig: Rig, frame: str | bytes, id: object, code: str, field: str | None
) -> None:
    answer = await one_answer(rig, frame)
    assert (answer["type"], answer["id"], answer["ok"]) == ("res", id, False)
    assert answer["error"]["code"] == code, answer
    assert answer["error"].get("details", {}).get("field") == field
    assert len(answer["error"]["message"]) < 1000


async def test_the_same_over_http_is_problem_json(rig: Rig) -> None:
    token = rig.token
    for method, body, status, code in [
        ("session.fly", {}, 404, "unknown_method"),
        ("session.get", {}, 400, "bad_params"),
        ("session.get", {"session": SID}, 404, "unknown_session"),
        ("session.list", [], 400, "bad_params"),
        ("session.list", {"x": "y" * 1_100_000}, 413, "too_large"),
        ("subscribe", {}, 404, "unknown_method"),
    ]:
        got, problem = await rig.post(method, body, token=token)
        assert (got, problem["code"], problem["status"]) == (status, code, status), problem
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
        async with http.post(f"{rig.running.url}/api/v1/session.list", data=b"{") as answer:
            assert (answer.status, answer.content_type) == (400, "application/problem+json")
            assert (await answer.json(content_type=None))["code"] == "bad_frame"
        async with http.get(f"{rig.running.url}/nothing/here") as answer:
            assert (answer.status, answer.content_type) == (404, "application/problem+json")
        async with http.post(f"{rig.running.url}/api/v1/session.list", json={}) as answer:
            assert (answer.status, (await answer.json())["total"]) == (200, 0)
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("headers", "query", "status", "code"),
    [
        ({}, "", 401, "unauthorized"),
        ({"Authorization": "Bearer trk_wrong"}, "", 401, "unauthorized"),
        ({"Authorization": "Basic abc"}, "", 401, "unauthorized"),
        ({"Authorization": "Bearer "}, "", 401, "unauthorized"),
        ({"Authorization": "TOKEN"}, "?token=SECRET", 401, "unauthorized"),
        ({}, "?access_token=SECRET", 401, "unauthorized"),
        ({"Authorization": "TOKEN", "Host": "evil.example"}, "", 403, "bad_origin"),
        ({"Authorization": "TOKEN", "Host": ""}, "", 403, "bad_origin"),
        ({"Authorization": "TOKEN", "Origin": "https://evil.example"}, "", 403, "bad_origin"),
        ({"Authorization": "TOKEN", "Origin": "null"}, "", 403, "bad_origin"),
        ({"Authorization": "TOKEN", "Origin": "http://127.0.0.1:1"}, "", 403, "bad_origin"),
    ],
)
async def test_who_may_not_come_in(
    rig: Rig, headers: dict[str, str], query: str, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    secret = rig.token
    headers = {k: f"Bearer {secret}" if v == "TOKEN" else v for k, v in headers.items()}
    query = query.replace("SECRET", secret)
    async with aiohttp.ClientSession() as http:
        async with http.post(f"{rig.running.url}/api/v1/session.list{query}", json={}, headers=headers) as answer:
            problem = await answer.json(content_type=None)
            assert (answer.status, problem["code"]) == (status, code)
            assert secret not in json.dumps(problem)
        if code == "bad_origin" or query:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(f"{rig.running.url}/ws{query}", headers=headers)
            assert refused.value.status == status
    assert secret not in caplog.text
    records = await eventually(lambda: read(rig.bus, subjects.SYSTEM, ["trunk.sys.refusal"]))
    assert code in records[0].raw.decode()
    assert not any(secret.encode() in record.raw for record in records)


async def test_a_page_of_the_gateway_itself_and_allowed_origins_may_connect(rig: Rig) -> None:
    await rig.restart_gateway(origins=["https://app.example"], hosts=["box.lan"])
    url = rig.running.url
    token = rig.token
    assert (await rig.post("session.list", token=token, Origin=url))[0] == 200
    assert (await rig.post("session.list", token=token, Origin="https://app.example"))[0] == 200
    assert (await rig.post("session.list", token=token, Host="box.lan:30086"))[0] == 200
    assert (await rig.post("session.list", token=token, Host="localhost"))[0] == 200
    assert (await rig.post("session.list", token=token, Host="box.lan.evil.example"))[0] == 403


async def test_a_token_may_come_in_hello_and_a_wrong_one_ends_the_connection(rig: Rig) -> None:
    async with aiohttp.ClientSession() as http:
        async with http.ws_connect(f"{rig.running.url}/ws") as ws:
            await ws.send_str(request("hello", protocol=1, token=rig.token))
            assert json.loads((await ws.receive()).data)["payload"]["role"] == "owner"
        for frame in (request("hello", protocol=1, token="trk_no"), request("hello", protocol=1), request("ask.list")):
            async with http.ws_connect(f"{rig.running.url}/ws") as ws:
                await ws.send_str(frame)
                assert json.loads((await ws.receive()).data)["error"]["code"] == "unauthorized"
                closed = await ws.receive()
                assert (closed.type, ws.close_code) == (aiohttp.WSMsgType.CLOSE, 1008)


async def test_who_says_nothing_is_shown_out(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_gateway.ws.HELLO_S", 0.1)
    async with aiohttp.ClientSession() as http, http.ws_connect(f"{rig.running.url}/ws") as ws:
        closed = await ws.receive(timeout=5)
        assert (closed.type, closed.extra, ws.close_code) == (aiohttp.WSMsgType.CLOSE, "no_hello", 1008)


async def test_roles_are_enforced_at_the_server(rig: Rig) -> None:
    async with await rig.client() as owner, await rig.session() as writer:
        tokens = {
            role: await owner.call("token.create", actor=f"a-{role}", role=role)
            for role in ("viewer", "participant", "approver")
        }
        table = {
            "session.list": "viewer",
            "session.prompt": "participant",
            "session.interrupt": "participant",
            "session.command": "participant",
            "session.create": "participant",
            "ask.answer": "approver",
            "token.create": "owner",
            "token.list": "owner",
        }
        order = ["viewer", "participant", "approver", "owner"]
        for role, made in tokens.items():
            async with await rig.client(token=made["token"]) as client:
                for method, needed in table.items():
                    code = "ok"
                    try:
                        await client.call(method)
                    except TrunklineError as error:
                        code = error.code
                    assert (code == "forbidden") == (order.index(role) < order.index(needed)), (role, method, code)
                await client.call("subscribe", session=writer.session)
                begin_turn(writer)
                await client.wait("turn.started")
        async with await rig.client(token=tokens["approver"]["token"]) as client:
            for verb in ("kill", "native"):
                args = {"method": "x"} if verb == "native" else {}
                with pytest.raises(TrunklineError) as refused:
                    await client.call("session.command", session=writer.session, verb=verb, args=args)
                assert refused.value.code == "forbidden"
        assert await rig.commands(writer.session) == []


async def test_a_revoked_token_ends_its_connections(rig: Rig) -> None:
    async with await rig.client() as owner:
        made = await owner.call("token.create", actor="guest", role="viewer")
        client = await rig.client(token=made["token"])
        await owner.call("token.revoke", id=made["id"])
        await eventually(lambda: client.closed)
        await client.close()
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await rig.client(token=made["token"])
        assert refused.value.status == 401
        listed = await owner.call("token.list")
        assert [token["actor"] for token in listed["tokens"]] == ["owner"]
        assert "hash" not in listed["tokens"][0]


async def test_the_owners_token_is_made_once_and_only_its_hash_is_in_the_log(rig: Rig) -> None:
    token = rig.token
    assert (rig.home / "token").stat().st_mode & 0o777 == 0o600
    await rig.restart_gateway()
    assert rig.token == token
    stored = await read(rig.bus, "KV_trunk_tokens", ["$KV.trunk_tokens.>"])
    assert stored
    assert not any(token.encode() in one.raw for one in stored)
    async with await Client.connect(rig.running.url, headers={"Authorization": f"Bearer {token}"}) as client:
        await client.call("session.list")
