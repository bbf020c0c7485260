"""Teams through the gateway: lists, boards, asks of all members in one place, a filter of subscriptions, a request to end."""

import asyncio
import contextlib
import getpass
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from tests.integration.gateway.rig import Rig, ask, begin_turn
from tests.integration.teams.stage import LIFE, Lead

from trunkline_teams.app import Teams
from trunkline_testkit import eventually
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import TextBlock, Usage
from trunkline_wire.commands import Prompt
from trunkline_wire.turn import MessageAssistant, TurnCompleted, TurnStarted

JOINING = ["claude", "--agent-name", "ann", "--team-name", "lab"]


@pytest.fixture
async def teams(rig: Rig) -> AsyncGenerator[None]:
    """The team service, in the test's own loop."""
    service = Teams(rig.bus)
    task = asyncio.create_task(service.run())
    await asyncio.wait_for(service.wait_ready(), 30)
    yield
    task.cancel()
    await asyncio.wait({task})


async def refused(client: Client, method: str, /, **params: Any) -> str:
    with pytest.raises(TrunklineError) as error:
        await client.call(method, **params)
    return error.value.code


async def shown(client: Client, lead: Lead, events: int, team: str = "lab") -> dict[str, Any]:
    """The team as the gateway shows it, once all is told."""
    await lead.said(events)
    await lead.stored()
    found: dict[str, Any] = {}

    async def there() -> bool:
        with contextlib.suppress(TrunklineError):
            found.update(await client.call("team.get", team=f"{lead.session}/{team}"))
        board = await lead.board()
        return bool(found) and found["updated"] == board.teams[team].updated

    await eventually(there, 20)
    return found


@pytest.mark.usefixtures("teams")
async def test_a_team_its_board_its_messages_and_what_it_uses(rig: Rig) -> None:
    async with await rig.client() as client, Lead.open(rig.bus) as lead:
        assert await client.call("team.list") == {"teams": [], "total": 0, "has_more": False}
        ann = await lead.life()
        team = await shown(client, lead, len(LIFE))
        assert [(one["name"], one["status"]) for one in team["members"]] == [("ann", "idle"), ("bob", "active")]
        assert [(one["kind"], one["member"], one["reason"]) for one in team["requests"]] == [
            ("shutdown", "bob", "thanks")
        ]

        (listed,) = (await client.call("team.list"))["teams"]
        assert (listed["id"], listed["lead"], listed["ended"]) == (f"{lead.session}/lab", lead.session, None)
        assert listed["members"] == {"ann": "idle", "bob": "active"}
        assert (listed["tasks"], listed["open_requests"]) == ({"completed": 1, "pending": 1}, 1)
        assert (await client.call("team.list", status="ended"))["teams"] == []
        assert (await client.call("team.list", session=lead.session))["total"] == 1

        columns = (await client.call("team.board", team="lab"))["columns"]
        assert {name: [one["task"]["id"] for one in column] for name, column in columns.items()} == {
            "ready": ["2"],  # the task that it waited for is completed
            "blocked": [],
            "in_progress": [],
            "completed": ["1"],
        }
        await lead.call("TaskCreate", "Task #3 created successfully: c", subject="Join")
        await lead.call("TaskUpdate", "Updated task #3 blockedBy", taskId="3", addBlockedBy=["1", "2"])
        await shown(client, lead, len(LIFE) + 2)
        (blocked,) = (await client.call("team.board", team="lab"))["columns"]["blocked"]
        assert (blocked["task"]["id"], blocked["waits_for"]) == ("3", ["2"])

        said = await client.call("team.messages", team="lab")
        assert [(one["from"], one["to"], one["content"]) for one in said["messages"]] == [("ann", "team-lead", "on it")]
        assert (await client.call("team.messages", team="lab", member="bob"))["messages"] == []
        before = said["messages"][0]["event"]
        assert (await client.call("team.messages", team="lab", before=before))["messages"] == []
        usage = Usage(input=100, output=20, cost_usd=0.5)
        lead.writer.append(MessageAssistant(content=[], usage=usage), item="itm_" + "e" * 32, lane=ann)
        lead.writer.append(TurnCompleted(outcome="success"), turn="tur_" + "1" * 32)
        await lead.writer.flush()

        async def counted() -> dict[str, Any] | None:
            used = await client.call("team.usage", team="lab")
            return used if any(one["usage"] for one in used["members"]) else None

        used = await eventually(counted, 20)
        assert [(one["name"], bool(one["usage"])) for one in used["members"]] == [("ann", True), ("bob", False)]
        assert (used["total"]["input"], used["total"]["output"], used["total"]["cost_usd"]) == (100, 20, 0.5)

        assert await refused(client, "team.get", team="nobody") == "unknown_team"
        assert await refused(client, "team.messages", team="lab", limit=0) == "bad_params"


