"""Teams from the command line: listed, shown, watched; a lead's session in the log of the running instance makes them."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.integration.supervisor.running import Up
from tests.integration.teams.stage import LIFE, Lead

from trunkline_bus.connection import Bus, BusSettings
from trunkline_cli.teamboard import changes
from trunkline_testkit import eventually_sync


def alive(up: Up, life: Callable[[Lead], Awaitable[Any]]) -> str:
    """The lead's session, after what it does."""

    async def run() -> str:
        seed = up.home / "nats" / "keys" / "admin.nk"
        async with Bus.open(BusSettings(url=up.state["nats"], seed_file=seed, name="test")) as bus:
            await bus.read_log_id()
            async with Lead.open(bus) as lead:
                await life(lead)
                return lead.session

    return asyncio.run(run())


@pytest.fixture(scope="module")
def team(up: Up) -> str:
    """The id of a team that is there as a whole."""

    async def life(lead: Lead) -> None:
        await lead.life()
        await lead.said(len(LIFE))
        await lead.stored()

    session = alive(up, life)
    name = f"{session}/lab"
    eventually_sync(lambda: "shutdown-1@bob" in up.ok("teams", "show", name, "--json"), 20)
    return name


def test_teams_are_listed(up: Up, team: str) -> None:
    found = {one["id"]: one for one in map(json.loads, up.ok("teams", "--json").splitlines())}
    assert found[team]["members"] == {"ann": "idle", "bob": "active"}
    (line,) = [line for line in up.ok("teams", "list").splitlines() if line.startswith("lab\t")]
    assert line.split("\t")[2:5] == ["1 of 2 active", "1 of 2 done", ""]


def test_a_team_is_shown_with_what_is_open(up: Up, team: str) -> None:
    shown = up.ok("teams", "show", team)
    for part in ("ann  idle", "bob  active", "#1  completed  ann  Write a", "#2  pending  Write b  waits for 1"):
        assert part in shown
    assert "shutdown-1@bob  bob  shutdown" in shown
    assert "ann to team-lead: on it" in shown
    missing = up.cli("teams", "show", "nobody")
    assert (missing.returncode, missing.stderr.startswith("error: unknown_team:")) == (1, True)


def test_a_board_is_lines_or_json(up: Up, team: str) -> None:
    assert up.ok("teams", "board", team) == "ready\t2\t\tWrite b\t\ncompleted\t1\tann\tWrite a\t\n"
    assert json.loads(up.ok("teams", "board", team, "--json"))["columns"]["blocked"] == []
    assert up.cli("teams", "asks", team).stderr.startswith("bob waits for the lead: shutdown thanks")


def test_a_watched_board_shows_each_change_and_ends_with_the_team(up: Up) -> None:
    async def life(lead: Lead) -> None:
        await lead.team()
        await lead.said(1)
        await lead.stored()

        async def cli(*arguments: str) -> asyncio.subprocess.Process:
            command = (sys.executable, "-m", "trunkline_cli", *arguments)
            pipe = asyncio.subprocess.PIPE
            return await asyncio.create_subprocess_exec(*command, env=up.environment, stdout=pipe)

        watching = await cli("teams", "board", f"{lead.session}/lab", "--watch", "--json")
        assert watching.stdout is not None
        first = json.loads(await asyncio.wait_for(watching.stdout.readline(), 30))
        assert (first["members"], first["ended"]) == ({}, None)
        await lead.spawn("ann")
        second = json.loads(await asyncio.wait_for(watching.stdout.readline(), 30))
        assert second["members"] == {"ann": "active"}
        await lead.call("TeamDelete", "", {"success": True, "team_name": "lab"})
        last = json.loads(await asyncio.wait_for(watching.stdout.readline(), 30))
        assert (last["members"], last["ended"] is None) == ({"ann": "shutdown"}, False)
        assert await asyncio.wait_for(watching.wait(), 30) == 0

    alive(up, life)


async def test_an_unchanged_board_is_not_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_cli.teamboard.LOOK_S", 0.0)
    boards = [{"n": n, "ended": ended} for n, ended in ((1, None), (1, None), (2, None), (2, "now"))]
    looks = iter(boards)

    async def look() -> dict[str, Any]:
        return next(looks)

    assert [board async for board in changes(look)] == [boards[0], boards[2], boards[3]]
