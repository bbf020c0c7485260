"""The real CLI with a team in its terminal, seen through its hooks and its files; and hooks that nobody hears."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.live.test_hand_over import CASES, product_with

from trunkline_adapters.claude import hooks
from trunkline_agentkit.hooks import HookEndpoint
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.reader import read
from trunkline_fold.team import TeamsState, fold_teams, initial_teams
from trunkline_testkit import eventually
from trunkline_testkit.agents import require
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.offline import offline_env
from trunkline_testkit.product import Client, Product
from trunkline_wire import subjects
from trunkline_wire.blocks import text_of
from trunkline_wire.observed import ActivitySeen, MailSeen, Observation, TaskSeen, TeamSeen, decode_observation

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(600)]

PATIENCE = 120.0
ALLOWED = ["Agent", "SendMessage", "TaskCreate", "TaskUpdate"]


def calling(tool: str, **given: Any) -> str:
    return f"SCENARIO=tool TOOL={tool} INPUT={json.dumps(json.dumps(given))}"


class Watcher:
    """Everything that was observed, read from the log as an administrator."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def seen(self) -> list[Observation]:
        info = await self._bus.js.stream_info(subjects.OBSERVED)
        messages = [await self._bus.js.get_msg(subjects.OBSERVED, n) for n in range(1, info.state.last_seq + 1)]
        return [decode_observation(message.data or b"") for message in messages]

    async def folded(self, session: str) -> TeamsState:
        """The session's team events, folded from zero."""
        board = initial_teams(session)
        for stored in await read(self._bus, subjects.EVENTS, [subjects.event(session, "team")]):
            board = fold_teams(board, stored.event(), stored.sequence)
        return board

    async def until(self, found: Callable[[list[Observation]], object]) -> list[Observation]:
        async def check() -> list[Observation]:
            seen = await self.seen()
            assert found(seen), [one.data for one in seen][-5:]
            return seen

        return await eventually(check, PATIENCE)


@asynccontextmanager
async def watching(product: Product) -> AsyncGenerator[Watcher]:
    (seed,) = product.trunkline_home.glob("**/keys/admin.nk")
    async with Bus.open(BusSettings(url=product.state["nats"], seed_file=seed, name="watcher")) as bus:
        yield Watcher(bus)


async def fired(client: Client, session: str, event: str, **said: str) -> dict[str, Any]:
    """What the agent told a hook."""

    def is_it(frame: dict[str, Any]) -> bool:
        data = frame["data"]
        return data["hook_event"] == event and all(data["input"].get(name) == value for name, value in said.items())

    frame = await client.wait("hook.fired", is_it, session=session, within=PATIENCE)
    return frame["data"]["input"]


async def test_a_team_in_a_terminal(
    tmp_path: Path, project: Path, api: ScriptedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"allow": ALLOWED}}))
    teams = {"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1", "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"}
    program = {"TRUNKLINE_PROGRAM_PTY_CLAUDE": str(require("claude"))}

    def environment(agent: str, home: Path, url: str) -> dict[str, str]:
        return offline_env(agent, home, url) | teams | program

    monkeypatch.setattr("tests.live.test_hand_over.offline_env", environment)
    async with product_with(CASES["claude"], api, home, project) as product, watching(product) as watcher:
        code, out, err = await product.cli("hooks", "install", "claude")
        assert code == 0, err

        async def heard() -> bool:
            return (await product.cli("hooks", "status", "claude"))[0] == 0

        await eventually(heard, PATIENCE)
        async with await product.client() as client:
            created = await client.call(
                "session.create",
                adapter="pty",
                agent="claude",
                cwd=str(project),
                options={
                    "hold": "tmux",
                    "native": {"command": ["claude", "--permission-mode", "default", "--teammate-mode", "in-process"]},
                },
            )
            session: str = created["session"]
            await client.subscribe(session, start="start")
            await a_team_at_work(client, session, project)

            def done(seen: list[Observation]) -> bool:
                active = [one.data for one in seen if isinstance(one.data, ActivitySeen)]
                return bool(active) and active[-1].messages >= 4

            seen = await watcher.until(done)
            assert {one.session for one in seen} == {session}
            check_what_was_seen(seen)
            name = [one.data.team for one in seen if isinstance(one.data, TeamSeen)][-1]
            before = await a_member_leaves(client, session, name)
            # The screen shows the dialog, in a hook it is told of: the hook opens no ask of its own.
            assert {e["data"]["name"] for e in client.events("permission.requested", session)} == {"approval"}
            await client.call("session.close", session=session)
            await client.wait("session.closed", session=session, within=PATIENCE)
            # Today's teams have no end of their own: they end with their lead, which takes its files away.
            ended = await on_the_board(client, name, lambda team: team["ended"] is not None)
            assert {part: ended[part] for part in ("tasks", "answered", "requests")} == {
                part: before[part] for part in ("tasks", "answered", "requests")
            }
            assert [(one["name"], one["status"]) for one in ended["members"]] == [("alpha", "shutdown")]
            again = await watcher.folded(session)
            assert {one.id: one.status for one in again.teams[name].tasks.values()} == {"1": "in_progress"}
            assert [(one["id"], one["status"]) for one in ended["tasks"]] == [("1", "in_progress")]
            assert (again.teams[name].ended, again.teams[name].updated) == (ended["ended"], ended["updated"])
        code, out, err = await product.cli("verify", session)
        assert code == 0, f"{out}\n{err}"
        code, out, err = await product.cli("hooks", "uninstall", "claude")
        assert code == 0, err
        assert json.loads((home / ".claude" / "settings.json").read_text()) == {"permissions": {"allow": ALLOWED}}


