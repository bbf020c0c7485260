"""Events of extensions in a history, and events by cursor for who asks."""

import json
from typing import Any

import nats
from nats.aio.client import Client as Nats
from tests.integration.gateway.rig import Rig, ask, begin_turn, end_turn, say

from trunkline_bus import direct
from trunkline_bus.reader import read_session
from trunkline_fold.check import check_session
from trunkline_fold.session import fold_session, initial
from trunkline_wire import Source, subjects
from trunkline_wire.ids import new_command_id
from trunkline_wire.turn import TurnCompleted, TurnStarted


async def request(connection: Nats, right: str, method: str, **params: Any) -> Any:
    reply = await connection.request(f"trunk.api.bot.{right}.{method}", json.dumps(params).encode(), timeout=20)
    answer = json.loads(reply.data)
    assert answer["ok"], answer
    return answer["payload"]


async def test_an_event_of_an_extension_is_in_the_history_and_no_state(rig: Rig) -> None:
    writer = await rig.session()
    turn = begin_turn(writer)
    await rig.settled(writer)
    before = rig.running.gateway.directory.states[writer.session]
    connection = await nats.connect(rig.server.url)
    async with await rig.client() as client:
        await client.call("subscribe", session=writer.session, patterns=["ext.*"])
        again = new_command_id()
        wanted = {"session": writer.session, "kind": "build.failed", "data": {"log": "x"}, "id": again}
        first = await request(connection, "emit", "extension.emit", **wanted)
        assert await request(connection, "emit", "extension.emit", **wanted) == first
        frame = await client.wait("ext.bot.build.failed")
        assert frame["data"] == {"log": "x"}
        assert frame["source"] == {"actor": "ext:bot", "via": "nats"}
        assert frame["id"].replace("-", "") == again.removeprefix("cmd_")
    say(writer, f"itm_{2:032x}", "done", turn=turn)
    end_turn(writer, turn)
    await rig.settled(writer)
    after = rig.running.gateway.directory.states[writer.session]
    assert (before.status, after.status, after.turns) == ("running", "idle", 1)
    stored = await read_session(rig.bus, writer.session)
    assert check_session([(one.sequence, one.subject, one.event()) for one in stored]) == []
    state = initial(writer.session)
    for one in stored:
        state = fold_session(state, one.event(), one.sequence)
    assert state == after
    assert await direct.last(rig.bus, subjects.EVENTS, subjects.event(writer.session, "ext")) is not None
    await connection.close()
    await writer.close()


async def test_events_are_given_above_a_cursor_each_once(rig: Rig) -> None:
    writer = await rig.session()
    await rig.settled(writer)
    wanted: dict[str, Any] = {"patterns": ["permission.requested", "turn.*"]}
    async with await rig.client() as client:
        at = (await client.call("event.list", **wanted))["cursor"]
        assert (await client.call("event.list", after=at, **wanted))["events"] == []
        turn = begin_turn(writer)
        ask(writer, "one", turn)
        end_turn(writer, turn)
        await rig.settled(writer)
        seen: list[str] = []
        for _ in range(4):
            page = await client.call("event.list", after=at, limit=1, wait=0.1, **wanted)
            seen += [one["event"]["type"] for one in page["events"]]
            at = page["cursor"]
        assert seen == ["turn.started", "permission.requested", "turn.completed"]
        assert (await client.call("event.list", after=at, patterns=["session.created"])).get("gap") is not None
    await writer.close()


async def test_a_turn_comes_back_to_the_route_of_its_prompt(rig: Rig) -> None:
    writer = await rig.session()
    await rig.settled(writer)
    connection = await nats.connect(rig.server.url)
    at = (await request(connection, "participant", "event.list", routed=True))["cursor"]
    await request(connection, "participant", "session.prompt", session=writer.session, text="hi", route="chat 7")
    ((_, command),) = await rig.commands(writer.session)
    assert command.source is not None
    assert command.source.route == "bot/chat 7"
    for number, source in enumerate((command.source, Source(actor="amy"), Source(actor="ext:x", route="other/1")), 1):
        writer.append(TurnStarted(number=number), turn=f"tur_{number:032x}", source=source)
        writer.append(TurnCompleted(outcome="success"), turn=f"tur_{number:032x}", source=source)
    await rig.settled(writer)
    page = await request(connection, "participant", "event.list", after=at, routed=True, patterns=["turn.completed"])
    assert [one["event"]["turn"] for one in page["events"]] == [f"tur_{1:032x}"]
    assert page["events"][0]["event"]["source"]["route"] == "bot/chat 7"
    # The cursor is beyond what was for others.
    assert (await request(connection, "participant", "event.list", after=page["cursor"], routed=True))["events"] == []
    status, problem = await rig.post(
        "session.prompt", {"session": writer.session, "text": "x", "route": "bot/1"}, token=rig.token
    )
    assert (status, problem["code"]) == (403, "forbidden")
    await connection.close()
    await writer.close()
