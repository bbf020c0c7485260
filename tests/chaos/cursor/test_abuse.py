"""Cursors that can't be honoured: each ends in a named gap with a snapshot or in a stable error, never in silence."""

import asyncio
import base64
from typing import Any

import pytest
from tests.integration.gateway.rig import Rig, ask, begin_turn, end_turn, say

from trunkline_bus import direct, topology
from trunkline_bus.connection import Bus
from trunkline_bus.stored import Stored
from trunkline_gateway.base import Base
from trunkline_gateway.directory import Directory
from trunkline_testkit import eventually
from trunkline_testkit.model_client import ModelClient
from trunkline_testkit.product import Client
from trunkline_wire import Event, TrunklineError, subjects
from trunkline_wire.session import SessionErased

pytestmark = pytest.mark.chaos

ITEM = "itm_" + "a" * 32
FROM_START: dict[str, Any] = {"from": "start"}


async def open_at(client: Client, **params: Any) -> ModelClient:
    """Subscribes; a model that has the answer, and gets the frames from then on."""
    model = ModelClient(gapless="patterns" not in params)
    opened = await client.call("subscribe", **params)
    model.feed({"type": "opened", "payload": opened})
    return model


def feed_all(model: ModelClient, client: Client) -> ModelClient:
    for frame in client.frames:
        model.feed(frame)
    client.frames.clear()
    return model


