"""Trunkline as `docker compose up` starts it: images from this tree, the real Claude Code in its container, and no part
whose death loses anything. `just compose-test` runs it; the scripted model is a container beside the others.
"""

import re
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from tests.deploy.stack import SERVICES, Stack, missing

from trunkline_testkit.ports import free_port
from trunkline_testkit.product import Client

pytestmark = [pytest.mark.compose, pytest.mark.timeout(1800), pytest.mark.asyncio(loop_scope="module")]

_MADE = "/projects/made"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncGenerator[Stack]:
    if reason := missing():
        pytest.skip(f"needs a running Docker with Compose: {reason}")
    stack = Stack("trunkline-test", free_port())
    await stack.compose("down", "--volumes", "--timeout", "5")
    try:
        await stack.compose("build", "gateway", "worker", within=1500)
        await stack.compose("up", "--detach", "--no-build", within=300)
        await stack.healthy(*SERVICES)
        yield stack
    finally:
        await stack.compose("down", "--volumes", "--timeout", "20")


async def start_session(client: Client) -> str:
    created = await client.call("session.create", agent="claude", cwd="/projects")
    await client.subscribe(created["session"], start="start")
    return created["session"]


async def test_it_comes_up_and_prints_a_link_to_the_app(stack: Stack) -> None:
    said = await stack.compose("logs", "--no-log-prefix", "sign-in")
    link = re.search(r"http://localhost:\d+(/\S+)", said)
    assert link is not None, said
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{stack.url}{link[1]}") as answer:
            assert answer.status == 200
        async with http.get(stack.url) as answer:
            page = await answer.text()
        scripts = re.findall(r'src="(/[^"]+\.js)"', page)
        assert scripts, f"the app was not built into the image:\n{page}"
        async with http.get(f"{stack.url}{scripts[0]}") as answer:
            assert answer.status == 200


def narrow(service: str, found: dict[str, Any]) -> None:
    """Fails where a container may do more than it has to."""
    assert found["Config"]["User"] == "10001:10001", service
    host = found["HostConfig"]
    assert host["ReadonlyRootfs"] is True, service
    assert (host["CapDrop"], host["CapAdd"]) == (["ALL"], None), service
    assert "no-new-privileges:true" in host["SecurityOpt"], service
    assert host["PidsLimit"] > 0, service
    assert host["Memory"] > 0, service


async def test_no_container_may_do_more_than_it_has_to(stack: Stack) -> None:
    for service in SERVICES:
        found = await stack.inspect(service)
        narrow(service, found)
        host = found["HostConfig"]
        published = {port for port, at in (host["PortBindings"] or {}).items() if at}
        assert published == ({"30086/tcp"} if service == "gateway" else set()), service
        for binding in (host["PortBindings"] or {}).values():
            assert binding[0]["HostIp"] == "127.0.0.1"


async def test_claude_works_and_is_approved(stack: Stack) -> None:
    async with await stack.client() as client:
        session = await start_session(client)
        await client.call("session.prompt", session=session, text=f"SCENARIO=bash CMD=touch {_MADE}")
        asked = await client.wait("permission.requested", within=90)
        assert (asked["data"]["name"], asked["data"]["input"]["command"]) == ("Bash", f"touch {_MADE}")
        answer = await client.call("ask.answer", session=session, ask=asked["data"]["ask"], behaviour="allow")
        assert answer["outcome"] == "decided"
        done = await client.wait("turn.completed", within=60)
        assert done["data"]["outcome"] == "success"
    await stack.compose("exec", "-T", "worker", "test", "-f", _MADE)
    await stack.verify()


async def test_the_command_line_in_a_container_reaches_the_worker(stack: Stack) -> None:
    """It runs on the gateway's host, which has no worker."""
    assert "hello" in await stack.cli("run", "claude", "SAY=hello", "--wait", "--title", "From the shell")
    assert "From the shell" in await stack.cli("ls")
    await stack.verify()


@pytest.mark.parametrize("service", SERVICES)
async def test_no_killed_container_loses_anything(stack: Stack, service: str) -> None:
    """Killed while a question is open, and while a text streams: the session goes on, or says how its turn ended."""
    client = await stack.client()
    try:
        session = await start_session(client)
        made = f"{_MADE}-{service}"
        await client.call("session.prompt", session=session, text=f"SCENARIO=bash CMD=echo x >> {made}")
        ask = (await client.wait("permission.requested", within=90))["data"]["ask"]
        client = await _killed(stack, service, client, session)
        if service == "worker":
            # The claim of the next owner ends what a dead agent asked.
            ended = await client.wait("turn.completed", within=90)
            assert ended["data"]["outcome"] == "aborted"
            assert (await client.call("ask.list", session=session))["asks"] == []
            said = await stack.compose("exec", "-T", "worker", "sh", "-c", f"test ! -e {made} && echo unmade")
            assert said == "unmade\n", "nobody allowed it"
        else:
            answer = await client.call("ask.answer", session=session, ask=ask, behaviour="allow")
            assert answer["outcome"] == "decided"
            ended = await client.wait("turn.completed", within=90)
            assert ended["data"]["outcome"] == "success"
            assert await stack.compose("exec", "-T", "worker", "cat", made) == "x\n", "it ran once"

        await client.call("session.prompt", session=session, text="SCENARIO=slow N=60 DELAY_MS=100")
        await client.wait("message.delta", lambda event: "piece" in event["data"]["text"], within=60)
        client = await _killed(stack, service, client, session)
        ended = await client.wait("turn.completed", count=2, within=90)
        assert ended["data"]["outcome"] == ("aborted" if service == "worker" else "success")

        await client.call("session.prompt", session=session, text="SAY=still here")
        ended = await client.wait("turn.completed", count=3, within=90)
        assert ended["data"]["outcome"] == "success"
    finally:
        await client.close()
    await stack.healthy(*SERVICES)
    await stack.verify()


async def _killed(stack: Stack, service: str, client: Client, session: str) -> Client:
    """A client that has the session's events from the start, after the container was killed and started again."""
    await stack.kill(service)
    await stack.start(service)
    await stack.healthy(service)
    if not client.closed:
        return client
    await client.close()
    client = await stack.client()
    await client.subscribe(session, start="start")
    return client


async def test_a_copy_is_made_while_everything_runs(stack: Stack) -> None:
    """As the nightly job does it: by the one who may change streams, below a root that can't be written."""
    script = "trunkline backup /tmp/copy && trunkline restore --check /tmp/copy"
    said = await stack.compose("run", "--rm", "--no-deps", "-T", "topology", "sh", "-euc", script)
    assert "intact" in said


async def test_a_stop_is_orderly_and_everything_is_there_afterwards(stack: Stack) -> None:
    async with await stack.client() as client:
        before = await client.call("session.list")
    await stack.compose("stop", within=150)
    for service in SERVICES:
        state = (await stack.inspect(service))["State"]
        assert (state["ExitCode"], state["OOMKilled"]) == (0, False), f"{service} did not end by itself: {state}"
    await stack.compose("up", "--detach", "--no-build", within=300)
    await stack.healthy(*SERVICES)
    async with await stack.client() as client:
        after = await client.call("session.list")
        kept, had = ({one["session"]: one["turns"] for one in listed["sessions"]} for listed in (after, before))
        assert kept == had
    await stack.verify()
