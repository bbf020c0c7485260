"""A real session goes from its agent's protocol into the agent's own terminal and back, with its conversation intact."""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from trunkline_testkit import eventually
from trunkline_testkit.agents import require
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.offline import offline_env
from trunkline_testkit.product import Client, Product, running

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

PATIENCE = 90.0


@asynccontextmanager
async def product_with(agent: str, api: ScriptedApi, home: Path, project: Path) -> AsyncGenerator[Product]:
    """The product, with an agent whose user has been through its first start and trusts the project."""
    environment = offline_env(agent, home, api.url) | {f"TRUNKLINE_PROGRAM_{agent.upper()}": str(require(agent))}
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [environment["ANTHROPIC_API_KEY"]], "rejected": []},
        "projects": {str(project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
    }
    (home / ".claude.json").write_text(json.dumps(known))
    # The path of a unix socket is short.
    with tempfile.TemporaryDirectory(prefix="tl") as temporary:
        async with running(home, environment | {"TMPDIR": temporary}) as product:
            yield product


def texts(client: Client, session: str, type_: str) -> list[str]:
    found = ["".join(b.get("text", "") for b in e["data"]["content"]) for e in client.events(type_, session)]
    return [text for text in found if text]


async def type_in(attach: str, said: str) -> None:
    """Types as somebody does who has attached with that command, and sees what stands there before Enter."""
    server = attach.split()[:3]

    async def shown() -> bool:
        screen = await _run(*server, "capture-pane", "-p", "-t", "agent")
        assert said in screen, screen
        return True

    await _run(*server, "send-keys", "-t", "agent", "-l", said)
    await eventually(shown, PATIENCE)
    await _run(*server, "send-keys", "-t", "agent", "Enter")


async def _run(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return out.decode()


@pytest.mark.parametrize("agent", ["claude"])
async def test_structured_terminal_structured(agent: str, tmp_path: Path, project: Path, api: ScriptedApi) -> None:
    async with product_with(agent, api, tmp_path / "home", project) as product:
        await there_and_back(product, agent, project, api)


async def there_and_back(product: Product, agent: str, project: Path, api: ScriptedApi) -> None:
    async with await product.client() as client:
        created = await client.call("session.create", adapter=agent, cwd=str(project))
        session: str = created["session"]
        await client.subscribe(session, start="start")
        await client.call("session.prompt", session=session, text="SAY=first answer.")
        await client.wait("turn.completed", within=PATIENCE)

        code, out, err = await product.cli("hand-over", session, "--to", "terminal", within=PATIENCE)
        assert code == 0, err
        attach = (await client.call("session.get", session=session))["state"]["attach"]
        assert out == f"{session} is in its terminal; attach with:\n{attach}\n"
        # from anywhere
        await client.call("session.prompt", session=session, text="SAY=second answer.")
        await client.wait("turn.completed", within=PATIENCE, count=2)
        # a worker that dies leaves the terminal as it is, and the next one takes it up
        dead = product.kill("adapters")
        await product.restarted("adapters", dead)
        await client.wait("session.resumed", lambda e: e["data"]["how"] == "adopted", within=PATIENCE)
        # by the hands of somebody who has attached
        await type_in(attach, "SAY=third answer.")

        async def answered() -> bool:
            # Of so short a turn the screen shows no work: what was said is told once the terminal has ended.
            screen = await _run(*attach.split()[:3], "capture-pane", "-p", "-t", "agent")
            return screen.count("third answer.") == 2

        await eventually(answered, PATIENCE)

        code, out, err = await product.cli("hand-over", session, "--to", "structured", within=PATIENCE)
        assert (code, out) == (0, f"{session} is taken back\n"), err
        await client.call("session.prompt", session=session, text="SAY=fourth answer.")
        await client.wait("message.assistant", lambda e: "fourth answer." in str(e["data"]), within=PATIENCE)

        answers = ["first answer.", "second answer.", "third answer.", "fourth answer."]
        assert texts(client, session, "message.assistant") == answers
        assert sorted(texts(client, session, "message.user")) == sorted(f"SAY={answer}" for answer in answers)
    last = api.requests[-1]
    assert (*last.earlier, last.prompt) == tuple(f"SAY={answer}" for answer in answers)
    code, out, err = await product.cli("verify", session)
    assert code == 0, f"{out}\n{err}"
