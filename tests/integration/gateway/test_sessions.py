"""Sessions over the gateway: made, listed, prompted, and closed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.integration.gateway.rig import AGENT, Rig, begin_turn, end_turn, say

from trunkline_bus import topology
from trunkline_bus.writer import SessionWriter
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError
from trunkline_wire.commands import Close, Interrupt, Prompt, SetModel
from trunkline_wire.ids import new_command_id, new_session_id
from trunkline_wire.session import SessionClosed, SessionCreated
from trunkline_wire.turn import MessageSystem
from trunkline_wire.work import CommandAccepted, CommandFinished


async def test_hello_says_who_one_is(rig: Rig) -> None:
    async with await rig.client() as client:
        said = await client.call("hello", protocol=1, client="test")
        assert (said["protocol"], said["role"]) == (1, "owner")
        assert {"session.create", "subscribe", "ask.answer"} <= set(said["methods"])


async def test_a_session_is_there_once_create_returns(rig: Rig, tmp_path: Path) -> None:
    async with await rig.client() as client:
        call = asyncio.create_task(client.call("session.create", adapter="fake", cwd=str(tmp_path), title="A title"))
        spawn = await rig.next_spawn()
        assert (spawn.adapter, spawn.cwd, spawn.host) == ("fake", str(tmp_path), rig.running.gateway.host)
        created = SessionCreated(
            adapter="fake", cwd=spawn.cwd, host=spawn.host, workspace="ws_x", title=spawn.title, spawn=spawn.id
        )
        writer = await SessionWriter.create(rig.bus, created, session=spawn.session, worker="w", agent=AGENT)
        answer = await call
        assert answer["session"] == spawn.session
        assert answer["state"]["title"] == "A title"
        got = await client.call("session.get", session=spawn.session)
        assert got["state"] == answer["state"]
        listed = await client.call("session.list")
        assert [state["session"] for state in listed["sessions"]] == [spawn.session]
        assert (listed["total"], listed["has_more"]) == (1, False)

        # the same request again is the same session; another one of that id is refused
        again = await client.call("session.create", adapter="fake", cwd=str(tmp_path), session=spawn.session)
        assert again["session"] == spawn.session
        await writer.close()


async def test_a_session_id_of_somebody_else_is_refused(rig: Rig, tmp_path: Path) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        with pytest.raises(TrunklineError) as refused:
            await client.call("session.create", adapter="fake", cwd=str(tmp_path), session=writer.session)
        assert refused.value.code == "session_exists"


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"cwd": "/nonexistent/x"}, "bad_directory"),
        ({"cwd": "relative"}, "bad_directory"),
        ({"adapter": "nothing"}, "unknown_adapter"),
        ({"adapter": "a.b"}, "bad_id"),
        ({"session": "ses_1"}, "bad_id"),
        ({"session": "../../etc"}, "bad_id"),
    ],
)
async def test_what_can_not_be_created_is_refused_at_once(rig: Rig, params: dict[str, str], code: str) -> None:
    await rig.announce_worker(rig.running.gateway.host, 1, 1.0, "fake")
    await eventually(rig.running.gateway.workers.all)
    async with await rig.client() as client:
        with pytest.raises(TrunklineError) as refused:
            await client.call("session.create", **{"adapter": "fake", "cwd": "/", **params}, within=3)
        assert refused.value.code == code


async def test_nobody_takes_the_spawn(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_gateway.methods.create.SPAWN_S", 0.2)
    async with await rig.client() as client:
        with pytest.raises(TrunklineError) as refused:
            await client.call("session.create", adapter="fake", cwd="/")
        assert refused.value.code == "no_worker"
        created = await client.call("session.create", adapter="fake", cwd="/", wait=False)
        assert created["state"] is None


async def test_a_prompt_is_in_the_log_when_it_returns(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        sent = await client.call("session.prompt", session=writer.session, text="Do it")
        ((subject, command),) = await rig.commands(writer.session)
        assert subject == f"trunk.cmd.{writer.session}.gateway"
        assert command.id == sent["command"]
        assert isinstance(command.args, Prompt)
        assert [block.text for block in command.args.content] == ["Do it"]  # type: ignore[union-attr]  # texts alone
        assert command.source is not None
        assert command.source.via == "socket"


async def test_the_same_id_is_the_same_command(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        id_ = new_command_id()
        for _ in range(2):
            assert (await client.call("session.prompt", session=writer.session, text="x", id=id_))["command"] == id_
        assert {command.id for _, command in await rig.commands(writer.session)} == {id_}


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"text": ""}, "bad_params"),
        ({"text": "  \n"}, "bad_params"),
        ({"content": []}, "bad_params"),
        ({}, "bad_params"),
        ({"text": "a", "content": [{"type": "text", "text": "a"}]}, "bad_params"),
        ({"text": "x" * 420_000}, "too_large"),
        ({"content": [{"type": "nothing"}]}, "bad_params"),
        ({"text": "a", "id": "1"}, "bad_id"),
        ({"text": "a", "delivery": "pigeon"}, "bad_params"),
    ],
)
async def test_a_prompt_that_is_none(rig: Rig, params: dict[str, Any], code: str) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        with pytest.raises(TrunklineError) as refused:
            await client.call("session.prompt", session=writer.session, **params)
        assert refused.value.code == code
        assert await rig.commands(writer.session) == []


async def test_prompts_to_sessions_that_are_not_open(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        with pytest.raises(TrunklineError) as refused:
            await client.call("session.prompt", session=new_session_id(), text="x")
        assert refused.value.code == "unknown_session"
        writer.append(SessionClosed(reason="done"))
        await writer.flush()
        await eventually(lambda: rig.running.gateway.directory.states[writer.session].closed)
        with pytest.raises(TrunklineError) as refused:
            await client.call("session.prompt", session=writer.session, text="x")
        assert refused.value.code == "session_closed"
        await client.call("session.command", session=writer.session, verb="resume")


async def test_an_interrupt_names_the_open_turn(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        with pytest.raises(TrunklineError) as refused:
            await client.call("session.interrupt", session=writer.session)
        assert refused.value.code == "stale_target"
        turn = begin_turn(writer)
        await writer.flush()
        await eventually(lambda: rig.running.gateway.directory.states[writer.session].turn)
        await client.call("session.interrupt", session=writer.session)
        with pytest.raises(TrunklineError) as refused:
            await client.call("session.interrupt", session=writer.session, turn="tur_" + "9" * 32)
        assert refused.value.code == "stale_target"
        ((_, command),) = await rig.commands(writer.session)
        assert (command.args, command.target) == (Interrupt(), turn)


async def test_commands_of_any_verb(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        await client.call("session.command", session=writer.session, verb="set_model", args={"model": "m"})
        await client.call("session.close", session=writer.session, reason="enough")
        assert [command.args for _, command in await rig.commands(writer.session)] == [
            SetModel(model="m"),
            Close(reason="enough"),
        ]
        for verb, args, field in [
            ("fly", {}, "verb"),
            ("set_model", {}, "args"),
            ("set_model", {"model": "m", "x": 1}, "args.x"),
            ("set_model", {"model": 1}, "args"),
        ]:
            with pytest.raises(TrunklineError) as refused:
                await client.call("session.command", session=writer.session, verb=verb, args=args)
            assert (refused.value.code, refused.value.details["field"]) == ("bad_params", field)


async def test_waiting_for_a_commands_outcome(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        id_ = new_command_id()
        call = asyncio.create_task(
            client.call("session.command", session=writer.session, verb="compact", id=id_, wait=True)
        )
        await eventually(lambda: rig.commands(writer.session))
        writer.append(CommandAccepted(command=id_, verb="compact", cmd_seq=1))
        writer.append(CommandFinished(command=id_, result={"before": 2}))
        await writer.flush()
        answer = await call
        assert (answer["outcome"], answer["result"]) == ("finished", {"before": 2})


async def test_a_log_that_is_nearly_full_begins_no_new_turn(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        for _ in range(20):
            writer.append(MessageSystem(text="x" * 50_000))
        turn = begin_turn(writer)
        await rig.settled(writer)
        await topology.apply(rig.bus.js, max_bytes=1_100_000)
        assert await rig.running.gateway.bus.capacity.look(rig.bus.js) > 0.85
        table: list[tuple[str, dict[str, Any]]] = [
            ("session.prompt", {"text": "x"}),
            ("session.command", {"verb": "steer", "args": {"content": [{"type": "text", "text": "x"}]}}),
            ("session.command", {"verb": "compact"}),
        ]
        for method, params in table:
            with pytest.raises(TrunklineError) as refused:
                await client.call(method, session=writer.session, **params)
            assert refused.value.code == "log_full", method
        # what ends something still gets through
        await client.call("session.interrupt", session=writer.session, turn=turn)
        await client.call("session.close", session=writer.session)


async def test_history_in_pages(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        for number in range(1, 41):
            turn = begin_turn(writer, number)
            say(writer, f"itm_{number:032x}", f"answer {number}", turn=turn)
            end_turn(writer, turn)
        await writer.flush()
        total = 1 + 40 * 4
        latest = await client.call("session.history", session=writer.session, limit=100)
        assert (latest["total"], latest["has_more"]) == (total, True)
        assert [event["event"]["seq"] for event in latest["events"]] == list(range(total - 99, total + 1))
        older = await client.call(
            "session.history", session=writer.session, limit=100, before=latest["events"][0]["cursor"]
        )
        assert [event["event"]["seq"] for event in older["events"]] == list(range(1, total - 99))
        assert not older["has_more"]
        after = await client.call(
            "session.history", session=writer.session, limit=5, after=older["events"][2]["cursor"]
        )
        assert [event["event"]["seq"] for event in after["events"]] == [4, 5, 6, 7, 8]
        assert after["has_more"]
