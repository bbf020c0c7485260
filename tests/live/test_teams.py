"""Teams of the real Claude Code, in both dialects, on a scripted model API: the board after every step, and from zero again."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.contract.claude_running import Running
from tests.unit.teams.playing import SESSION, Playing

from trunkline_adapters.claude.adapter import ClaudeAdapter
from trunkline_adapters.claude.team_watch import ClaudeTeamFiles
from trunkline_agentkit import local_start
from trunkline_fold.team import Team, encode_teams
from trunkline_testkit import eventually
from trunkline_testkit.agents import agent_env, require
from trunkline_testkit.model_api import ScriptedApi
from trunkline_wire import Data, TrunklineError
from trunkline_wire.asks import AskDecided, PermissionRequested
from trunkline_wire.session import SessionOptions
from trunkline_wire.subjects import EVENTS
from trunkline_wire.turn import ToolCompleted

pytestmark = [pytest.mark.live, pytest.mark.long]

SWITCHES = {
    "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1",
    "CLAUDE_CODE_ENABLE_TASKS": "1",
    "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1",
}
"""What makes the CLI offer its tools of teams and tasks: 2.1.332, 2.1.101, both."""


def using(tool: str, **given: Any) -> str:
    """A prompt that makes the model call this tool."""
    return f"SCENARIO=tool TOOL={tool} INPUT={json.dumps(json.dumps(given))}"


def _ours(native: str | None, pid: int | None) -> str:
    del native, pid
    return SESSION


class Lead:
    """The lead's session, and the board of all that it has said and its files have shown so far."""

    def __init__(self, agent: Running, files: Path) -> None:
        self._agent = agent
        self._files = ClaudeTeamFiles(files)
        self._turns = 0
        self._read = 0
        self.playing = Playing()

    async def watch(self) -> None:
        """Looks at the files as a worker does: often, for mail may stand in them for a moment only."""
        while True:
            while sights := await asyncio.to_thread(self._files.look, _ours):
                self._follow()
                for sight in sights:
                    self.playing.observe(sight.data, native_session=sight.native_session, session=SESSION)
                await self._agent.session.team_changed()
            await asyncio.sleep(0.02)

    async def decides(self, ask: str, **decision: Any) -> None:
        await self._agent.session.decide(ask, AskDecided(ask=ask, by="user", **decision))

    async def uses(self, tool: str, /, **given: Any) -> None:
        """The lead calls a tool, which has a result after this."""
        self._turns += 1
        before = len(self._mine())
        await self._agent.say(using(tool, **given), f"cmd_{self._turns}")
        await eventually(lambda: len(self._mine()) > before, 30)
        self._follow()

    def _mine(self) -> list[Any]:
        return [fact for fact in self._agent.facts(ToolCompleted) if fact.lane is None]

    def _follow(self) -> None:
        facts = self._agent.facts(Data)
        for fact in facts[self._read :]:
            self.playing.fact(fact.data, item=fact.item, lane=fact.lane)
        self._read = len(facts)

    @property
    def team(self) -> Team:
        self._follow()
        return self.playing.team()

    @property
    def statuses(self) -> dict[str, str]:
        return {name: member.status for name, member in self.team.members.items()}

    @property
    def tasks(self) -> dict[str, tuple[str, str | None, list[str]]]:
        return {id: (task.status, task.owner, task.blocked_by) for id, task in self.team.tasks.items()}

    async def sees(self, **statuses: str) -> None:
        await eventually(lambda: self.statuses == statuses, 30)

    async def shows(self, tasks: dict[str, tuple[str, str | None, list[str]]]) -> None:
        await eventually(lambda: self.tasks == tasks, 30)

    async def hears(self, *messages: tuple[str, str | None, str]) -> None:
        def said() -> list[tuple[str, str | None, str]]:
            return [(one.sender, one.to, one.content) for one in self.team.messages]

        await eventually(lambda: said() == [*messages], 30)

    async def asked(self, count: int) -> list[Any]:
        await eventually(lambda: len(self._agent.facts(PermissionRequested)) >= count, 30)
        return self._agent.facts(PermissionRequested)

    def again(self) -> bytes:
        """The board of the same facts and observations, heard from the first on."""
        playing = Playing()
        for what in self.playing.inputs:
            if what.stream == EVENTS:
                playing.sequence = what.sequence
            playing.feed(what)
        return encode_teams(playing.board)


