"""Real programs in their terminals, on a scripted model API: aider, and Gemini's own interface with its dialogs."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.contract.running import Running

from trunkline_adapters.pty.adapter import PtyAdapter
from trunkline_agentkit import Progress, local_start
from trunkline_agentkit.environment import INCARNATION_MARK
from trunkline_agentkit.sweep import marked
from trunkline_testkit import eventually
from trunkline_testkit.agents import require
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.offline import offline_env
from trunkline_wire.asks import AskDecided, PermissionRequested
from trunkline_wire.blocks import join_text, text_of
from trunkline_wire.session import SessionOptions
from trunkline_wire.turn import MessageAssistant, TerminalClosed, TerminalScreen, TurnCompleted

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(600)]

PATIENCE = 120.0
"""Seconds that one step may take."""


@asynccontextmanager
async def terminal(agent: str, home: Path, api: ScriptedApi, **options: Any) -> AsyncGenerator[Running[Any]]:
    require(agent)
    project = home / "project"
    project.mkdir(parents=True)
    source = offline_env(agent, home, api.url)
    adapter = PtyAdapter(source)
    start = local_start(adapter, project, agent=agent, source=source, temporary=home, options=SessionOptions(**options))
    start.environment.update({name: value for name, value in source.items() if name != "PATH"})
    running = Running(await adapter.create(start))
    reading = asyncio.create_task(running.read())
    try:
        yield running
    finally:
        await running.session.close(grace=10)
        await reading
    assert await asyncio.to_thread(marked, {INCARNATION_MARK: start.incarnation}) == []


def screens(agent: Running[Any]) -> list[str]:
    """What was streamed of the screen."""
    shown = [out.data for native in agent.natives for out in native.out if isinstance(out, Progress)]
    return [text_of(screen.text) for screen in shown if isinstance(screen, TerminalScreen)]


def answers(agent: Running[Any]) -> list[str]:
    return [join_text(message.content) for message in agent.all(MessageAssistant)]


async def test_a_conversation_with_aider(tmp_path: Path, scripted_api: ScriptedApi) -> None:
    """A prompt, its answer as the screen shows it while it comes, Ctrl-C, a second turn, its own way out."""
    async with terminal("aider", tmp_path, scripted_api) as agent:
        await agent.say("SAY=Alpha beta gamma.")
        assert (await agent.wait(TurnCompleted, 1, PATIENCE)).outcome == "success"
        assert answers(agent) == ["Alpha beta gamma."]

        await agent.say("SCENARIO=slow N=400", "cmd_2")
        await eventually(lambda: any("piece 3" in screen for screen in screens(agent)), PATIENCE)
        assert len(agent.all(TurnCompleted)) == 1
        await agent.session.interrupt()
        assert (await agent.wait(TurnCompleted, 2, PATIENCE)).outcome == "interrupted"

        await agent.say("SAY=Again.", "cmd_3")
        assert (await agent.wait(TurnCompleted, 3, PATIENCE)).outcome == "success"
        assert answers(agent)[-1] == "Again."

        await agent.say("/exit", "cmd_4")
        assert (await agent.wait(TerminalClosed, 1, PATIENCE)).exit_code == 0
        assert len(agent.all(TurnCompleted)) == 4


async def test_gemini_asks_in_its_terminal(tmp_path: Path, scripted_api: ScriptedApi) -> None:
    async with terminal("gemini", tmp_path, scripted_api) as agent:
        for number, (file, behaviour) in enumerate({"allowed": "allow", "refused": "deny"}.items(), 1):
            await agent.say(f"SCENARIO=bash CMD=touch {file}", f"cmd_{number}")
            asked = await agent.wait(PermissionRequested, number, PATIENCE)
            assert (asked.name, asked.kind) == ("approval", "execute")
            assert f"touch {file}" in str(asked.input)
            await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, behaviour=behaviour, by="me"))  # type: ignore[arg-type]
            await agent.wait(TurnCompleted, number, PATIENCE)
            assert (tmp_path / "project" / file).exists() == (behaviour == "allow")