async def a_team_at_work(client: Client, session: str, project: Path) -> None:
    async def say(text: str) -> None:
        await client.call("session.prompt", session=session, text=text, within=PATIENCE)

    await say(calling("TaskCreate", subject="Write alpha", description="write it"))
    told = await fired(client, session, "TaskCreated", task_id="1")
    assert told["task_subject"] == "Write alpha"
    claims = calling("TaskUpdate", taskId="1", owner="alpha", status="in_progress")
    await say(calling("Agent", name="alpha", description="a mate", subagent_type="general-purpose", prompt=claims))
    told = await fired(client, session, "TeammateIdle", teammate_name="alpha")
    assert told["agent_id"].startswith("aalpha-")
    await say(calling("SendMessage", to="alpha", summary="run it", message="SCENARIO=bash CMD=touch by-alpha"))
    told = await fired(client, session, "PermissionRequest", tool_name="Bash")
    assert told["tool_input"]["command"] == "touch by-alpha"
    asked = await client.wait("permission.requested", session=session, within=PATIENCE)
    assert "touch by-alpha" in str(asked["data"]["input"])
    await client.call("ask.answer", ask=asked["data"]["ask"], behaviour="allow")
    await eventually((project / "by-alpha").exists, PATIENCE)


async def on_the_board(client: Client, name: str, found: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The team as the gateway shows it, once `found` finds in it what it looks for."""

    async def check() -> dict[str, Any] | None:
        team = await client.call("team.get", team=name)
        return team if found(team) else None

    return await eventually(check, PATIENCE)


async def a_member_leaves(client: Client, session: str, name: str) -> dict[str, Any]:
    """The whole handshake: asked to shut down, the member agrees, and is off the lead's list."""
    team = await on_the_board(client, name, lambda team: [one["status"] for one in team["members"]] == ["idle"])
    assert [(one["id"], one["status"], one["owner"]) for one in team["tasks"]] == [("1", "in_progress", "alpha")]
    assert (team["requests"], team["asks"], team["ended"]) == ([], [], None)
    request = {"type": "shutdown_request", "reason": "thanks SCENARIO=leave now"}
    text = calling("SendMessage", to="alpha", summary="leave", message=request)
    await client.call("session.prompt", session=session, text=text, within=PATIENCE)
    team = await on_the_board(client, name, lambda team: [one["status"] for one in team["members"]] == ["shutdown"])
    shut = [(one["kind"], one["member"], one["approve"]) for one in team["answered"] if one["kind"] == "shutdown"]
    assert shut == [("shutdown", "alpha", True)]
    assert team["requests"] == []
    return team


def check_what_was_seen(seen: list[Observation]) -> None:
    team = [one.data for one in seen if isinstance(one.data, TeamSeen)][-1]
    assert [(one.name, one.pane) for one in team.members] == [("team-lead", None), ("alpha", None)]
    tasks = [one.data.task for one in seen if isinstance(one.data, TaskSeen)]
    assert (tasks[0].id, tasks[0].subject, tasks[0].status, tasks[0].owner) == ("1", "Write alpha", "pending", None)
    assert (tasks[-1].status, tasks[-1].owner) in {("in_progress", "alpha"), ("completed", "alpha")}
    mail = {(one.data.sender, one.data.to) for one in seen if isinstance(one.data, MailSeen)}
    assert mail & {("alpha", "team-lead"), ("team-lead", "alpha")}
    said = [text_of(one.data.text) for one in seen if isinstance(one.data, MailSeen)]
    assert all(said)
    work = [one.data for one in seen if isinstance(one.data, ActivitySeen)][-1]
    assert (work.name, work.team) == ("alpha", team.team)
    assert work.usage is not None
    # The scripted model counts 100 tokens and one for each message of the conversation so far.
    assert work.usage.input > 100 * work.messages


@pytest.mark.parametrize("receiver", ["away", "silent"])
async def test_a_receiver_that_is_down_blocks_no_agent(tmp_path: Path, api: ScriptedApi, receiver: str) -> None:
    """Nobody listens; somebody listens and never answers: the turn is the same, and later by no more than its hooks' limits."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if receiver == "silent":
            listener.listen(64)
        endpoint = HookEndpoint(port=listener.getsockname()[1], secret="s" * 43)
        without, plain = await turn(tmp_path / "plain", api, None)
        hooked, taken = await turn(tmp_path / "hooked", api, endpoint)
    assert (without["result"], without["num_turns"]) == (hooked["result"], hooked["num_turns"])
    assert hooked["is_error"] is False
    print(f"{receiver}: {plain:.2f} s without hooks, {taken:.2f} s with")  # noqa: T201  # the figure is the point
    # PostToolUse, Stop and SessionEnd are called one after the other.
    assert taken < plain + 5 + (3 * hooks.TIMEOUT_S if receiver == "silent" else 0)


async def turn(home: Path, api: ScriptedApi, endpoint: HookEndpoint | None) -> tuple[dict[str, Any], float]:
    """A turn that creates a task: its result, and its seconds."""
    environment = offline_env("claude", home, api.url) | {"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"}
    (home / ".claude").mkdir(parents=True)
    settings: dict[str, Any] = {"permissions": {"allow": ALLOWED}}
    if endpoint is not None:
        settings = hooks.with_hooks(settings, endpoint)
    (home / ".claude" / "settings.json").write_text(json.dumps(settings))
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        str(require("claude")),
        "-p",
        calling("TaskCreate", subject="One", description="one"),
        "--output-format",
        "json",
        env=environment,
        cwd=home,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 0
    return json.loads(out), time.monotonic() - began