@asynccontextmanager
async def lead(version: str, folder: Path, api: ScriptedApi) -> AsyncGenerator[Lead]:
    project = folder / "project"
    project.mkdir()
    source = agent_env(folder / "home", api.url, TRUNKLINE_PROGRAM_CLAUDE=str(require(version)))
    adapter = ClaudeAdapter(source)
    options = SessionOptions(environment=SWITCHES)
    agent = Running(await adapter.create(local_start(adapter, project, source=source, options=options)))
    reading = asyncio.create_task(agent.read())
    leads = Lead(agent, folder / "home" / ".claude")
    watching = asyncio.create_task(leads.watch())
    try:
        yield leads
        assert not watching.done()
        assert leads.again() == encode_teams(leads.playing.board)
        assert leads.playing.caveats == []
    finally:
        watching.cancel()
        await asyncio.wait({watching})
        await agent.session.close(grace=3)
        await reading


async def test_named_agents_of_todays_dialect(tmp_path: Path, scripted_api: ScriptedApi) -> None:
    async with lead("claude", tmp_path, scripted_api) as it:
        await it.uses("TaskCreate", subject="Write a", description="a", activeForm="Writing a")
        await it.uses("TaskCreate", subject="Write b", description="b")
        await it.uses("TaskUpdate", taskId="2", addBlockedBy=["1"])
        assert it.playing.written == []

        agent = {"subagent_type": "general-purpose"}
        await it.uses("Agent", name="ann", description="ann", prompt="SAY=Ann is here.", **agent)
        await it.sees(ann="idle")
        assert it.team.members["ann"].kind == "subagent"
        assert it.tasks == {"1": ("pending", None, []), "2": ("pending", None, ["1"])}
        says = using("SendMessage", to="main", message="hello from bob", summary="hello")
        await it.uses("Agent", name="bob", description="bob", prompt=says, **agent)
        await it.sees(ann="idle", bob="idle")
        said = it.team.messages[-1]
        assert (said.sender, said.to, said.content) == ("bob", "team-lead", "hello from bob")
        assert it.team.agents == ["ann", "bob"]
        assert it.team.usage.input == sum(one.usage.input for one in it.team.members.values() if one.usage)

        await it.uses("TaskUpdate", taskId="1", status="in_progress", owner="ann")
        assert it.tasks["1"] == ("in_progress", "ann", [])
        await it.sees(ann="active", bob="idle")
        await it.uses("SendMessage", to="ann", message="SAY=Going on.", summary="go on")
        await it.sees(ann="idle", bob="idle")
        assert (it.team.messages[-1].sender, it.team.messages[-1].to) == ("team-lead", "ann")
        await it.uses("TaskUpdate", taskId="1", status="completed")
        assert it.tasks == {"1": ("completed", "ann", []), "2": ("pending", None, ["1"])}
        await it.uses("TaskUpdate", taskId="2", status="deleted")
        assert list(it.tasks) == ["1"]

        await it.uses("SendMessage", to="bob", message={"type": "shutdown_request", "reason": "thanks"})
        (request,) = it.team.open.values()
        assert (request.kind, request.member, request.reason) == ("shutdown", "bob", "thanks")


