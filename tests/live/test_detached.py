"""The real CLI held on purpose: every part of the product is killed under a turn, and the agent goes on."""

from pathlib import Path

import psutil
import pytest

from trunkline_agentkit.death import HELD
from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.sweep import marked
from trunkline_testkit import eventually
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.product import Client, Product

pytestmark = [pytest.mark.live, pytest.mark.long, pytest.mark.timeout(240)]


def held(session: str) -> set[int]:
    return {pid for pid, _ in marked({SESSION_MARK: f"{HELD}{session}"})}


def program(session: str, name: str) -> int:
    """The pid of the held program of that name."""
    (found,) = [pid for pid in held(session) if name in " ".join(psutil.Process(pid).cmdline()[:2])]
    return found


def said(client: Client) -> list[str]:
    texts = [
        "".join(block.get("text", "") for block in event["data"]["content"] if block["type"] == "text")
        for event in client.events("message.assistant")
    ]
    return [text for text in texts if text]


async def kill(product: Product, part: str) -> None:
    if part == "supervisor":
        assert product.process is not None
        product.process.kill()
        await product.process.wait()
        await product.start()
    else:
        await product.restarted(part, product.kill(part))


async def again(product: Product, session: str) -> Client:
    client = await product.client_when_up()
    await client.subscribe(session, start="start")
    return client


async def test_a_detached_claude_goes_on_whatever_is_killed(product: Product, project: Path, api: ScriptedApi) -> None:
    client = await product.client()
    created = await client.call("session.create", adapter="claude", cwd=str(project), options={"hold": "detached"})
    session: str = created["session"]
    await client.subscribe(session, start="start")
    await client.call("session.prompt", session=session, text="SCENARIO=hold")
    await api.wait_holding()
    await client.wait("turn.started")
    agent = program(session, "claude")
    for part in ("adapters", "gateway", "nats-server", "supervisor"):
        await kill(product, part)
        assert agent in held(session)
        assert api.holding, "the agent waits for its model all the while"
    await client.close()
    client = await again(product, session)
    try:
        await client.wait("session.resumed", lambda event: event["data"]["how"] == "adopted", within=40)
        api.release()
        done = await client.wait("turn.completed")
        assert done["data"]["outcome"] == "success"
        assert said(client) == ["Holding. Released."], said(client)

        # An ask is open when the worker dies, and decided while there is none.
        await client.call("session.prompt", session=session, text=f"SCENARIO=bash CMD=touch {project / 'made'}")
        asked = await client.wait("permission.requested")
        old = product.kill("adapters")
        await client.call("ask.answer", session=session, ask=asked["data"]["ask"], behaviour="allow")
        await product.restarted("adapters", old)
        done = await client.wait("turn.completed", count=2)
        assert done["data"]["outcome"] == "success"
        assert (project / "made").exists()
        assert len(client.events("ask.delivered")) == 1
        assert client.events("ask.withdrawn") == []
        assert client.events("command.failed") == []
        assert program(session, "claude") == agent
        code, out, err = await product.cli("verify", session)
        assert code == 0, f"{out}\n{err}"

        # What was stopped in order is held on purpose, and is found again.
        await client.close()
        await product.stop(spare=held(session))
        assert agent in held(session)
        await product.start()
        client = await again(product, session)
        await client.call("session.prompt", session=session, text="SAY=again")
        await client.wait("turn.completed", count=3)
        assert said(client)[-1] == "again"
        assert program(session, "claude") == agent
        await client.call("session.close", session=session)
        await client.wait("session.closed")
        await eventually(lambda: held(session) == set(), 10)
    finally:
        await client.close()
    code, out, err = await product.cli("verify", session)
    assert code == 0, f"{out}\n{err}"
