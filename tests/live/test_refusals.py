"""What goes wrong gets a stable code and a text that says what to do; nothing hangs."""

import json
import stat
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest

from trunkline_testkit.product import Client, Product, running
from trunkline_wire import ERRORS, TrunklineError
from trunkline_wire.ids import new_session_id

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def product(tmp_path: Path) -> AsyncGenerator[Product]:
    """Without any agent, but a `claude` that exits at once."""
    broken = tmp_path / "claude"
    broken.write_text("#!/bin/sh\necho 'the licence ran out' >&2\nexit 3\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    programs = {"TRUNKLINE_PROGRAM_CLAUDE": str(broken), "TRUNKLINE_PROGRAM_CODEX": str(tmp_path / "nothing")}
    async with running(tmp_path / "home", programs) as product:
        yield product


async def test_what_is_refused_says_why(product: Product, tmp_path: Path) -> None:
    await frames_that_are_none(product)
    await who_may_not_come_in(product)
    await requests_that_can_not_be_served(product, tmp_path)
    await a_verb_that_the_agent_lacks(product, tmp_path)
    await an_agent_that_is_not_installed(product, tmp_path)
    await an_agent_that_ends_at_once(product, tmp_path)


async def code_of(client: Client, method: str, **params: object) -> str:
    with pytest.raises(TrunklineError) as refused:
        await client.call(method, within=40, **params)
    assert len(refused.value.message) > 10
    return refused.value.code


async def requests_that_can_not_be_served(product: Product, tmp_path: Path) -> None:
    async with await product.client() as client:
        unknown = new_session_id()
        assert await code_of(client, "session.nothing") == "unknown_method"
        assert await code_of(client, "session.prompt", session=unknown, text="hello") == "unknown_session"
        assert await code_of(client, "session.prompt", session="../etc", text="hello") == "bad_id"
        assert await code_of(client, "session.prompt", session=unknown) == "bad_params"
        assert await code_of(client, "session.get", session=unknown, sesion=1) == "bad_params"
        assert await code_of(client, "session.create", adapter="nobody", cwd=str(tmp_path)) == "unknown_adapter"
        assert await code_of(client, "session.create", adapter="demo", cwd="/no/such/place") == "bad_directory"
        assert await code_of(client, "ask.answer", ask="ask_" + "0" * 32, behaviour="allow") == "unknown_ask"
        assert await code_of(client, "subscribe", cursor="made-up") == "bad_cursor"

        session = (await client.call("session.create", adapter="demo", cwd=str(tmp_path)))["session"]
        assert await code_of(client, "session.prompt", session=session, text="x" * 900_000) == "too_large"
        assert await code_of(client, "session.command", session=session, verb="levitate", args={}) == "bad_params"
        # still there
        assert (await client.call("session.get", session=session))["state"]["session"] == session


async def a_verb_that_the_agent_lacks(product: Product, tmp_path: Path) -> None:
    async with await product.client() as client:
        session = (await client.call("session.create", adapter="demo", cwd=str(tmp_path)))["session"]
        await client.subscribe(session, start="start")
        await client.call("session.command", session=session, verb="hand_over", args={"to": "terminal"})
        rejected = await client.wait("command.rejected")
        assert rejected["data"]["error"]["code"] == "unsupported"
        assert "terminal" in json.dumps(rejected["data"]["error"])


async def an_agent_that_ends_at_once(product: Product, tmp_path: Path) -> None:
    async with await product.client() as client:
        session = (await client.call("session.create", adapter="claude", cwd=str(tmp_path)))["session"]
        await client.subscribe(session, start="start")
        await client.call("session.prompt", session=session, text="hello")
        failed = await client.wait("command.failed", within=60)
        assert failed["data"]["error"]["code"] == "agent_failed"
        assert "the licence ran out" in json.dumps(client.events("error")) + json.dumps(failed)


async def an_agent_that_is_not_installed(product: Product, tmp_path: Path) -> None:
    async with await product.client() as client:
        with pytest.raises(TrunklineError) as refused:
            await client.call("session.create", adapter="codex", cwd=str(tmp_path))
        assert refused.value.code == "agent_not_found"
        assert "install" in refused.value.message


async def frames_that_are_none(product: Product) -> None:
    async with await product.client() as client:
        for text in ("", "not json", "[1, 2]", '{"type":"req"}', '{"type":"res","id":"1"}', "\x00"):
            await client.send_raw(text)
            assert (await client.call("session.list"))["total"] == 0


async def who_may_not_come_in(product: Product) -> None:
    url = product.state["gateway"]
    token = {"Authorization": f"Bearer {product.token}"}

    async def get(path: str, headers: dict[str, str]) -> tuple[int, str]:
        async with aiohttp.ClientSession() as http, http.post(f"{url}{path}", json={}, headers=headers) as answer:
            body = await answer.json(content_type=None)
            return answer.status, body.get("code", "")

    assert await get("/api/v1/session.list", token) == (200, "")
    for headers, code in (
        ({}, "unauthorized"),
        ({"Authorization": "Bearer wrong"}, "unauthorized"),
        ({**token, "Origin": "https://evil.example"}, "bad_origin"),
        ({**token, "Host": "evil.example"}, "bad_origin"),
    ):
        assert await get("/api/v1/session.list", headers) == (int(ERRORS[code].status), code)
    status, _ = await get(f"/api/v1/session.list?token={product.token}", {})
    assert status in (400, 401)
    logs = "".join(p.read_text(errors="replace") for p in (product.trunkline_home / "logs").iterdir())
    assert product.token not in logs