async def test_teammates_of_the_classic_dialect(tmp_path: Path, scripted_api: ScriptedApi) -> None:
    """Teammates of which the lead's stream tells nothing but its own calls: what they do stands in their files."""
    async with lead("claude-2.1.101", tmp_path, scripted_api) as it:
        await it.uses("TeamCreate", team_name="lab", description="Two writers")
        assert (it.team.name, it.team.description, it.team.lead) == ("lab", "Two writers", "team-lead@lab")
        await it.uses("TaskCreate", subject="Write a", description="a", activeForm="Writing a")
        await it.uses("TaskCreate", subject="Write b", description="b")
        await it.uses("TaskUpdate", taskId="2", addBlockedBy=["1"])
        assert it.tasks == {"1": ("pending", None, []), "2": ("pending", None, ["1"])}
        assert it.team.tasks["1"].blocks == ["2"]

        agent = {"subagent_type": "general-purpose", "team_name": "lab"}
        claims = using("TaskUpdate", taskId="1", status="in_progress", owner="ann")
        await it.uses("Agent", name="ann", description="ann", prompt=claims, **agent)
        await it.uses("Agent", name="bob", description="bob", prompt="SAY=Bob is here.", **agent)
        assert {name: (one.kind, one.agent_id) for name, one in it.team.members.items()} == {
            "ann": ("teammate", "ann@lab"),
            "bob": ("teammate", "bob@lab"),
        }
        await it.shows({"1": ("in_progress", "ann", []), "2": ("pending", None, ["1"])})
        await it.sees(ann="idle", bob="idle")
        completes = using("TaskUpdate", taskId="1", status="completed")
        await it.uses("SendMessage", to="ann", message=completes, summary="finish")
        await it.shows({"1": ("completed", "ann", []), "2": ("pending", None, ["1"])})
        says = using("SendMessage", to="team-lead", message="done with a", summary="done")
        await it.uses("SendMessage", to="ann", message=says, summary="report")
        await it.hears(("team-lead", "ann", completes), ("team-lead", "ann", says), ("ann", "team-lead", "done with a"))
        await it.sees(ann="idle", bob="idle")

        await it.uses("SendMessage", to="bob", message="SCENARIO=bash CMD=touch by-bob", summary="run")
        (asked,) = await it.asked(1)
        assert (asked.data.name, asked.data.input["command"]) == ("Bash", "touch by-bob")
        assert asked.lane == it.team.members["bob"].lane
        await eventually(lambda: it.team.open, 30)
        ((request, waits),) = it.team.open.items()
        assert (waits.kind, waits.member, waits.tool) == ("permission", "bob", "Bash")
        await it.decides(asked.data.ask, behaviour="allow")
        await eventually((tmp_path / "project" / "by-bob").exists, 30)
        await eventually(lambda: request in it.team.answered, 30)
        assert it.team.answered[request].approve is True
        await it.uses("SendMessage", to="bob", message="SCENARIO=bash CMD=touch not-by-bob", summary="run")
        _, asked = await it.asked(2)
        await it.decides(asked.data.ask, behaviour="deny", message="leave it")
        await eventually(lambda: len(it.team.answered) == 2 and not it.team.open, 30)
        await it.sees(ann="idle", bob="idle")
        assert not (tmp_path / "project" / "not-by-bob").exists()
        with pytest.raises(TrunklineError, match="does not wait"):
            await it.decides(asked.data.ask, behaviour="allow")

        await it.uses("TeamDelete")
        assert it.team.ended is None, "the CLI refuses while members are active"
        for name, left in (
            ("bob", {"ann": "idle", "bob": "shutdown"}),
            ("ann", {"ann": "shutdown", "bob": "shutdown"}),
        ):
            asks = {"type": "shutdown_request", "reason": "thanks SCENARIO=leave now"}
            await it.uses("SendMessage", to=name, message=asks)
            await it.sees(**left)
            shut = [one for one in it.team.answered.values() if (one.kind, one.member) == ("shutdown", name)]
            assert [one.approve for one in shut] == [True]
        assert it.team.open == {}
        # The CLI takes members off its list when the lead reads their answers, and ends no team before.
        await eventually(lambda: it.playing.deriver.listed["lab"] == [], 30)
        await it.uses("TeamDelete")
        assert it.team.ended is not None
        assert it.tasks == {"1": ("completed", "ann", []), "2": ("pending", None, ["1"])}
