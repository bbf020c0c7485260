"""Who somebody is and what they reach: limited tokens, sign-in links, devices, a provider's tokens, rates."""

import asyncio
import base64
import json
import os
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from tests.integration.gateway.rig import Rig, ask, begin_turn

from trunkline_bus.reader import read
from trunkline_gateway.methods import ALL
from trunkline_testkit import eventually
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError, subjects

START: dict[str, Any] = {"from": "start"}
ROLES = ["viewer", "participant", "approver", "owner"]


async def outcome(client: Client, method: str, /, **params: Any) -> str:
    try:
        await client.call(method, **params)
    except TrunklineError as error:
        return error.code
    return "ok"


async def test_every_method_against_every_role(rig: Rig) -> None:
    async with await rig.client() as owner:
        for role in ROLES:
            made = await owner.call("token.create", actor=f"a-{role}", role=role)
            async with await rig.client(token=made["token"]) as client:
                for name, method in ALL.items():
                    refused = await outcome(client, name, surely="unknown") == "forbidden"
                    assert refused == (ROLES.index(role) < ROLES.index(method.role)), (role, name)


SAMPLES: dict[str, dict[str, Any]] = {
    "ask.revoke": {"rule": "x"},
    "extension.emit": {"kind": "x"},
    "session.command": {"verb": "compact"},
    "session.hand_over": {"to": "terminal"},
    "session.native": {"method": "x"},
    "session.prompt": {"text": "x"},
    "session.rename": {"title": "x"},
    "session.rewind": {"to": "itm_x"},
    "session.run_command": {"name": "x"},
    "session.set_mode": {"mode": "x"},
    "session.set_model": {"model": "x"},
    "session.set_thinking": {"level": "low"},
    "terminal.input": {"viewer": "x", "text": "x"},
    "terminal.release": {"viewer": "x"},
    "terminal.resize": {"viewer": "x", "columns": 80, "rows": 24},
}


async def test_a_limited_token_reaches_its_session_and_nothing_else(rig: Rig) -> None:
    async with await rig.client() as owner, await rig.session() as mine, await rig.session() as other:
        begin_turn(mine)
        theirs = ask(other, "t1", begin_turn(other))
        await rig.settled(mine, other)
        made = await owner.call("token.create", actor="guest", role="owner", sessions=[mine.session])
        async with await rig.client(token=made["token"]) as client:
            assert [state["session"] for state in (await client.call("session.list"))["sessions"]] == [mine.session]
            assert (await client.call("ask.list"))["asks"] == []
            assert (await client.call("ask.list", session=other.session))["asks"] == []
            assert await outcome(client, "ask.answer", ask=theirs, behaviour="allow") == "forbidden"
            assert await outcome(client, "ask.link", ask=theirs) == "forbidden"
            assert await outcome(client, "event.list", session=other.session) == "forbidden"
            assert await outcome(client, "session.create", cwd="/", adapter="demo") == "forbidden"
            assert await outcome(client, "subscribe", session=other.session) == "forbidden"
            for name, method in ALL.items():
                if method.limited == "session":
                    code = await outcome(client, name, session=other.session, **SAMPLES.get(name, {}))
                    assert code == "forbidden", name
                elif method.limited == "never":
                    assert await outcome(client, name) == "forbidden", name
            await client.call("session.get", session=mine.session)
        assert await rig.commands(other.session) == []


async def test_a_limited_token_hears_of_all_its_sessions_and_of_no_other(rig: Rig) -> None:
    async with await rig.client() as owner, await rig.session() as mine, await rig.session() as other:
        begin_turn(mine)
        begin_turn(other)
        await rig.settled(mine, other)
        made = await owner.call("token.create", actor="guest", role="viewer", workspaces=[workspace(1)])
        async with await rig.client(token=made["token"]) as client:
            told = await client.call("subscribe", **START)
            # A session of that workspace which begins later, from its very first event on.
            async with await rig.session(workspace=workspace(1)) as later:
                begin_turn(other, 2)
                begin_turn(later)
                await client.wait("turn.started", session=later.session)
                heard = [(frame["payload"]["session"], frame["event"]) for frame in client.frames if "payload" in frame]
                assert {session for session, _ in heard} == {later.session}
                assert heard[0][1] == "session.created"
            snapshot = (await client.call("subscribe"))["snapshot"]
            assert [state["session"] for state in snapshot["sessions"]] == [later.session]
            assert snapshot["total"] == 1
        resumed = await owner.call("subscribe", cursor=told["cursor"])
        assert resumed["gap"]["reason"] == "scope_changed"


