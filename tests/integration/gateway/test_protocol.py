"""What a client of any kind needs beside events: whole snapshots, joined history, switching, settings, lists in pages."""

from typing import Any

import pytest
from tests.integration.gateway.rig import Rig, ask, begin_turn, end_turn, say

from trunkline_bus.writer import SessionWriter
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import TextBlock
from trunkline_wire.commands import Rename, Reset, SetModel
from trunkline_wire.ids import new_command_id, new_session_id
from trunkline_wire.session import SessionReset, SessionUpdated
from trunkline_wire.turn import MessageAssistant, ToolCompleted, ToolStarted

OPEN = "itm_" + "a" * 32


def call(writer: SessionWriter, number: int, turn: str) -> str:
    item = f"itm_{number:032x}"
    writer.append(ToolStarted(name="Bash", input={"command": f"echo {number}"}), turn=turn, item=item)
    return item


def result(writer: SessionWriter, item: str, turn: str) -> None:
    writer.append(ToolCompleted(status="completed", content=[TextBlock(text=item)]), turn=turn, item=item)


def shape(page: dict[str, Any]) -> list[tuple[int, int | None]]:
    """(seq, seq of the result beside it) of each entry."""
    return [(one["event"]["seq"], one.get("result", {}).get("event", {}).get("seq")) for one in page["events"]]


