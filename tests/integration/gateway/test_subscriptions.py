"""Live events, snapshots, and coming back by cursor."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.gateway.rig import AGENT, Rig, apply_texts, ask, begin_turn, end_turn, say

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.writer import SessionWriter
from trunkline_gateway.app import serving
from trunkline_gateway.cursors import position
from trunkline_gateway.settings import GatewaySettings
from trunkline_testkit import eventually
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_session_id
from trunkline_wire.turn import ToolProgress

FROM_START: dict[str, Any] = {"from": "start"}
FROM_NOW: dict[str, Any] = {"from": "now"}
ITEM = "itm_" + "a" * 32
OTHER = "itm_" + "b" * 32


def seqs(client: Client) -> list[int]:
    return [event["seq"] for event in client.events() if "seq" in event]


@pytest.fixture
def second_home() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="tl-home-"))
    yield path
    shutil.rmtree(path)


async def test_a_turn_is_seen_as_it_happens(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        opened = await client.call("subscribe", session=writer.session)
        assert opened["snapshot"]["state"]["status"] == "idle"
        assert (opened["snapshot"]["asks"], opened["snapshot"]["blocks"]) == ([], [])
        turn = begin_turn(writer)
        await writer.flush()
        writer.piece(ITEM, 0, "text", "Hel", turn=turn)
        await client.wait("message.delta")
        writer.piece(ITEM, 0, "text", "lo", turn=turn)
        await client.wait("message.delta", lambda e: e["data"]["text"].endswith("lo"))
        say(writer, ITEM, "Hello", turn=turn)
        end_turn(writer, turn)
        await client.wait("turn.completed")
        types = [frame["event"] for frame in client.frames if frame["type"] == "event"]
        assert types[:2] == ["message.user", "turn.started"]
        assert types[-2:] == ["message.assistant", "turn.completed"]
        assert set(types[2:-2]) == {"message.delta"}
        assert apply_texts([f for f in client.frames if f["event"] == "message.delta"]) == {(ITEM, 0): "Hello"}
        assert {frame["subscription"] for frame in client.frames} == {opened["subscription"]}


@pytest.mark.parametrize("watching", ["before the claim", "after it"])
async def test_pieces_of_a_fenced_owner_are_not_shown(rig: Rig, watching: str) -> None:
    async with await rig.session() as old, await rig.client() as client:
        if watching == "before the claim":
            await client.call("subscribe", session=old.session)
        turn = begin_turn(old)
        await old.flush()
        async with await SessionWriter.claim(rig.bus, old.session, worker="wrk_y", host="hst_x", agent=AGENT) as new:
            if watching == "after it":
                end_turn(new, turn)
            await rig.settled(new)
            if watching == "after it":
                await client.call("subscribe", session=old.session)
            old.piece(ITEM, 0, "text", "of the dead", turn=turn)
            new.piece(OTHER, 0, "text", "of the living", turn=turn)
            await client.wait("message.delta", lambda e: e["item"] == OTHER)
        assert {event["item"] for event in client.events() if event["type"] == "message.delta"} == {OTHER}


async def test_what_streams_is_in_the_snapshot_of_who_comes_later(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as first, await rig.client() as second:
        turn = begin_turn(writer)
        await writer.flush()
        writer.piece(ITEM, 0, "text", "done", turn=turn)
        say(writer, ITEM, "done", turn=turn)
        await writer.flush()
        writer.piece(OTHER, 0, "thinking", "so far", turn=turn)
        writer.progress(ToolProgress(elapsed_s=1.0, output="out"), item=ITEM[:-1] + "c", turn=turn)

        # nobody has watched the session yet: the blocks come from the stream of deltas
        async def streamed() -> bool:
            async with await rig.client() as early:
                snapshot = (await early.call("subscribe", session=writer.session))["snapshot"]
                return snapshot["blocks"] == [
                    {
                        "session": writer.session,
                        "item": OTHER,
                        "block": 0,
                        "kind": "thinking",
                        "text": "so far",
                        "turn": turn,
                    }
                ]

        await eventually(streamed)
        await first.call("subscribe", session=writer.session)
        await first.wait("tool.progress")
        writer.piece(OTHER, 0, "thinking", ", and on", turn=turn)
        await first.wait("message.delta", lambda e: e["data"]["text"].endswith("and on"))
        snapshot = (await second.call("subscribe", session=writer.session))["snapshot"]
        assert [block["text"] for block in snapshot["blocks"]] == ["so far, and on"]
        assert snapshot["state"]["turn"]["id"] == turn


async def test_from_the_start_from_now_and_by_pattern(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        turn = begin_turn(writer)
        say(writer, ITEM, "one", turn=turn)
        await rig.settled(writer)
        whole = await client.call("subscribe", session=writer.session, **FROM_START)
        assert "snapshot" not in whole
        await eventually(lambda: seqs(client) == [1, 2, 3, 4])
        await client.call("unsubscribe", subscription=whole["subscription"])
        client.frames.clear()

        await client.call("subscribe", session=writer.session, patterns=["turn.*", "message.user"], **FROM_NOW)
        end_turn(writer, turn)
        await client.wait("turn.completed")
        assert seqs(client) == [5]


async def test_all_sessions_at_once(rig: Rig) -> None:
    async with await rig.session() as one, await rig.client() as client:
        opened = await client.call("subscribe", patterns=["session.*"])
        assert [state["session"] for state in opened["snapshot"]["sessions"]] == [one.session]
        async with await rig.session() as two:
            begin_turn(one)
            turn = begin_turn(two)
            await two.flush()
            two.piece(ITEM, 0, "text", "x", turn=turn)
            await client.wait("session.created", session=two.session)
            await client.wait("turn.started", session=one.session)
            await client.wait("message.delta", session=two.session)


async def test_unknown_things_are_refused(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        table: list[tuple[dict[str, Any], str]] = [
            ({"session": new_session_id()}, "unknown_session"),
            ({"session": "ses_x"}, "bad_id"),
            ({"session": writer.session, "cursor": "AAAA"}, "bad_cursor"),
            ({"session": writer.session, "cursor": "\u20ac"}, "bad_cursor"),
            ({"patterns": ["a b"]}, "bad_params"),
            ({"patterns": []}, "bad_params"),
            ({"from": "yesterday"}, "bad_params"),
        ]
        for params, code in table:
            with pytest.raises(TrunklineError) as refused:
                await client.call("subscribe", **params)
            assert refused.value.code == code, params
        with pytest.raises(TrunklineError) as refused:
            await client.call("unsubscribe", subscription="sub_9")
        assert refused.value.code == "bad_params"


async def test_a_cursor_resumes_over_a_restart_as_if_one_had_never_left(rig: Rig) -> None:
    async with await rig.session() as writer:
        stayed = await rig.client()
        left = await rig.client()
        for client in (stayed, left):
            await client.call("subscribe", session=writer.session, **FROM_START)
        turn = begin_turn(writer)
        await writer.flush()
        await left.wait("turn.started")
        cursor = left.cursor
        await left.close()
        await stayed.wait("turn.started")
        old_frames = list(stayed.frames)
        old_cursor = stayed.cursor
        await stayed.close()

        # much happens while the gateway is away, deltas of finished blocks among it
        await rig.stop_gateway()
        for number in range(300):
            item = f"itm_{number:032x}"
            if number % 50 == 0:
                await writer.flush()
                writer.piece(item, 0, "text", f"piece {number} and", turn=turn)
            say(writer, item, f"piece {number} and more", turn=turn)
        id_ = ask(writer, "toolu_1", turn)
        await writer.flush()
        writer.piece(ITEM, 0, "text", "open €🙂 ", turn=turn)
        await rig.start_gateway()

        for start, before in ((cursor, []), (old_cursor, old_frames)):
            client = await rig.client()
            opened = await client.call("subscribe", session=writer.session, cursor=start)
            assert "gap" not in opened
            assert "snapshot" not in opened
            await client.wait("permission.requested")
            await client.wait("message.delta")
            await eventually(lambda c=client: (ITEM, 0) in apply_texts(c.frames))
            writer.piece(ITEM, 0, "text", "x", turn=turn)
            frames = before + client.frames
            facts = [f["payload"]["seq"] for f in client.frames if f["event"] != "message.delta"]
            assert facts == list(range(4, 3 + 300 + 1 + 1))
            deltas = [f["payload"]["item"] for f in client.frames if f["event"] == "message.delta"]
            assert set(deltas) == {ITEM}
            texts = apply_texts(frames)
            assert texts[ITEM, 0].startswith("open €🙂 ")
            assert texts["itm_" + f"{299:032x}", 0] == "piece 299 and more"
            assert (await client.call("ask.list", session=writer.session))["asks"][0]["ask"] == id_
            await client.close()


async def test_a_cursor_works_at_every_gateway_of_the_log(rig: Rig, second_home: Path) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        await client.call("subscribe", session=writer.session, **FROM_START)
        begin_turn(writer)
        await client.wait("turn.started")
        cursor = client.cursor
        begin_turn(writer, 2)
        await writer.flush()
        async with (
            Bus.open(BusSettings(url=rig.server.url)) as bus,
            serving(bus, GatewaySettings(home=second_home, port=0)) as second,
            await Client.connect("http://localhost", socket=str(second.socket)) as elsewhere,
        ):
            await elsewhere.call("subscribe", session=writer.session, cursor=cursor)
            await elsewhere.wait("turn.started")
            assert seqs(elsewhere) == [4, 5]


async def test_a_cursor_of_another_scope_is_a_gap_with_a_snapshot(rig: Rig) -> None:
    async with await rig.session() as one, await rig.session() as two, await rig.client() as client:
        cursor = (await client.call("subscribe", session=one.session))["cursor"]
        opened = await client.call("subscribe", session=two.session, cursor=cursor)
        assert opened["gap"]["reason"] == "scope_changed"
        assert opened["snapshot"]["state"]["session"] == two.session
        await eventually(lambda: [f for f in client.frames if f["event"] == "gap"])
        begin_turn(two)
        await client.wait("turn.started", session=two.session)
        assert [e["seq"] for e in client.events(session=two.session)] == [2, 3]


async def test_a_cursor_too_far_back_is_a_gap(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_bus.cursor.TOO_FAR", 10)
    async with await rig.session() as writer, await rig.client() as client:
        cursor = (await client.call("subscribe", session=writer.session))["cursor"]
        for number in range(6):
            begin_turn(writer, number)
        await rig.settled(writer)
        opened = await client.call("subscribe", session=writer.session, cursor=cursor)
        assert opened["gap"]["reason"] == "too_far"
        assert opened["snapshot"]["state"]["seq"] == 13


async def test_a_log_that_was_made_anew_is_a_gap_for_who_watches(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        begin_turn(writer)
        await rig.settled(writer)
        await client.call("subscribe")
        await rig.bus.js.delete_stream("EVENTS")
        await topology.apply(rig.bus.js, max_bytes=256 * 1024 * 1024)
        frame = await eventually(lambda: [f for f in client.frames if f["event"] == "gap"], 40)
        assert frame[0]["payload"]["reason"] == "log_diverged"
        assert frame[0]["payload"]["snapshot"]["sessions"] == []
        async with await rig.session() as again:
            await client.wait("session.created", session=again.session)


async def test_heartbeats_move_the_cursor_of_an_idle_client(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_gateway.ws.HELLO_S", 0.05)
    monkeypatch.setattr("trunkline_gateway.ws.HEARTBEAT_S", 0.1)
    async with await rig.session() as idle, await rig.session() as busy, await rig.client() as client:
        await client.call("subscribe", session=idle.session)
        begin_turn(busy)
        await rig.settled(busy)
        beats: list[dict[str, Any]] = await eventually(
            lambda: [f for f in client.frames if f["type"] == "heartbeat" and "cursor" in f][2:]
        )
        moved = position(rig.running.gateway.cursors.read(beats[-1]["cursor"]))
        assert moved == rig.running.gateway.directory.position
        opened = await client.call("subscribe", session=idle.session, cursor=beats[-1]["cursor"])
        assert "gap" not in opened


async def test_many_clients_of_many_sessions(rig: Rig) -> None:
    async def watch(session: str) -> list[int]:
        async with await rig.client() as client:
            await client.call("subscribe", session=session, **FROM_START)
            await client.wait("turn.completed", count=20)
            return seqs(client)

    async with await rig.session() as one, await rig.session() as two:
        watchers = [asyncio.create_task(watch(w.session)) for w in (one, two) for _ in range(10)]
        for number in range(1, 21):
            for writer in (one, two):
                end_turn(writer, begin_turn(writer, number))
            await one.flush()
        for found in await asyncio.gather(*watchers):
            assert found == list(range(1, 62))