def workspace(number: int) -> str:
    return f"ws_{number:032x}"


async def test_a_token_ends_in_time_and_its_connection_with_it(rig: Rig) -> None:
    async with await rig.client() as owner:
        made = await owner.call("token.create", actor="guest", role="viewer", lasts=0.5)
        client = await rig.client(token=made["token"])
        await client.call("session.list")
        await eventually(lambda: client.closed)
        await client.close()
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await rig.client(token=made["token"])
        assert refused.value.status == 401
        assert [token["actor"] for token in (await owner.call("token.list"))["tokens"]] == ["owner"]
        for lasts in (0, -1, 1e12):
            assert await outcome(owner, "token.create", actor="x", role="viewer", lasts=lasts) == "bad_params"


async def test_a_sign_in_link_works_once(rig: Rig) -> None:
    key = base64.b64encode(os.urandom(32)).decode()
    async with await rig.client() as owner:
        link = await owner.call("sign_in.link", actor="ann", role="approver")
        assert link["path"] == f"/sign-in#code={link['code']}"
        origin = {"Origin": rig.running.url}
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            body = {"code": link["code"], "device": "Ann's phone", "key": key}

            async def sign_in() -> int:
                async with browser.post(f"{rig.running.url}/sign-in", json=body, headers=origin) as answer:
                    return answer.status

            # However many try at the same time, one gets in.
            assert sorted(await asyncio.gather(*(sign_in() for _ in range(5)))) == [200, 401, 401, 401, 401]
            listed = f"{rig.running.url}/api/v1/session.list"
            async with browser.post(listed, json={}, headers=origin) as answer:
                assert answer.status == 200
            # Another page's request carries the cookie too, but not our Origin; a program's carries none.
            async with browser.post(listed, json={}, headers={"Origin": "https://evil.example"}) as answer:
                assert (answer.status, (await answer.json(content_type=None))["code"]) == (403, "bad_origin")
            async with browser.post(listed, json={}) as answer:
                assert (answer.status, (await answer.json(content_type=None))["code"]) == (403, "bad_origin")
            async with browser.ws_connect(f"{rig.running.url}/ws", headers=origin) as ws:
                await ws.send_json({"type": "req", "id": 1, "method": "hello", "params": {"protocol": 1}})
                hello = (await ws.receive_json())["payload"]
                assert (hello["actor"], hello["role"]) == ("ann", "approver")
                devices = (await owner.call("device.list"))["devices"]
                assert [(device["id"], device["name"], device["actor"]) for device in devices] == [
                    (hello["device"], "Ann's phone", "ann")
                ]
                assert "key" not in devices[0]
                await owner.call("device.revoke", id=hello["device"])
                async with asyncio.timeout(5):
                    while (await ws.receive()).type is not aiohttp.WSMsgType.CLOSE:
                        pass
                assert ws.close_code == 1008
        stored = await read(rig.bus, "KV_trunk_tokens", ["$KV.trunk_tokens.>"])
        assert not any(link["code"].encode() in one.raw for one in stored)


async def test_a_cookie_is_for_the_browser_alone_and_ends_with_signing_out(rig: Rig) -> None:
    async with await rig.client() as owner:
        link = await owner.call("sign_in.link", actor="ann", role="viewer")
        origin = {"Origin": rig.running.url}
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            async with browser.post(
                f"{rig.running.url}/sign-in", json={"code": link["code"]}, headers=origin
            ) as answer:
                (cookie,) = answer.cookies.values()
                assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
            async with browser.post(f"{rig.running.url}/sign-out", headers=origin) as answer:
                assert answer.status == 200
            assert [token["actor"] for token in (await owner.call("token.list"))["tokens"]] == ["owner"]
            stolen = {**origin, "Cookie": f"{cookie.key}={cookie.value}"}
            async with browser.post(f"{rig.running.url}/api/v1/session.list", json={}, headers=stolen) as answer:
                assert answer.status == 401


