"""The worker's image with each of the agents that `just smoke` runs: built from its lock, started as narrow as Compose starts it,
and one turn with a command that somebody allows. `just compose-test` runs it; Claude Code's own is test_compose.py.
"""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.deploy.stack import Stack, missing
from tests.deploy.test_compose import narrow

from trunkline_testkit import eventually
from trunkline_testkit.agents import AGENTS
from trunkline_testkit.ports import free_port

pytestmark = [pytest.mark.compose, pytest.mark.timeout(900), pytest.mark.asyncio(loop_scope="module")]

PARTS = ("nats", "gateway", "permissions", "projector", "model")
CONTAINED = {"codex": "untrusted/danger-full-access"}
"""The mode in which an agent leaves the sandbox to its container: within one it can't make its own."""
WRITE_SETTINGS = """
import json, sys
from pathlib import Path
from trunkline_testkit.offline import offline_settings
print(json.dumps(offline_settings(sys.argv[1], Path.home(), sys.argv[2])))
"""


class Told:
    """What Compose is told of the worker, an agent at a time: its image, and the variables of the file for agents."""

    def __init__(self, directory: Path) -> None:
        self.file, self.variables = directory / "worker.json", directory / "agents.env"
        self.say("none", {})

    def say(self, agent: str, variables: dict[str, str]) -> None:
        worker = {"image": f"trunkline-worker:test-{agent}", "build": {"args": {"AGENTS": agent}}}
        self.file.write_text(json.dumps({"services": {"worker": worker}}))
        self.variables.write_text("".join(f"{name}={value}\n" for name, value in variables.items()))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return Told(tmp_path_factory.mktemp("agents"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(told: Told) -> AsyncGenerator[Stack]:
    if reason := missing():
        pytest.skip(f"needs a running Docker with Compose: {reason}")
    stack = Stack("trunkline-test-agents", free_port(), [told.file], TRUNKLINE_AGENTS_ENV=str(told.variables))
    await stack.compose("down", "--volumes", "--timeout", "5")
    try:
        await stack.compose("build", "gateway", within=900)
        await stack.compose("up", "--detach", "--no-build", *PARTS, within=300)
        yield stack
    finally:
        await stack.compose("down", "--volumes", "--timeout", "20")


@pytest.mark.parametrize("agent", ["codex", "copilot", "gemini", "opencode"])
async def test_an_agent_of_the_image_works(stack: Stack, told: Told, agent: str) -> None:
    told.say(agent, {})
    await stack.compose("build", "worker", within=600)
    arguments = ("python", "-c", WRITE_SETTINGS, agent, "http://model:8000")
    said = await stack.compose("run", "--rm", "--no-deps", "-T", "worker", *arguments)
    told.say(agent, json.loads(said))
    await stack.compose("up", "--detach", "--no-build", "--force-recreate", "worker", within=120)
    await stack.healthy("worker")
    narrow("worker", await stack.inspect("worker"))

    made = f"/projects/made-{agent}"
    async with await stack.client() as client:

        async def announced() -> list[str | None]:
            found = (await client.call("agent.list"))["agents"]
            ways = [way for one in found if one["name"] == agent for way in one["ways"]]
            return [way["version"] for way in ways if way["error"] is None]

        # Some are asked for their version at the start of a session alone.
        assert {*await eventually(announced, 30)} <= {None, AGENTS[agent].version}

        options = {"mode": CONTAINED[agent]} if agent in CONTAINED else {}
        session = (await client.call("session.create", agent=agent, cwd="/projects", options=options))["session"]
        await client.subscribe(session, start="start")
        await client.call("session.prompt", session=session, text=f"SCENARIO=bash CMD=touch {made}")
        ask = (await client.wait("permission.requested", within=120))["data"]["ask"]
        await client.call("ask.answer", session=session, ask=ask, behaviour="allow")
        done = await client.wait("turn.completed", within=90)
        assert done["data"]["outcome"] == "success"
        assert done["agent"]["version"] == AGENTS[agent].version
    await stack.compose("exec", "-T", "worker", "test", "-f", made)