async def test_a_cursor_of_some_types_does_not_skip_the_others(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        opened = await client.call("subscribe", session=writer.session, patterns=["ask.*"], **FROM_START)
        cursor = opened["cursor"]
        turn = begin_turn(writer)
        ask(writer, "one", turn)
        say(writer, ITEM, "between", turn=turn)
        await rig.settled(writer)
        await rig.decide_asks()
        asked = (await client.call("ask.list", session=writer.session))["asks"][0]["ask"]
        await client.call("ask.answer", ask=asked, session=writer.session, behaviour="allow")
        await client.wait("ask.decided")
        assert client.cursor is not None
        narrow = client.cursor
        for old in (cursor, narrow):
            for patterns in (["*"], ["ask.*", "message.*"], ["turn.*"]):
                async with await rig.client() as other:
                    wider = await other.call("subscribe", session=writer.session, patterns=patterns, cursor=old)
                    assert wider["gap"]["reason"] == "scope_changed", patterns
                    assert wider["snapshot"]["state"]["session"] == writer.session
                    # the cursor given with the gap holds for what is wanted now
                    again = await other.call(
                        "subscribe", session=writer.session, patterns=patterns, cursor=wider["cursor"]
                    )
                    assert "gap" not in again
            async with await rig.client() as other:
                same = await other.call("subscribe", session=writer.session, patterns=["ask.*", "ask.*"], cursor=old)
                assert "gap" not in same


async def test_a_cursor_of_every_type_holds_for_some_of_them(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        async with await rig.client() as wide:
            cursor = (await wide.call("subscribe", session=writer.session, **FROM_START))["cursor"]
        end_turn(writer, begin_turn(writer))
        await rig.settled(writer)
        model = await open_at(client, session=writer.session, patterns=["turn.*"], cursor=cursor)
        assert not model.gaps
        await client.wait("turn.completed")
        # resumed in turn with what the narrow frames gave
        last = client.cursor
        assert (await client.call("subscribe", session=writer.session, patterns=["turn.*"], cursor=last)).get(
            "gap"
        ) is None
        wider = await client.call("subscribe", session=writer.session, cursor=last)
        assert wider["gap"]["reason"] == "scope_changed"


async def test_forged_and_cut_cursors_are_refused(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        cursor: str = (await client.call("subscribe", session=writer.session, **FROM_START))["cursor"]
        body = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        moved = bytearray(body)
        moved[len(moved) // 2] ^= 1
        forged = [
            *(cursor[:cut] for cut in range(1, len(cursor), 7)),
            cursor + "A",
            cursor + "=",
            cursor.swapcase(),
            base64.urlsafe_b64encode(bytes(moved)).rstrip(b"=").decode(),
            base64.urlsafe_b64encode(body[:-16]).rstrip(b"=").decode(),
            "0",
            "-1",
            " ",
            "x" * 10_000,
        ]
        for bad in forged:
            with pytest.raises(TrunklineError) as refused:
                await client.call("subscribe", session=writer.session, cursor=bad)
            assert refused.value.code == "bad_cursor", bad[:80]


async def test_a_cursor_from_beyond_the_end_is_a_gap(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        await rig.settled(writer)
        end = await direct.end(rig.bus, subjects.EVENTS)
        beyond = rig.running.gateway.cursors.at(writer.session, end + 1, None)
        model = await open_at(client, session=writer.session, cursor=beyond)
        assert model.gaps == ["log_diverged"]
        begin_turn(writer)
        await client.wait("turn.started")
        assert feed_all(model, client).missing == []
        assert [fact["seq"] for fact in model.facts.values()] == [2, 3]


async def test_a_place_where_another_event_stands_is_a_gap(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        await rig.settled(writer)
        end = await direct.end(rig.bus, subjects.EVENTS)
        other = rig.running.gateway.cursors.at(writer.session, end, "01890000-0000-7000-8000-000000000000")
        assert (await open_at(client, session=writer.session, cursor=other)).gaps == ["log_diverged"]


class Hold:
    """Stops a call before it begins until released."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = await self._real(*args, **kwargs)
        self.reached.set()
        await self.go.wait()
        return result


async def test_a_log_that_goes_back_while_a_client_comes_in_is_a_gap(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        for number in range(1, 9):
            end_turn(writer, begin_turn(writer, number))
        await rig.settled(writer)
        cursor = (await client.call("subscribe", session=None))["cursor"]
    gateway = rig.running.gateway
    held = Hold(gateway.cursors.verify)
    monkeypatch.setattr(gateway.cursors, "verify", held)
    # somebody watches already, so that the channel stays
    async with await rig.client() as watcher, await rig.client() as client:
        await watcher.call("subscribe")
        coming = asyncio.create_task(open_at(client, cursor=cursor))
        await held.reached.wait()
        await rig.bus.js.delete_stream("EVENTS")
        await topology.apply(rig.bus.js, max_bytes=256 * 1024 * 1024)
        await eventually(lambda: gateway.directory.position == 0 or None, 40)
        async with await rig.session() as again:
            # the new log reaches farther than the old one did
            for number in range(1, 11):
                end_turn(again, begin_turn(again, number))
            await eventually(lambda: gateway.directory.ready.is_set() and gateway.directory.position == 31, 40)
            held.go.set()
            model = await coming
            await client.wait("gap")
            end_turn(again, begin_turn(again, 11))
            await client.wait("turn.completed", lambda e: e["seq"] == 34)
            assert feed_all(model, client).gaps == ["log_diverged"]
            assert [fact["seq"] for fact in model.facts.values()] == [32, 33, 34]


async def test_what_a_gateway_took_from_the_projections_is_read_from_the_log(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        cursor = (await client.call("subscribe", session=writer.session, **FROM_START))["cursor"]
        for number in range(1, 5):
            end_turn(writer, begin_turn(writer, number))
        await rig.settled(writer)
        directory = rig.running.gateway.directory
        base = Base(position=directory.position - 2, states=dict(directory.states))

        async def load(_: Bus) -> Base:
            return base

        # the next event is the end of that Reader
        monkeypatch.setattr("trunkline_gateway.directory.load_base", load)
        directory.listeners.insert(0, regress := Regress(directory))
        begin_turn(writer, 5)
        await client.wait("gap")
        assert regress.done
        async with await rig.client() as other:
            model = await open_at(other, session=writer.session, cursor=cursor)
            await eventually(lambda: len(feed_all(model, other).facts) >= 15 or model.gaps)
            assert model.missing == []
            assert [fact["seq"] for fact in model.facts.values()] == list(range(1, 16))


class Regress:
    """A listener by which the directory learns once that the log went back."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.done = False

    def on_stored(self, session: str, stored: Stored) -> None:  # noqa: ARG002  # a listener's signature
        self.done = True
        self._directory.listeners.remove(self)
        raise TrunklineError("log_regressed", "the log went back")

    def on_folded(self, event: Event) -> None: ...

    def on_begun(self) -> None: ...

    def on_diverged(self) -> None: ...


async def test_what_was_erased_is_named_and_nothing_else_is_missed(rig: Rig) -> None:
    async with await rig.session() as kept, await rig.client() as client:
        async with await rig.session() as leaked:
            begin_turn(leaked)
            await rig.settled(leaked)
            of_leaked = (await client.call("subscribe", session=leaked.session))["cursor"]
            begin_turn(kept)
            await rig.settled(kept)
            of_all = (await client.call("subscribe"))["cursor"]
            leaked.append(SessionErased(by="operator"))
            await rig.settled(leaked)
            await rig.bus.js.purge_stream(subjects.EVENTS, subject=subjects.session_events(leaked.session), keep=1)
        end_turn(kept, "tur_" + "1".zfill(32))
        await rig.settled(kept)
        async with await rig.client() as other:
            opened = await other.call("subscribe", session=leaked.session, cursor=of_leaked)
            assert opened["gap"]["reason"] == "erased"
            assert "snapshot" in opened
        async with await rig.client() as other:
            model = await open_at(other, cursor=of_all)
            await other.wait("turn.completed")
            assert feed_all(model, other).gaps == []
            assert [fact["seq"] for fact in model.facts.values() if fact["session"] == kept.session] == [4]


async def test_a_page_behind_a_cursor_of_another_log_is_refused(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        await rig.settled(writer)
        cursor = rig.running.gateway.cursors.at(writer.session, 1, None)
        assert (await client.call("session.history", session=writer.session, after=cursor))["events"] == []
        await rig.bus.js.delete_stream(subjects.EVENTS)
        await topology.apply(rig.bus.js, max_bytes=256 * 1024 * 1024)
        await eventually(lambda: rig.running.gateway.directory.position == 0, 40)
        async with await rig.session() as again:
            await eventually(lambda: rig.running.gateway.directory.position == 1, 40)
            for where in ({"after": cursor}, {"before": cursor}):
                params: dict[str, Any] = {"session": again.session, **where}
                with pytest.raises(TrunklineError) as refused:
                    await client.call("session.history", **params)
                assert refused.value.code == "bad_cursor"