async def test_a_link_that_is_too_old_signs_nobody_in(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_gateway.signin.CODE_S", -1.0)
    async with await rig.client() as owner, aiohttp.ClientSession() as browser:
        link = await owner.call("sign_in.link", actor="ann", role="viewer")
        for _ in range(2):
            async with browser.post(
                f"{rig.running.url}/sign-in", json={"code": link["code"]}, headers={"Origin": rig.running.url}
            ) as answer:
                assert answer.status == 401


async def test_devices_are_their_owners(rig: Rig) -> None:
    key = base64.b64encode(bytes(32)).decode()
    async with await rig.client() as owner:
        ann, bob = [await owner.call("token.create", actor=name, role="approver") for name in ("ann", "bob")]
        async with await rig.client(token=ann["token"]) as a, await rig.client(token=bob["token"]) as b:
            phone = await a.call("device.register", name="  Ann's\n phone ", key=key)
            assert phone["name"] == "Ann's phone"
            assert (await b.call("device.list"))["devices"] == []
            assert await outcome(b, "device.rename", id=phone["id"], name="mine") == "bad_params"
            assert await outcome(b, "device.revoke", id=phone["id"]) == "bad_params"
            assert (await a.call("device.rename", id=phone["id"], name="Phone"))["name"] == "Phone"
            for bad in ("", "x", base64.b64encode(bytes(31)).decode(), "*" * 44):
                assert await outcome(a, "device.register", name="x", key=bad) == "bad_params"


async def test_a_paired_device_has_a_token_and_loses_it_with_itself(rig: Rig) -> None:
    key, route, identity = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2, 3))
    wanted: dict[str, Any] = {"name": "phone", "key": key, "route": route, "identity": identity}
    async with await rig.client() as owner:

        async def invited(name: str = "") -> str:
            return (await owner.call("device.invite", actor="ann", role="approver", name=name))["invitation"]

        wanted["invitation"] = await invited()
        paired = await owner.call("device.pair", **wanted)
        assert await outcome(owner, "device.pair", **wanted) == "bad_pairing"
        wanted["invitation"] = "none"
        assert await outcome(owner, "device.pair", **wanted) == "bad_pairing"
        listed = (await owner.call("device.list"))["devices"]
        assert listed == [{name: value for name, value in paired.items() if name != "token"}]
        assert (listed[0]["role"], listed[0]["route"], listed[0]["identity"]) == ("approver", route, identity)
        assert re.fullmatch("([A-Z2-7]{4} ){5}[A-Z2-7]{4}", listed[0]["fingerprint"])
        assert key not in json.dumps(listed)
        for name in ("key", "route", "identity"):
            bad = {**wanted, "invitation": await invited(), name: key[:-4]}
            assert await outcome(owner, "device.pair", **bad) == "bad_params"
        other = base64.b64encode(bytes([9]) * 32).decode()
        for name in ("route", "identity"):
            known = {**wanted, "invitation": await invited(), name: other}
            assert await outcome(owner, "device.pair", **known) == "bad_params"
        assert await owner.call("device.seen", devices=[paired["id"], "dev_none"]) == {"seen": [paired["id"]]}
        await eventually(lambda: rig.running.gateway.devices.records.known[paired["id"]].seen)
        assert await owner.call("device.seen", devices=[paired["id"]]) == {"seen": []}
        async with await rig.client(token=paired["token"]) as phone:
            assert await outcome(phone, "device.pair", **wanted) == "forbidden"
            assert await outcome(phone, "device.invite", actor="ann", role="owner") == "forbidden"
            assert await outcome(phone, "device.seen", devices=[]) == "forbidden"
            await owner.call("device.revoke", id=paired["id"])
            await eventually(lambda: phone.closed)
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await rig.client(token=paired["token"])
        # What is known here may be older than the revocation: the device does not come back with a change.
        assert await rig.running.gateway.devices.seen(paired["id"]) is False
        assert (await owner.call("device.list"))["devices"] == []

    async def both() -> list[dict[str, Any]]:
        stored = await read(rig.bus, subjects.SYSTEM, [subjects.system("device")])
        notes = [json.loads(one.raw) for one in stored]
        notes = [one for one in notes if one["details"]["act"] != "invited"]
        return notes if len(notes) > 1 else []

    notes = await eventually(both)
    assert [(one["details"]["act"], one["details"]["device"]) for one in notes] == [
        ("paired", paired["id"]),
        ("revoked", paired["id"]),
    ]
    assert not any(paired["token"] in json.dumps(one) for one in notes)


