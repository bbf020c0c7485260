"""Decisions through the gateway, by the real permission service: rights, rules of the session, history, many at once."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from tests.integration.gateway.rig import Rig

from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.writer import SessionWriter
from trunkline_permissions.app import permissions
from trunkline_permissions.settings import PermissionsSettings
from trunkline_testkit import eventually
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDelivered, AskOption, PermissionRequested
from trunkline_wire.ids import ask_id, new_command_id
from trunkline_wire.work import UsageUpdated


@asynccontextmanager
async def deciding(rig: Rig, policy: str = "") -> AsyncGenerator[None]:
    """The permission service at work, with that policy in force and in the log."""
    settings = PermissionsSettings(home=rig.home, poll_s=0.02)
    settings.policy_path.write_text(policy)
    async with (
        Bus.open(BusSettings(url=rig.server.url)) as bus,
        permissions(bus, settings) as (decider, file),
        await rig.client() as client,
    ):
        await decider.ready.wait()

        async def recorded() -> bool:
            return (await client.call("policy.get"))["version"] == file.policy.version

        await eventually(recorded)
        yield


def ask(writer: SessionWriter, native: str, command: str = "ls", **fields: Any) -> str:
    options = [
        AskOption(id="yes", name="Yes", kind="allow_once"),
        AskOption(id="always", name="Always", kind="allow_always"),
        AskOption(id="no", name="No", kind="reject_once"),
    ]
    about: dict[str, Any] = {"name": "Bash", "kind": "execute", "input": {"command": command}, "options": options}
    id_ = ask_id(writer.session, "inc", native)
    writer.append(PermissionRequested(ask=id_, incarnation="inc", **(about | fields)))
    return id_


async def known(rig: Rig, *asks: str, status: str = "open") -> None:
    """Wait until the gateway knows these asks so."""

    def there() -> bool:
        records = [rig.running.gateway.directory.ask(one) for one in asks]
        return all(record is not None and record.status == status for record in records)

    await eventually(there)


async def person(rig: Rig, role: str, actor: str = "ann") -> Client:
    async with await rig.client() as owner:
        made = await owner.call("token.create", actor=actor, role=role)
    return await rig.client(token=made["token"])


async def link_of_an_extension(rig: Rig, id_: str, actor: str) -> str:
    """The code of a link that the extension `bot` makes for `actor`."""
    params = json.dumps({"ask": id_, "actor": actor}).encode()
    reply = await rig.running.gateway.bus.commands.request("trunk.api.bot.approver.ask.link", params, timeout=10)
    return str(json.loads(reply.data)["payload"]["code"])


async def open_link(rig: Rig, code: str) -> dict[str, Any]:
    """What the page of a link gets for the button `Allow`."""
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{rig.running.url}/a/decide", json={"code": code, "behaviour": "allow"}) as answer,
    ):
        return await answer.json(content_type=None)


async def test_an_extension_that_names_two_people_has_one_voice(rig: Rig) -> None:
    policy = '[[rule]]\nname = "two"\naction = "ask"\nquorum = 2\n'
    async with (
        deciding(rig, policy),
        await rig.session() as writer,
        await person(rig, "approver", "ada") as ada,
        await person(rig, "approver", "bob") as bob,
    ):
        id_ = ask(writer, "t")
        await known(rig, id_)
        codes = [await link_of_an_extension(rig, id_, actor) for actor in ("ada", "bob")]
        assert (await open_link(rig, codes[0]))["outcome"] == "voted"
        assert (await open_link(rig, codes[1]))["code"] == "already_voted"
        with pytest.raises(TrunklineError) as refused:
            await ada.call("ask.answer", ask=id_, behaviour="allow")
        assert refused.value.code == "already_voted"
        assert (await bob.call("ask.answer", ask=id_, behaviour="allow"))["outcome"] == "decided"
        story = (await bob.call("ask.history", session=writer.session))["asks"][0]
        assert [vote["by"] for vote in story["votes"]] == ["ext:bot/ada"]
        assert story["by"] == "bob"


async def test_the_gateway_says_who_may_and_too_low_a_role_is_told(rig: Rig) -> None:
    policy = '[[rule]]\nname = "r"\naction = "ask"\nrole = "owner"\n'
    async with (
        deciding(rig, policy),
        await rig.session() as writer,
        await person(rig, "approver") as low,
        await rig.client() as high,
    ):
        id_ = ask(writer, "t")
        await known(rig, id_)
        with pytest.raises(TrunklineError) as refused:
            await low.call("ask.answer", ask=id_, behaviour="deny")
        assert (refused.value.code, refused.value.details["reason"]) == ("forbidden", "forbidden")
        await known(rig, id_)
        assert (await high.call("ask.answer", ask=id_, behaviour="allow"))["outcome"] == "decided"


async def test_two_people_have_to_allow_and_one_who_comes_twice_is_told(rig: Rig) -> None:
    policy = '[[rule]]\nname = "r"\naction = "ask-two"\n'
    async with (
        deciding(rig, policy),
        await rig.session() as writer,
        await person(rig, "approver", "ann") as ann,
        await person(rig, "approver", "ann") as ann_again,
        await person(rig, "approver", "bob") as bob,
    ):
        id_ = ask(writer, "t")
        await known(rig, id_)
        voted = await ann.call("ask.answer", ask=id_, behaviour="allow")
        assert (voted["outcome"], voted["votes"], voted["quorum"]) == ("voted", 1, 2)
        with pytest.raises(TrunklineError) as refused:
            await ann_again.call("ask.answer", ask=id_, behaviour="allow")
        assert refused.value.code == "already_voted"
        assert (await bob.call("ask.answer", ask=id_, behaviour="allow"))["outcome"] == "decided"

        writer.append(AskDelivered(ask=id_))
        await rig.settled(writer)
        (story,) = (await bob.call("ask.history"))["asks"]
        assert [vote["by"] for vote in story["votes"]] == ["ann"]
        assert [(one["by"], one["code"]) for one in story["rejected"]] == [("ann", "already_voted")]
        assert (story["status"], story["by"], story["role"], story["behaviour"]) == (
            "decided",
            "bob",
            "approver",
            "allow",
        )
        assert (story["routed"]["rule"], story["routed"]["quorum"]) == ("r", 2)
        assert story["asked"] <= story["routed"]["time"] <= story["ended"] <= story["delivered"]
        assert story["took_s"] >= 0
        # the fold no longer has the input of what is over, the log has
        assert story["requested"]["input"] == {"command": "ls"}


async def test_what_was_allowed_for_good_is_listed_and_taken_back(rig: Rig) -> None:
    async with deciding(rig), await rig.session() as writer, await person(rig, "approver") as client:
        first = ask(writer, "1", "git log", suggestions=["git log *"])
        await known(rig, first)
        await client.call("ask.answer", ask=first, behaviour="allow", option="always")
        second = ask(writer, "2", "git log -1")
        await known(rig, second, status="decided")
        (rule,) = (await client.call("ask.rules", session=writer.session))["rules"]
        assert (rule["tool"], rule["command"], rule["by"]) == ("Bash", ["git log *", "git log"], "ann")
        page = await client.call("ask.history", by=rule["rule"])
        assert [(story["ask"], story["by"], story["rule"]) for story in page["asks"]] == [
            (second, "policy", rule["rule"])
        ]

        id_ = new_command_id()
        for _ in range(2):  # the same id, the same outcome
            done = await client.call("ask.revoke", session=writer.session, rule=rule["rule"], id=id_)
            assert done["rule"]["revoked_by"] == "ann"
        for rule_name in (rule["rule"], "session-unknown"):
            with pytest.raises(TrunklineError) as refused:
                await client.call("ask.revoke", session=writer.session, rule=rule_name)
            assert refused.value.code == "unknown_rule"
        third = ask(writer, "3", "git log -1")
        await known(rig, third)
        assert (await client.call("ask.history", session=writer.session))["asks"][-1]["revoked_by"] == "ann"


async def test_history_comes_in_pages_and_by_what_is_wanted(rig: Rig) -> None:
    async with (
        deciding(rig),
        await rig.session() as one,
        await rig.session() as two,
        await rig.client() as client,
    ):
        asks = [ask(one if number % 2 else two, str(number), name=f"T{number % 2}") for number in range(5)]
        await known(rig, *asks)
        await client.call("ask.answer", ask=asks[0], behaviour="deny", message="no")
        cursor, seen = None, list[str]()
        while True:
            page = await client.call("ask.history", limit=2, cursor=cursor)
            seen += [story["ask"] for story in page["asks"]]
            cursor = page["cursor"]
            if cursor is None:
                break
        order = [record.ask for record in rig.running.gateway.directory.asks()]
        assert len(seen) == len(set(seen)) == len(order)
        assert seen == sorted(seen, key=lambda id_: -_sequence(rig, id_))

        async def found(**wanted: Any) -> set[str]:
            return {story["ask"] for story in (await client.call("ask.history", **wanted))["asks"]}

        assert await found(status="decided") == {asks[0]}
        assert await found(session=one.session) == {asks[1], asks[3]}
        assert await found(tool="T0") == {asks[0], asks[2], asks[4]}
        assert await found(since="2999-01-01T00:00:00Z") == set()
        assert await found(until="2999-01-01T00:00:00Z") == set(asks)
        actor = (await client.call("ask.history", status="decided"))["asks"][0]["by"]
        assert await found(by=actor) == {asks[0]}
        with pytest.raises(TrunklineError) as refused:
            await client.call("ask.history", cursor="x")
        assert refused.value.code == "bad_cursor"


def _sequence(rig: Rig, ask_: str) -> int:
    record = rig.running.gateway.directory.ask(ask_)
    assert record is not None
    return record.sequence


async def test_history_knows_what_the_folds_have_forgotten(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_fold.asks.MAX_ENDED", 3)
    monkeypatch.setattr("trunkline_gateway.stories.MAX_ENDED", 3)
    policy = '[[rule]]\nname = "all"\naction = "deny"\n'
    async with deciding(rig, policy), await rig.session() as writer, await rig.client() as client:
        asks = [ask(writer, str(number)) for number in range(8)]
        await writer.flush()
        await eventually(lambda: len(rig.running.gateway.directory.asks_of(writer.session).ended) == 3)
        await known(rig, asks[-1], status="decided")
        page = await client.call("ask.history")
        assert [story["ask"] for story in page["asks"]] == asks[::-1]
        assert {story["rule"] for story in page["asks"]} == {"all"}


async def test_many_are_answered_each_by_itself(rig: Rig) -> None:
    async with (
        deciding(rig, '[[rule]]\nname = "r"\naction = "ask"\nrole = "owner"\ncommand = "sudo*"\n'),
        await rig.session() as one,
        await rig.session() as two,
        await person(rig, "approver") as client,
    ):
        tests = [ask(one, str(number), f"pytest -k {number}") for number in range(3)]
        sneaky = ask(one, "s", "pytest; rm -rf x")
        other = ask(two, "o", "pytest")
        high = ask(two, "h", "sudo ls")
        await known(rig, *tests, sneaky, other, high)
        with pytest.raises(TrunklineError) as refused:
            await client.call("ask.answer_many", behaviour="allow")
        assert refused.value.code == "bad_params"

        dry = await client.call(
            "ask.answer_many", behaviour="allow", session=one.session, command="pytest*", dry_run=True
        )
        assert [entry["ask"] for entry in dry["asks"]] == tests
        await known(rig, *tests)
        wanted: dict[str, Any] = {"behaviour": "allow", "asks": [*tests, high], "id": dry["id"]}
        done = await client.call("ask.answer_many", **wanted)
        assert {entry["ask"]: entry["outcome"] for entry in done["asks"]} == {
            **dict.fromkeys(tests, "decided"),
            high: "refused",
        }
        (refused_one,) = [entry for entry in done["asks"] if entry["outcome"] == "refused"]
        assert refused_one["error"]["code"] == "forbidden"
        # the same again: the same outcomes, nothing is answered twice
        again = await client.call("ask.answer_many", **wanted)
        assert [entry["outcome"] for entry in again["asks"]] == [entry["outcome"] for entry in done["asks"]]
        await known(rig, sneaky, other, high)

        # to deny, a command is looked for in all that is asked
        denied = await client.call("ask.answer_many", behaviour="deny", command="rm *", message="no")
        assert [(entry["ask"], entry["decision"]["message"]) for entry in denied["asks"]] == [(sneaky, "no")]
        rest = await client.call("ask.answer_many", behaviour="deny", all=True, workspace="ws_x", tool="Ba*")
        assert {entry["ask"] for entry in rest["asks"]} == {other, high}


async def test_a_policy_is_shown_and_tried_before_it_is_in_force(rig: Rig) -> None:
    policy = '[[rule]]\nname = "cheap"\naction = "allow"\ncost_at_most = 1\ncommand = "ls*"\n'
    async with deciding(rig, policy), await rig.session() as writer, await rig.client() as client:
        shown = await client.call("policy.get")
        assert (shown["text"], shown["path"], shown["default"]) == (policy, str(rig.home / "policy.toml"), "ask")
        assert [rule["name"] for rule in shown["rules"]][-1] == "cheap"
        assert {rule.get("origin") for rule in shown["rules"][:-1]} == {"built in"}

        described = {"tool": "Bash", "command": "ls -l", "cost_usd": 0.5}
        (result,) = (await client.call("policy.test", described=described))["results"]
        assert result["explanation"]["ruling"]["rule"] == "cheap"
        (result,) = (await client.call("policy.test", described={"command": "trunkline ls"}))["results"]
        assert result["explanation"]["ruling"]["rule"] == "trunkline-command"

        # asks of the log, as they were: at what the session had cost until then
        unknown = ask(writer, "1")
        writer.append(UsageUpdated(total_cost_usd=0.5))
        await writer.flush()
        cheap = ask(writer, "2")
        writer.append(UsageUpdated(total_cost_usd=2.0))
        await writer.flush()
        dear = ask(writer, "3")
        await known(rig, unknown, dear)
        await known(rig, cheap, status="decided")
        tried = await client.call("policy.test", session=writer.session)
        assert {one["ask"]: one["explanation"]["ruling"].get("rule") for one in tried["results"]} == {
            unknown: None,
            cheap: "cheap",
            dear: None,
        }
        misses = {one["ask"]: one["explanation"]["steps"][-1] for one in tried["results"]}
        assert (misses[unknown]["found"], misses[dear]["found"]) == ("unknown", "2.0000")
        assert [one["was"]["rule"] for one in tried["results"] if one["ask"] == cheap] == ["cheap"]

        other = '[[rule]]\nname = "none"\naction = "deny"\ncost_at_least = 2\n'
        tried = await client.call("policy.test", since="2020-01-01T00:00:00Z", policy=other)
        assert tried["changed"] == 2
        assert {one["ask"] for one in tried["results"] if one.get("changed")} == {cheap, dear}
        with pytest.raises(TrunklineError) as refused:
            await client.call("policy.test", ask=cheap, policy="[[rule]]\nname = 1")
        assert refused.value.code == "bad_settings"

        (rig.home / "policy.toml").write_text(other)

        async def both() -> bool:
            return len((await client.call("policy.history"))["versions"]) == 2

        await eventually(both)
        versions = (await client.call("policy.history", limit=1))["versions"]
        assert versions[0]["text"] == other
        page = await client.call("policy.history", before=(await client.call("policy.history", limit=1))["next"])
        assert ([one["text"] for one in page["versions"]], page["next"]) == ([policy], None)
        # back to the first one: a version of its own place, however soon
        (rig.home / "policy.toml").write_text(policy)

        async def three() -> bool:
            return [one["text"] for one in (await client.call("policy.history"))["versions"]] == [policy, other, policy]

        await eventually(three)
