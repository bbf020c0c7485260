"""Directories and what is in them: sessions, histories, costs."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agentkit import claude_history
from tests.integration.gateway.rig import Rig, begin_turn

from trunkline_agentkit.questions import HostQuestions
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import Usage
from trunkline_wire.ids import workspace_id
from trunkline_wire.turn import TurnCompleted

NATIVE = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
async def host(rig: Rig) -> AsyncGenerator[str]:
    """This host, with somebody who answers for it."""
    name = rig.running.gateway.host
    task = asyncio.create_task(HostQuestions(rig.bus, name).run())
    yield name
    task.cancel()
    await asyncio.wait({task})


async def refused(client: Client, method: str, /, **params: Any) -> str:
    with pytest.raises(TrunklineError) as error:
        await client.call(method, **params)
    return error.value.code


def workspace(number: int) -> str:
    return f"ws_{number:032x}"


async def test_workspaces_are_the_directories_of_sessions(rig: Rig) -> None:
    async with (
        await rig.client() as client,
        await rig.session(workspace=workspace(1)) as first,
        await rig.session(workspace=workspace(2)) as second,
        await rig.session(workspace=workspace(1)) as third,
    ):
        begin_turn(third)
        await rig.settled(first, second, third)
        listed = await client.call("workspace.list")
        assert [(one["workspace"], one["sessions"]) for one in listed["workspaces"]] == [
            (workspace(1), 2),
            (workspace(2), 1),
        ]
        assert listed["workspaces"][0]["statuses"] == {"running": 1, "idle": 1}
        page = await client.call("workspace.list", limit=1, offset=1)
        assert ([one["workspace"] for one in page["workspaces"]], page["total"], page["has_more"]) == (
            [workspace(2)],
            2,
            False,
        )
        got = await client.call("workspace.get", workspace=workspace(1))
        assert [state["session"] for state in got["recent"]] == [third.session, first.session]
        assert await refused(client, "workspace.get", workspace=workspace(3)) == "unknown_workspace"


async def test_a_directory_without_sessions_has_a_workspace_and_its_histories(
    rig: Rig, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    project = tmp_path / "project"
    project.mkdir()
    written = claude_history.write(tmp_path, 2, NATIVE)
    written.write_text(written.read_text().replace("/home/dev/project", str(project)))
    async with await rig.client() as client:
        found = await client.call("workspace.get_or_create", directory=str(project))
        assert (found["workspace"], found["host"]) == (workspace_id(host, str(project)), host)
        assert (found["sessions"], found["recent"]) == (0, [])
        assert [(one["native"], one["agent"], one["messages"]) for one in found["histories"]] == [(NATIVE, "claude", 6)]
        made = await rig.running.gateway.tokens.create("bob", "participant")
        async with await rig.client(token=made[0]) as bob:
            assert (await bob.call("host.directories", directory="~"))["directories"][0] == "project"


async def test_directories_of_a_host(rig: Rig, host: str, tmp_path: Path) -> None:
    for name in ("b", ".hidden", "a"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    async with await rig.client() as client:
        told = await client.call("host.directories", directory=str(tmp_path), host=host)
        assert told == {
            "path": str(tmp_path),
            "parent": str(tmp_path.parent),
            "directories": ["a", "b", ".hidden"],
            "has_more": False,
        }
        for bad in ("relative", str(tmp_path / "file"), str(tmp_path / "none"), "a\0b"):
            assert await refused(client, "host.directories", directory=bad) == "bad_directory", bad
        assert await refused(client, "host.directories", directory="/", host="hst_elsewhere") == "no_worker"


async def test_usage_adds_up(rig: Rig) -> None:
    async with (
        await rig.client() as client,
        await rig.session(workspace=workspace(1)) as first,
        await rig.session(workspace=workspace(2)) as second,
    ):
        for writer, cost in ((first, 0.25), (second, 1.5)):
            turn = begin_turn(writer)
            used = Usage(input=100, output=10, cache_read=5, cost_usd=cost)
            writer.append(TurnCompleted(outcome="success", usage=used, cost_usd=cost), turn=turn)
        await rig.settled(first, second)
        by_workspace = await client.call("usage.get", by="workspace")
        assert [(row["key"], row["cost_usd"]) for row in by_workspace["rows"]] == [
            (workspace(2), 1.5),
            (workspace(1), 0.25),
        ]
        total = by_workspace["total"]
        assert (total["sessions"], total["turns"], total["input"], total["output"], total["cost_usd"]) == (
            2,
            2,
            200,
            20,
            1.75,
        )
        one = await client.call("usage.get", session=first.session)
        assert (one["total"]["cost_usd"], [row["key"] for row in one["rows"]]) == (0.25, ["fake"])


async def test_sessions_are_found_by_what_is_known_of_them(rig: Rig) -> None:
    async with (
        await rig.client() as client,
        await rig.session(workspace=workspace(1)) as first,
        await rig.session(workspace=workspace(2)) as second,
    ):
        begin_turn(first, prompt="Mend the Parser")
        await rig.settled(first, second)

        async def found(**wanted: Any) -> list[str]:
            return [state["session"] for state in (await client.call("session.list", **wanted))["sessions"]]

        assert await found(search="parser") == [first.session]
        assert await found(status=["running"]) == [first.session]
        assert await found(workspace=workspace(2)) == [second.session]
        assert await found(search=second.session[:20], open=True) == [second.session]
        assert await found(adapter="else") == []
        assert await found(archived=True) == []