async def test_results_stand_beside_their_calls(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        turn = begin_turn(writer)  # 2 and 3; 1 is session.created
        first, second = call(writer, 1, turn), call(writer, 2, turn)  # 4, 5
        result(writer, second, turn)  # 6
        say(writer, OPEN, "between", turn=turn)  # 7
        result(writer, first, turn)  # 8
        call(writer, 3, turn)  # 9: open
        await rig.settled(writer)
        whole = await client.call("session.history", session=writer.session, join=True)
        assert shape(whole) == [(1, None), (2, None), (3, None), (4, 8), (5, 6), (7, None), (9, None)]
        assert (whole["total"], whole["has_more"]) == (9, False)
        beside = whole["events"][3]["result"]
        assert (beside["event"]["item"], beside["event"]["type"]) == (first, "tool.completed")
        plain = await client.call("session.history", session=writer.session)
        assert shape(plain) == [(seq, None) for seq in range(1, 10)]

        # A call on a page has its result, wherever that stands; a result without its call is an entry of its own.
        latest = await client.call("session.history", session=writer.session, join=True, limit=2)
        assert shape(latest)[-2:] == [(8, None), (9, None)]
        start = await client.call(
            "session.history", session=writer.session, join=True, limit=4, before=cursor(plain, 7)
        )
        assert shape(start) == [(2, None), (3, None), (4, 8), (5, 6)]  # it begins where a message does
        # The page holds 2 to 6; its own ends say where the next ones go on, though 6 is no entry.
        after = await client.call("session.history", session=writer.session, limit=1, after=start["after"])
        assert shape(after) == [(7, None)]
        earlier = await client.call("session.history", session=writer.session, limit=2, before=start["before"])
        assert shape(earlier) == [(1, None)]


def cursor(page: dict[str, Any], seq: int) -> str:
    return next(one["cursor"] for one in page["events"] if one["event"]["seq"] == seq)


def said(snapshot: dict[str, Any]) -> list[str]:
    return [one["event"]["data"]["content"][0]["text"] for one in snapshot["messages"]]


async def test_a_snapshot_has_the_latest_messages_and_what_is_being_written(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        for number in range(1, 31):
            turn = begin_turn(writer, number, f"prompt {number}")
            call(writer, 100 + number, turn)
            # One message of two blocks.
            item = f"itm_{200 + number:032x}"
            for block in (0, 1):
                text = TextBlock(text=f"answer {number}.{block}")
                writer.append(MessageAssistant(content=[text], block=block), turn=turn, item=item)
            end_turn(writer, turn)
        turn = begin_turn(writer, 31, "prompt 31")
        waiting = ask(writer, "t1", turn)
        writer.piece(OPEN, 0, "text", "so far ", turn=turn)
        await rig.settled(writer)
        expected = [
            text
            for number in range(22, 31)
            for text in (f"prompt {number}", f"answer {number}.0", f"answer {number}.1")
        ]
        # Twenty messages: one answer, nine prompts with their answers, and the last prompt.
        expected = ["answer 21.0", "answer 21.1", *expected, "prompt 31"]
        opened = await client.call("subscribe", session=writer.session)
        snapshot = opened["snapshot"]
        assert said(snapshot) == expected
        assert [one["ask"] for one in snapshot["asks"]] == [waiting]
        assert snapshot["state"]["turn"]["id"] == turn
        got = await client.call("session.get", session=writer.session)
        assert {**got, "blocks": []} == {**snapshot, "blocks": []}
        assert [block["text"] for block in got["blocks"]] == ["so far "]
        older = await client.call(
            "session.history", session=writer.session, limit=1, before=snapshot["messages"][0]["cursor"]
        )
        assert older["has_more"]
        few = await client.call("session.get", session=writer.session, messages=1)
        assert said(few) == ["prompt 31"]
        assert (await client.call("subscribe", session=writer.session, messages=0))["snapshot"]["messages"] == []
        for wrong in (-1, 101):
            with pytest.raises(TrunklineError) as refused:
                await client.call("session.get", session=writer.session, messages=wrong)
            assert (refused.value.code, refused.value.details["field"]) == ("bad_params", "messages")


async def test_a_client_switches_to_another_session(rig: Rig) -> None:
    async with await rig.session() as one, await rig.session() as two, await rig.client() as client:
        first = await client.call("subscribe", session=one.session)
        with pytest.raises(TrunklineError):
            await client.call("session.switch", session=new_session_id())
        begin_turn(one)
        await one.flush()
        await client.wait("turn.started", session=one.session)  # what failed has ended nothing
        switched = await client.call("session.switch", session=two.session)
        assert switched["subscription"] != first["subscription"]
        assert switched["snapshot"]["state"]["session"] == two.session
        before = len(client.frames)
        end_turn(one, "tur_" + "0" * 31 + "1")
        await rig.settled(one)
        begin_turn(two)
        await two.flush()
        await client.wait("turn.started", session=two.session)
        heard = {frame["payload"]["session"] for frame in client.frames[before:] if frame["type"] == "event"}
        assert heard == {two.session}
        with pytest.raises(TrunklineError) as refused:
            await client.call("unsubscribe", subscription=first["subscription"])
        assert refused.value.code == "bad_params"


async def test_what_a_session_is_and_how_it_is_set(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        writer.append(SessionUpdated(model="small", native_session="nat_1"))
        await rig.settled(writer)
        me = (await client.call("hello", protocol=1, client="here"))["actor"]
        await client.call("subscribe", session=writer.session)
        await eventually(lambda: rig.running.gateway.presence.of(writer.session))
        info = await client.call("session.info", session=writer.session)
        assert (info["session"], info["adapter"], info["closed"]) == (writer.session, "fake", False)
        assert info["native"] == {"session": "nat_1", "all": ["nat_1"]}
        assert [one["actor"] for one in info["watching"]] == [me]
        assert (info["config"]["model"], info["config"]["choices"]["thinking"][0]) == ("small", "off")

        wanted: dict[str, Any] = {"session": writer.session, "model": "large", "title": "T", "id": new_command_id()}
        told = await client.call("session.config", **wanted)
        assert set(told["commands"]) == {"model", "title"}
        assert (await client.call("session.config", **wanted))["commands"].keys() == told["commands"].keys()
        sent = await rig.commands(writer.session)
        assert {(command.id, command.args) for _, command in sent} == {
            (told["commands"]["model"]["command"], SetModel(model="large")),
            (told["commands"]["title"]["command"], Rename(title="T")),
        }
        assert (await client.call("session.config", session=writer.session))["commands"] == {}


async def test_setting_needs_the_right_to_all_of_it(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as owner:
        table: list[tuple[str, dict[str, Any]]] = [
            ("viewer", {"model": "m"}),
            ("participant", {"model": "m", "mode": "yolo"}),
        ]
        for role, wanted in table:
            made = await owner.call("token.create", actor="guest", role=role)
            async with await rig.client(token=made["token"]) as guest:
                await guest.call("session.config", session=writer.session)
                with pytest.raises(TrunklineError) as refused:
                    await guest.call("session.config", session=writer.session, **wanted)
                assert refused.value.code == "forbidden"
        assert await rig.commands(writer.session) == []


async def test_a_reset_is_a_command_of_its_own(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        await client.call("session.reset", session=writer.session)
        assert [command.args for _, command in await rig.commands(writer.session)] == [Reset()]
        writer.append(SessionUpdated(native_session="nat_1"))
        writer.append(SessionReset(by="owner"))
        await rig.settled(writer)
        info = await client.call("session.info", session=writer.session)
        assert info["native"] == {"session": None, "all": ["nat_1"]}


async def test_lists_come_in_pages_of_fifty(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        turn = begin_turn(writer)
        asked = [ask(writer, f"t{number}", turn) for number in range(60)]
        await rig.settled(writer)
        page = await client.call("ask.list")
        assert [one["ask"] for one in page["asks"]] == asked[:50]
        assert (page["total"], page["has_more"]) == (60, True)
        page = await client.call("ask.list", offset=50)
        assert [one["ask"] for one in page["asks"]] == asked[50:]
        assert (page["total"], page["has_more"]) == (60, False)
        lists = ("adapter", "agent", "device", "extension", "session", "terminal", "token", "worker", "workspace")
        for name in lists:
            told = await eventually(lambda name=name: client.call(f"{name}.list", limit=1))
            assert {"total", "has_more"} <= set(told), name
            assert len(told[f"{name}s"]) <= 1
            with pytest.raises(TrunklineError) as refused:
                await client.call(f"{name}.list", limit=0)
            assert (refused.value.code, refused.value.details["field"]) == ("bad_params", "limit")
