"""Terminals live, through the whole product: who looks, who types, and what becomes of viewers when parts die."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.integration.terminals.looking import Looking

from trunkline_testkit import eventually
from trunkline_testkit.product import Client, Product, running
from trunkline_wire import TrunklineError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
async def product(tmp_path: Path) -> AsyncGenerator[Product]:
    async with running(tmp_path / "home", {"TRUNKLINE_GATEWAY_SHELLS": "true"}) as product:
        yield product


async def shell(client: Client, directory: Path) -> str:
    created = await client.call("session.create", adapter="pty", agent="shell", cwd=str(directory))
    session: str = created["session"]
    await client.call("terminal.open", session=session)
    return session


async def look(product: Product, session: str, token: str | None = None, **hello: Any) -> Looking:
    viewer = await Looking.connect(product.state["gateway"], session, token=token or product.token, **hello)
    await viewer.until(lambda: viewer.paintings > 0)
    return viewer


async def test_several_look_and_one_types(product: Product, tmp_path: Path) -> None:
    async with await product.client() as client:
        session = await shell(client, tmp_path)
        made = await client.call("token.create", role="viewer", actor="guest")
        async with await look(product, session) as one, await look(product, session, made["token"]) as guest:
            await one.take()
            await one.type("echo he'l'lo wörld\r")
            await one.shows("hello wörld")
            await guest.shows("hello wörld")
            # Who asks whether the connection lives is answered, also who may only look.
            await guest.say("ping")
            await guest.until(lambda: guest.said[-1] == {"type": "pong"})
            # A viewer sees, and that is all.
            await guest.type("echo no\r")
            await guest.say("take")
            await guest.say("resize", columns=10, rows=5)
            await guest.until(lambda: guest.errors.count("forbidden") == 3)
            # Who types sets the size, for everybody.
            await one.say("resize", columns=100, rows=30)
            await guest.until(lambda: guest.state.get("columns") == 100)
            await one.type("stty size\r")
            await guest.shows("30 100")
            # Another one has to take the keyboard, which the first one hears.
            async with await look(product, session, history=100) as two:
                await two.say("take")
                await two.until(lambda: "terminal_taken" in two.errors)
                await two.take(force=True)
                await one.until(lambda: not one.writes)
                await one.type("echo no\r")
                await two.type("echo mi'n'e\r")
                await one.shows("mine")
            # It is free again once that one has left.
            await one.take()
            shown = await client.call("terminal.screen", session=session)
            assert (shown["columns"], shown["rows"]) == (100, 30)
            assert one.screen.text == guest.screen.text
            assert "echo no" not in one.screen.text
            await client.call("terminal.close", session=session)
            await one.until(lambda: one.said[-1]["type"] == "lost")


async def test_methods_type_without_looking(product: Product, tmp_path: Path) -> None:
    async with await product.client(tcp=True) as client:
        session = await shell(client, tmp_path)
        viewer = (await client.call("terminal.take", session=session))["viewer"]
        await client.call("terminal.resize", session=session, viewer=viewer, columns=90, rows=20)
        await client.call("terminal.input", session=session, viewer=viewer, text="echo by'-'method > done\r")
        await eventually((tmp_path / "done").exists)
        with pytest.raises(TrunklineError) as refused:
            await client.call("terminal.input", session=session, viewer="x-other", text="no")
        assert refused.value.code == "terminal_taken"
        await client.call("terminal.release", session=session, viewer=viewer)
        assert [one["session"] for one in (await client.call("terminal.list"))["terminals"]] == [session]


async def test_an_owner_may_open_a_shell_where_an_agent_works(product: Product, tmp_path: Path) -> None:
    async with await product.client() as client:
        agent = (await client.call("session.create", adapter="demo", cwd=str(tmp_path)))["session"]
        with pytest.raises(TrunklineError) as refused:
            await client.call("terminal.open", session=agent)
        assert refused.value.code == "no_terminal"
        opened = await client.call("terminal.shell", session=agent)
        async with await look(product, opened["session"]) as viewer:
            await viewer.take()
            await viewer.type("touch here\r")
            await eventually((tmp_path / "here").exists)


async def test_viewers_come_back_after_gateway_and_worker(product: Product, tmp_path: Path) -> None:
    async with await product.client() as client:
        session = await shell(client, tmp_path)
    viewer = await look(product, session, viewer="mine")
    async with viewer:
        await viewer.take()
        await viewer.type("echo sti'l'l here\r")
        await viewer.shows("still here")
        old = product.kill("gateway")
        await viewer.until(lambda: viewer.said[-1]["type"] == "closed")
        await product.restarted("gateway", old)
    async with await _again(product, session) as viewer:
        # The screen is its owner's, who lives.
        await viewer.shows("still here")
        await viewer.take()
        old = product.kill("adapters")
        await viewer.until(lambda: viewer.said[-1]["type"] == "lost")
        await product.restarted("adapters", old)
        async with await product.client() as client:
            await client.call("terminal.open", session=session)
        await viewer.until(lambda: viewer.state.get("running") is True and not viewer.writes, 40)
        await viewer.take()
        await viewer.type("echo a new o'n'e\r")
        await viewer.shows("a new one", 40)
        assert "still here" not in viewer.screen.text


async def _again(product: Product, session: str) -> Looking:
    """A viewer, once the gateway answers."""

    async def connected() -> Looking | None:
        try:
            return await look(product, session, viewer="mine")
        except (OSError, aiohttp.ClientError, ValueError):
            return None

    async with asyncio.timeout(30):
        return await eventually(connected, 30)


async def test_whatever_is_printed_or_typed_the_session_goes_on(product: Product, tmp_path: Path) -> None:
    (tmp_path / "garbage").write_bytes(bytes(range(256)) * 40 + b"\x1b[?1049h\x1b[99999;99999H\x1b]0;" + b"\xff" * 300)
    async with await product.client() as client:
        session = await shell(client, tmp_path)
        async with await look(product, session) as viewer:
            await viewer.until(lambda: viewer.screen.text)
            await viewer.take()
            await viewer.type("cat garbage; printf '\\033c'\r")
            await viewer.type(b"\xff\xfe\x00\x1b[200~pasted\x1b[201~\x15\x03")
            await viewer.say_raw("{")
            await viewer.until(lambda: viewer.said[-1]["type"] == "closed")
        async with await look(product, session) as viewer:
            await viewer.take()
            await viewer.say("resize", columns=-1, rows=99999)
            await viewer.say("resize", columns=70, rows=20)
            await viewer.type("\x03\r\recho 日本 e\u0301'n'd\r")
            await viewer.shows("日本 \xe9nd")