@pytest.mark.usefixtures("teams")
async def test_asks_of_all_members_in_one_list_answered_at_once(rig: Rig) -> None:
    await rig.decide_asks()
    async with (
        await rig.client() as client,
        Lead.open(rig.bus) as lead,
        Lead.open(rig.bus, "native-ann", JOINING) as ann,
        await rig.session() as stranger,
    ):
        await lead.team()
        lane = await lead.spawn("bob")
        async with Lead.open(rig.bus, "native-carol", [*JOINING[:2], "carol", *JOINING[3:]]) as carol:
            await shown(client, lead, 3)
            asks = {
                "lead": ask(lead.writer, "t1", begin_turn(lead.writer)),
                "carol": ask(carol.writer, "t3", begin_turn(carol.writer)),
            }
            others = [ask(one, "t4", begin_turn(one)) for one in (ann.writer, stranger)]
            await rig.settled(lead.writer, carol.writer, ann.writer, stranger)
            listed = await client.call("ask.list", team="lab")
            assert {one["ask"] for one in listed["asks"]} == set(asks.values())
            assert listed["members"] == {asks["lead"]: None, asks["carol"]: "carol"}
            assert listed["requests"] == []
            assert lane not in asks.values()
            assert (await client.call("team.get", team="lab"))["open_asks"] == 2

            answered = await client.call("ask.answer_many", behaviour="allow", team="lab")
            assert {one["ask"]: one["outcome"] for one in answered["asks"]} == dict.fromkeys(asks.values(), "decided")
            left = {one["ask"] for one in (await client.call("ask.list"))["asks"]}
            assert left == set(others), "of others nothing is answered"


@pytest.mark.usefixtures("teams")
async def test_a_subscription_of_a_team_hears_its_sessions_and_no_other(rig: Rig) -> None:
    async with await rig.client() as client, Lead.open(rig.bus) as lead, await rig.session() as stranger:
        await lead.team()
        await shown(client, lead, 1)
        opened = await client.call("subscribe", team="lab")
        assert [state["session"] for state in opened["snapshot"]["sessions"]] == [lead.session]
        assert await refused(client, "subscribe", team="lab", session=lead.session) == "bad_params"
        assert await refused(client, "subscribe", team="nobody") == "unknown_team"
        async with Lead.open(rig.bus, "native-ann", JOINING) as ann:
            await shown(client, lead, 2)
            begin_turn(stranger)
            ann.writer.append(TurnStarted(number=1), turn="tur_" + "1" * 32)
            await client.wait("turn.started", session=ann.session)
            assert {event["session"] for event in client.events()} == {lead.session, ann.session}
        cursor = client.cursor
    async with await rig.client() as client:
        # a cursor is good for the subscription that it is of
        assert "gap" not in await client.call("subscribe", team="lab", cursor=cursor)
        assert (await client.call("subscribe", cursor=cursor))["gap"]["reason"] == "scope_changed"


@pytest.mark.usefixtures("teams")
async def test_a_shutdown_is_a_request_to_the_lead(rig: Rig) -> None:
    async with await rig.client() as client, Lead.open(rig.bus) as lead:
        await lead.team()
        await lead.spawn("ann")
        await shown(client, lead, 2)
        sent = await client.call("team.shutdown", team="lab", reason="we are done")
        assert (sent["session"], sent["team"]) == (lead.session, f"{lead.session}/lab")
        ((_, command),) = await rig.commands(lead.session)
        assert isinstance(command.args, Prompt)
        assert command.args.content[0] == TextBlock(
            text=f"[Request by {getpass.getuser()}] Please shut down the team 'lab'. Ask ann to shut down first, and wait for their answers."
            " Then end the team. The reason: we are done"
        )
        await lead.call("TeamDelete", "", {"success": True, "team_name": "lab"})
        team = await shown(client, lead, 3)
        assert (team["ended"] is None, [one["status"] for one in team["members"]]) == (False, ["shutdown"])
        assert await refused(client, "team.shutdown", team="lab") == "bad_params"


@pytest.mark.usefixtures("teams")
async def test_roles_and_scopes(rig: Rig) -> None:
    async with await rig.client() as owner, Lead.open(rig.bus) as mine, Lead.open(rig.bus, "native-2") as other:
        for lead in (mine, other):
            await lead.team()
            await shown(owner, lead, 1)
        assert await refused(owner, "team.get", team="lab") == "unknown_team", "two are called so"
        viewer = await owner.call("token.create", actor="guest", role="viewer", sessions=[mine.session])
        async with await rig.client(token=viewer["token"]) as client:
            assert [one["lead"] for one in (await client.call("team.list"))["teams"]] == [mine.session]
            assert (await client.call("team.get", team="lab"))["lead"] == mine.session
            for method in ("team.get", "team.board", "team.messages", "team.usage"):
                assert await refused(client, method, team=f"{other.session}/lab") == "unknown_team"
            assert await refused(client, "ask.list", team=f"{other.session}/lab") == "unknown_team"
            assert await refused(client, "subscribe", team=f"{other.session}/lab") == "unknown_team"
            assert await refused(client, "team.shutdown", team="lab") == "forbidden"
