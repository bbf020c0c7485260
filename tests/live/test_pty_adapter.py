"""Real programs in their terminals, on a scripted model API: aider, and Gemini's, Claude's and Codex' own dialogs."""

import asyncio
import json
import shutil
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.contract.running import Running

from trunkline_adapters.pty.adapter import PtyAdapter
from trunkline_agentkit import Progress, local_start
from trunkline_agentkit.death import HELD
from trunkline_agentkit.environment import INCARNATION_MARK, SESSION_MARK
from trunkline_agentkit.sweep import marked
from trunkline_testkit import eventually
from trunkline_testkit.agents import require
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.offline import KEY, offline_env
from trunkline_wire.asks import AskDecided, PermissionRequested
from trunkline_wire.blocks import join_text, text_of
from trunkline_wire.session import SessionOptions
from trunkline_wire.turn import MessageAssistant, TerminalClosed, TerminalScreen, TurnCompleted

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(600)]

PATIENCE = 120.0
"""Seconds that one step may take."""


@asynccontextmanager
async def terminal(
    agent: str,
    home: Path,
    api: ScriptedApi,
    settings: Mapping[str, str] | None = None,
    without: Collection[str] = (),
    **options: Any,
) -> AsyncGenerator[Running[Any]]:
    """`settings`: files below its home that are other than `offline_env` writes them; `without`: variables of its."""
    require(agent)
    project = home / "project"
    project.mkdir(parents=True, exist_ok=True)
    source = {name: value for name, value in offline_env(agent, home, api.url).items() if name not in without}
    for name, content in (settings or {}).items():
        (home / name).write_text(content)
    adapter = PtyAdapter(source)
    temporary = Path(tempfile.mkdtemp(prefix="tl-"))  # short, for tmux's socket
    chosen = SessionOptions(**options)
    start = local_start(adapter, project, agent=agent, source=source, temporary=temporary, options=chosen)
    start.environment.update({name: value for name, value in source.items() if name not in {"PATH", "TMPDIR"}})
    running = Running(await adapter.create(start))
    reading = asyncio.create_task(running.read())
    try:
        yield running
    finally:
        await running.session.close(grace=10)
        await reading
        shutil.rmtree(temporary)
    for marks in {INCARNATION_MARK: start.incarnation}, {SESSION_MARK: f"{HELD}{start.session}"}:
        assert await asyncio.to_thread(marked, marks) == []


async def answer(agent: Running[Any], number: int, behaviour: str) -> PermissionRequested:
    """Answers the ask of that number."""
    asked = await agent.wait(PermissionRequested, number, PATIENCE)
    await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, behaviour=behaviour, by="me"))  # type: ignore[arg-type]
    return asked


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


async def test_aider_asks_with_letters(tmp_path: Path, scripted_api: ScriptedApi) -> None:
    """Whether to add a file that a prompt names, to run a command, to show its model what that printed."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").touch()
    for command in ("init", "-q"), ("add", "."):
        await asyncio.to_thread(subprocess.run, ["git", *command], cwd=project, check=True)
    command = ["aider", "--git", "--edit-format", "diff"]
    async with terminal("aider", tmp_path, scripted_api, native={"command": command}) as agent:
        await agent.say(r'Look at notes.txt and SAY="```bash\necho made > by-aider; cat by-aider\n```\n"')
        asked = await answer(agent, 1, "deny")
        assert (asked.title, asked.input) == ("Add file to the chat?", "notes.txt")
        asked = await answer(agent, 2, "allow")
        assert (asked.title, asked.input) == ("Run shell command?", "echo made > by-aider; cat by-aider")
        await answer(agent, 3, "deny")
        assert (await agent.wait(TurnCompleted, 1, PATIENCE)).outcome == "success"
        assert (project / "by-aider").exists()


@pytest.mark.parametrize("hold", ["child", "tmux"])
async def test_gemini_asks_in_its_terminal(tmp_path: Path, scripted_api: ScriptedApi, hold: str) -> None:
    async with terminal("gemini", tmp_path, scripted_api, hold=hold) as agent:
        for number, (file, behaviour) in enumerate({"allowed": "allow", "refused": "deny"}.items(), 1):
            await agent.say(f"SCENARIO=bash CMD=touch {file}", f"cmd_{number}")
            asked = await answer(agent, number, behaviour)
            assert (asked.name, asked.kind) == ("approval", "execute")
            assert f"touch {file}" in str(asked.input)
            await agent.wait(TurnCompleted, number, PATIENCE)
            assert (tmp_path / "project" / file).exists() == (behaviour == "allow")


async def test_gemini_asks_whether_it_trusts_the_folder(tmp_path: Path, scripted_api: ScriptedApi) -> None:
    asking = {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": True}}}
    settings = {".gemini/settings.json": json.dumps(asking)}
    # It begins anew with what it may load now.
    without = {"GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_CLI_NO_RELAUNCH"}
    async with terminal("gemini", tmp_path, scripted_api, settings, without) as agent:
        asked = await answer(agent, 1, "allow")
        assert asked.name == "trust"
        await agent.say("SAY=Alpha beta gamma.")
        assert (await agent.wait(TurnCompleted, 1, PATIENCE)).outcome == "success"
        assert answers(agent) == ["Alpha beta gamma."]


@pytest.mark.parametrize("behaviour", ["allow", "deny"])
async def test_claude_asks_whether_it_trusts_the_folder(
    tmp_path: Path, scripted_api: ScriptedApi, behaviour: str
) -> None:
    """A new folder is asked about before anything else; without trust it leaves."""
    begun = {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": [KEY], "rejected": []}}
    async with terminal("claude", tmp_path, scripted_api, {".claude.json": json.dumps(begun)}) as agent:
        assert (await answer(agent, 1, behaviour)).name == "trust"
        if behaviour == "deny":
            await agent.wait(TerminalClosed, 1, PATIENCE)
            return
        await agent.say("SAY=Alpha beta gamma.")
        assert (await agent.wait(TurnCompleted, 1, PATIENCE)).outcome == "success"
        assert answers(agent) == ["Alpha beta gamma."]


@pytest.mark.parametrize("behaviour", ["allow", "deny"])
async def test_codex_asks_whether_it_trusts_the_folder(
    tmp_path: Path, scripted_api: ScriptedApi, behaviour: str
) -> None:
    """A folder with settings of its own is asked about, where the user's say nothing of what it may do."""
    folder = tmp_path / "project" / ".codex"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('model = "gpt-5.5"\n')
    offline_env("codex", tmp_path, scripted_api.url)
    usual = (tmp_path / ".codex" / "config.toml").read_text().splitlines()
    asking = [line for line in usual if not line.startswith(("approval_policy", "sandbox_mode"))]
    async with terminal("codex", tmp_path, scripted_api, {".codex/config.toml": "\n".join(asking)}) as agent:
        asked = await answer(agent, 1, behaviour)
        assert (asked.name, asked.input) == ("trust", str(tmp_path / "project"))
        if behaviour == "allow":
            await agent.say("SAY=Alpha beta gamma.")
            assert (await agent.wait(TurnCompleted, 1, PATIENCE)).outcome == "success"
            assert answers(agent) == ["Alpha beta gamma."]
