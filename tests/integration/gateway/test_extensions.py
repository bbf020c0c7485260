"""Extensions through the gateway: found, called, refused, gone."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import nats
import pytest
from nats.aio.client import Client as Nats
from nats.micro import add_service
from nats.micro.request import Request
from nats.micro.service import EndpointConfig
from tests.integration.gateway.rig import Rig

from trunkline_gateway.roles import Scope
from trunkline_testkit import eventually


@asynccontextmanager
async def bot(rig: Rig, **metadata: str) -> AsyncGenerator[Nats]:
    """The extension `bot` with the method `hello`, which says who called."""
    connection = await nats.connect(rig.server.url)

    async def hello(request: Request) -> None:
        params = json.loads(request.data)
        if params.get("fail"):
            await request.respond_error("teapot", "no coffee here")
            return
        if params.get("garbage"):
            await request.respond(b"{")
            return
        assert request.headers is not None
        await request.respond(json.dumps({"actor": request.headers["Trunk-Actor"], "params": params}).encode())

    service = await add_service(connection, name="ext-bot", version="1.2.3")
    await service.add_endpoint(
        EndpointConfig(name="hello", subject="trunk.ext.bot.hello", handler=hello, metadata=metadata)
    )
    try:
        yield connection
    finally:
        await service.stop()
        await connection.close()


async def test_an_endpoint_is_a_method_with_the_role_that_it_names(rig: Rig) -> None:
    gateway = rig.running.gateway
    viewer, _ = await gateway.tokens.create("eve", "viewer")
    async with bot(rig, role="participant"):
        status, answer = await rig.post("ext.bot.hello", {"n": 1}, token=rig.token)
        assert (status, answer["params"]) == (200, {"n": 1})
        assert answer["actor"]
        status, problem = await rig.post("ext.bot.hello", {}, token=viewer)
        assert (status, problem["code"]) == (403, "forbidden")
        async with await rig.client() as client:
            assert "ext.bot.hello" in (await client.call("hello", protocol=1))["methods"]
            listed = (await client.call("extension.list"))["extensions"]
            assert [(one["name"], one["version"]) for one in listed] == [("bot", "1.2.3")]
            assert listed[0]["methods"] == [{"name": "ext.bot.hello", "role": "participant", "limited": "never"}]
            assert listed[0]["statistics"][0]["num_requests"] == 1
    status, problem = await rig.post("ext.bot.hello", {}, token=rig.token)
    assert (status, problem["code"]) == (404, "unknown_extension")
    assert gateway.extensions.known == {}


async def test_without_a_role_it_is_the_owners(rig: Rig) -> None:
    token, _ = await rig.running.gateway.tokens.create("amy", "approver")
    async with bot(rig):
        status, problem = await rig.post("ext.bot.hello", {}, token=token)
        assert (status, problem["code"]) == (403, "forbidden")


async def test_a_role_that_does_not_exist_is_refused(rig: Rig) -> None:
    async with bot(rig, role="root"):
        status, problem = await rig.post("ext.bot.hello", {}, token=rig.token)
        assert (status, problem["code"]) == (404, "unknown_method")
        status, answer = await rig.post("extension.list", {}, token=rig.token)
        assert "'root'" in answer["extensions"][0]["refused"][0]


@pytest.mark.parametrize("params", [{"fail": True}, {"garbage": True}])
async def test_its_errors_have_our_code(rig: Rig, params: dict[str, Any]) -> None:
    async with bot(rig, role="viewer"):
        status, problem = await rig.post("ext.bot.hello", params, token=rig.token)
        assert (status, problem["code"], problem["details"]["extension"]) == (502, "extension_failed", "bot")
        if "fail" in params:
            assert (problem["detail"], problem["details"]["reason"]) == ("no coffee here", "teapot")


async def test_a_limited_token_reaches_only_what_is_for_its_sessions(rig: Rig) -> None:
    mine, other = await rig.session(), await rig.session()
    await rig.settled(mine, other)
    token, _ = await rig.running.gateway.tokens.create("bob", "owner", scope=Scope(sessions=(mine.session,)))
    async with bot(rig, role="viewer"):
        status, problem = await rig.post("ext.bot.hello", {"session": mine.session}, token=token)
        assert (status, problem["code"]) == (403, "forbidden")
    async with bot(rig, role="viewer", limited="session"):
        await rig.running.gateway.extensions.look()
        assert (await rig.post("ext.bot.hello", {"session": mine.session}, token=token))[0] == 200
        for params in ({"session": other.session}, {}):
            assert (await rig.post("ext.bot.hello", params, token=token))[0] in {400, 403}
    await mine.close()
    await other.close()


async def test_it_is_found_without_being_called(rig: Rig) -> None:
    async with bot(rig, role="viewer"):
        await eventually(lambda: "bot" in rig.running.gateway.extensions.known, 10)


async def ask(connection: Nats, right: str, method: str, **params: Any) -> dict[str, Any]:
    reply = await connection.request(f"trunk.api.bot.{right}.{method}", json.dumps(params).encode(), timeout=10)
    return json.loads(reply.data)


async def test_an_extension_asks_the_gateway_over_nats(rig: Rig) -> None:
    writer = await rig.session()
    await rig.settled(writer)
    (rig.home / "trunkline.toml").write_text('[extensions.bot]\ncolour = "green"\n[extensions.other]\nsecret = "x"\n')
    async with bot(rig) as connection:
        assert (await ask(connection, "itself", "extension.config"))["payload"]["config"] == {"colour": "green"}
        listed = await ask(connection, "viewer", "session.list")
        assert [one["session"] for one in listed["payload"]["sessions"]] == [writer.session]
        refused = await ask(connection, "viewer", "session.prompt", session=writer.session, text="hi")
        assert refused["error"]["code"] == "forbidden"
        sent = await ask(connection, "participant", "session.prompt", session=writer.session, text="hi")
        assert sent["ok"]
        ((_, command),) = await rig.commands(writer.session)
        assert command.source is not None
        assert (command.source.actor, command.source.via) == ("ext:bot", "nats")
        assert (await ask(connection, "itself", "session.list"))["error"]["code"] == "forbidden"
    await writer.close()
