"""The relay by itself, as the README starts it: who has a token that its command made is let in. `just compose-test` runs it."""

import asyncio
import json
import resource
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from tests.deploy.stack import Stack, missing
from tests.deploy.test_compose import narrow

from trunkline_seal.control import HOST_PATH
from trunkline_testkit.ports import free_port

pytestmark = [pytest.mark.compose, pytest.mark.timeout(900), pytest.mark.asyncio(loop_scope="module")]

NAME = "relay.example.org"


async def token_for_a_host(file: Path) -> str:
    """As the README says: a new token, its hash in the file, which the container's user may read."""
    process = await asyncio.create_subprocess_exec(
        "trunkline", "relay", "token", file, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    await asyncio.to_thread(file.chmod, 0o644)
    return said.decode().split()[-1]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a file of Compose for a machine on which no more files may be open than this process may open."""
    found = tmp_path_factory.mktemp("relay")
    files = min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    (found / "limits.json").write_text(json.dumps({"services": {"relay": {"ulimits": {"nofile": files}}}}))
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def relay(directory: Path) -> AsyncGenerator[tuple[Stack, str]]:
    """It, and the token of a host."""
    if reason := missing():
        pytest.skip(f"needs a running Docker with Compose: {reason}")
    tokens, port = directory / "relay-tokens", free_port()
    token = await token_for_a_host(tokens)
    stack = Stack(
        "trunkline-test-relay",
        port,
        [directory / "limits.json"],
        base=["deploy/docker/relay.yml"],
        TRUNKLINE_RELAY_PORT=str(port),
        TRUNKLINE_RELAY_TOKENS=str(tokens),
        TRUNKLINE_RELAY_NAME=NAME,
    )
    await stack.compose("down", "--volumes", "--timeout", "5")
    try:
        await stack.compose("up", "--detach", "--build", within=600)
        await stack.healthy("relay")
        yield stack, token
    finally:
        await stack.compose("down", "--volumes", "--timeout", "20")


async def first_word(stack: Stack, token: str) -> dict[str, object]:
    """What the relay says to a host that comes."""
    headers = {"Authorization": f"Bearer {token}", "Host": NAME}
    async with aiohttp.ClientSession() as http, http.ws_connect(f"{stack.url}{HOST_PATH}", headers=headers) as ws:
        return json.loads(await ws.receive_str(timeout=30))


async def test_a_relay_lets_in_who_has_a_token(relay: tuple[Stack, str]) -> None:
    stack, token = relay
    narrow("relay", await stack.inspect("relay"))
    assert (await first_word(stack, token))["type"] == "challenge"
    assert (await first_word(stack, token[:-4] + "0000"))["code"] == "unauthorized"


async def test_a_relay_answers_to_its_own_name_alone(relay: tuple[Stack, str]) -> None:
    stack, _ = relay
    async with aiohttp.ClientSession() as http:
        for name, status in ((NAME, 404), ("elsewhere.example.org", 403)):
            async with http.get(f"{stack.url}/nothing", headers={"Host": name}) as answer:
                assert answer.status == status, name
