"""Connecting to an agent's WebSocket: tokens, addresses, nobody there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from tests.integration.agentkit.rpc_server import Server

from trunkline_agentkit.lines import connect_websocket
from trunkline_wire import TrunklineError

TOKEN = "capability-" + "0" * 20


@pytest_asyncio.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def test_a_server_that_wants_a_token_gets_that_of_the_file(stack: AsyncExitStack, tmp_path: Path) -> None:
    server = Server(tmp_path / "agent.sock")
    await server.start(stack, TOKEN)
    file = tmp_path / "token"
    with pytest.raises(TrunklineError) as refused:
        await connect_websocket(server.url)
    assert refused.value.code == "agent_auth"
    file.write_text("something-else\n")
    with pytest.raises(TrunklineError) as refused:
        await connect_websocket(server.url, token_file=file)
    assert refused.value.code == "agent_auth"
    assert "something-else" not in str(refused.value)
    file.write_text(TOKEN + "\n")
    lines = await connect_websocket(server.url, token_file=file)
    stack.push_async_callback(lines.close)
    await lines.write_line({"id": 1, "method": "echo", "params": "hello"})
    assert await anext(aiter(lines.lines())) == b'{"id":1,"result":"hello"}'


@pytest.mark.parametrize("content", ["", "  \n", "two words", "line\nbreak", "ümlaut"])
async def test_a_file_without_a_token_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    for path in (file, tmp_path / "missing"):
        with pytest.raises(TrunklineError, match=path.name) as refused:
            await connect_websocket("ws://127.0.0.1:1/", token_file=path)
        assert refused.value.code == "bad_settings"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "ws://",
        "127.0.0.1:80",
        "ws://user:pass@127.0.0.1/",
        "ws://127.0.0.1/?token=x",
        "ws://[::1/",
        "ws://agents.example/",
    ],
)
async def test_an_address_that_is_none_or_shows_a_secret_is_refused(tmp_path: Path, url: str) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    with pytest.raises(TrunklineError) as refused:
        await connect_websocket(url, token_file=file)
    assert refused.value.code == "bad_params"
    assert "pass" not in refused.value.message.replace("password", "")


async def test_nobody_there_is_an_error_that_says_so(tmp_path: Path) -> None:
    for path in (tmp_path / "none.sock", None):
        with pytest.raises(TrunklineError, match="is it running") as refused:
            await connect_websocket("ws://127.0.0.1:1/", unix_socket=path)
        assert refused.value.code == "agent_failed"


async def test_a_server_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    path = tmp_path / "mute.sock"
    server = await asyncio.start_unix_server(mute, str(path))
    async with server:
        with pytest.raises(TrunklineError) as refused:
            await connect_websocket("ws://localhost/", unix_socket=path, deadline=0.2)
    assert refused.value.code == "timeout"