async def test_who_sends_too_much_is_told_when_to_come_again_and_a_flood_is_ended(rig: Rig) -> None:
    await rig.restart_gateway(rate_messages=1.0, rate_burst=5.0)
    token = rig.token
    statuses = [(await rig.post("session.list", token=token))[0] for _ in range(6)]
    assert statuses == [200] * 5 + [429]
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
        async with http.post(f"{rig.running.url}/api/v1/session.list", json={}) as answer:
            problem = await answer.json(content_type=None)
            assert (answer.status, problem["code"], answer.headers["Retry-After"]) == (429, "rate_limited", "1")
            assert 0 < problem["details"]["retry_after"] <= 1
        async with http.ws_connect(f"{rig.running.url}/ws") as ws:
            for number in range(400):
                await ws.send_json({"type": "req", "id": number, "method": "session.list"})
            async with asyncio.timeout(10):
                while not ws.closed:
                    await ws.receive()
            assert ws.close_code == 1008
    # On this machine's own socket nobody is counted.
    async with await rig.client() as owner:
        for _ in range(50):
            await owner.call("session.list")


def unsigned(token: str) -> str:
    """The same claims, with a header that says that nobody has to sign them."""
    header = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT","kid":"rsa"}').rstrip(b"=").decode()
    return f"{header}.{token.split('.')[1]}."


class FakeProvider:
    """A fake OpenID Connect provider: its two documents, over real HTTP, and tokens signed with real keys."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {
            "rsa": rsa.generate_private_key(65537, 2048),
            "ec": ec.generate_private_key(ec.SECP256R1()),
        }
        self.url = ""
        self.fetched = 0

    def token(self, kid: str = "rsa", algorithm: str = "RS256", key: Any = None, **claims: Any) -> str:
        now = int(time.time())
        body: dict[str, Any] = {
            "iss": self.url,
            "aud": "trunkline",
            "sub": "ann@example.org",
            "iat": now,
            "exp": now + 60,
        }
        body |= {"trunkline_role": "approver", **claims}
        wanted = {name: value for name, value in body.items() if value is not None}
        return jwt.encode(wanted, key or self.keys[kid], algorithm=algorithm, headers={"kid": kid})

    async def _discovery(self, _: web.Request) -> web.Response:
        return web.json_response({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})

    async def _jwks(self, _: web.Request) -> web.Response:
        self.fetched += 1
        algorithms = {"rsa": RSAAlgorithm, "ec": ECAlgorithm}
        keys = [
            {**algorithms[kid].to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"}
            for kid, key in self.keys.items()
        ]
        return web.json_response({"keys": keys})

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._discovery)
        app.router.add_get("/keys", self._jwks)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            await runner.cleanup()


async def test_tokens_of_a_provider(rig: Rig) -> None:
    provider = FakeProvider()
    async with provider.running():
        await rig.restart_gateway(oidc_issuer=provider.url, oidc_audience="trunkline")

        async def status(token: str) -> tuple[int, str]:
            code, body = await rig.post("session.list", token=token)
            return code, body.get("code", "ok")

        assert await status(provider.token()) == (200, "ok")
        assert await status(provider.token("ec", "ES256")) == (200, "ok")
        assert provider.fetched == 1
        stranger = rsa.generate_private_key(65537, 2048)
        refused = {
            "signed by someone else": provider.token(key=stranger),
            "of a key that is not published": provider.token("other", key=stranger),
            "a secret in place of a key": provider.token(algorithm="HS256", key="x" * 32),
            "for others": provider.token(aud="else"),
            "of others": provider.token(iss="https://evil.example"),
            "expired": provider.token(exp=int(time.time()) - 60),
            "without an end": provider.token(exp=None),
            "from the future": provider.token(iat=int(time.time()) + 600),
            "unsigned": unsigned(provider.token()),
            "no token": "a.b.c",
        }
        for why, token in refused.items():
            assert await status(token) == (401, "unauthorized"), why
        assert await status(provider.token(trunkline_role="king")) == (403, "forbidden")
        assert await status(rig.token) == (200, "ok")
        async with await rig.client(token=provider.token(sub="bob", trunkline_role="viewer")) as client:
            assert await outcome(client, "token.list") == "forbidden"


async def test_a_provider_that_is_away_lets_nobody_in_and_nothing_else_is_hurt(rig: Rig) -> None:
    provider = FakeProvider()
    async with provider.running():
        token = provider.token()
    await rig.restart_gateway(oidc_issuer=provider.url, oidc_audience="trunkline")
    assert (await rig.post("session.list", token=token))[0] == 401
    assert (await rig.post("session.list", token=rig.token))[0] == 200
