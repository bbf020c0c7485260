"""The command line's own client and the event stream over HTTP, by the same model."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator
from typing import Final

import aiohttp
import pytest
from tests.chaos.soak.load import stretch
from tests.integration.gateway.rig import Rig, begin_turn, end_turn, say

from trunkline_bus.writer import SessionWriter
from trunkline_client import Address, Broken, Gap, Link, Notice, Received, Snapshot
from trunkline_testkit import eventually
from trunkline_testkit.model_client import Frame, ModelClient

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180)]

TURNS: Final = 40
FACTS: Final = 1 + 4 * TURNS


async def talk(writer: SessionWriter, turns: int = TURNS) -> None:
    """Turns with streamed text, one after the other."""
    for number in range(1, turns + 1):
        turn, item = begin_turn(writer, number), f"itm_{number:032x}"
        await writer.flush()
        for _ in range(4):
            writer.piece(item, 0, "text", "wörd 😀 ", turn=turn)
            await asyncio.sleep(0.01)
        say(writer, item, "wörd 😀 " * 4, turn=turn)
        end_turn(writer, turn)
        await writer.flush()


def check(model: ModelClient, last: int) -> None:
    assert [fact["seq"] for fact in model.facts.values()] == list(range(1, last + 1))
    assert (model.gaps, model.missing, model.repeated, model.replayed, model.wrong) == ([], [], 0, 0, [])
    assert model.blocks == {}
    assert set(model.texts.values()) == {"wörd 😀 " * 4}


def feed(model: ModelClient, notice: Notice) -> None:
    match notice:
        case Received(event=event, cursor=cursor):
            model.feed({"type": "event", "event": event["type"], "cursor": cursor, "payload": event})
        case Gap(payload=payload):
            model.gaps.append(payload["reason"])
        case _:
            pass


async def test_the_command_line_misses_nothing_over_restarts_of_the_gateway(rig: Rig) -> None:
    model, breaks = ModelClient(), 0

    async def follow(link: Link, session: str) -> None:
        nonlocal breaks
        async for notice in link.watch(session=session, start="start"):
            breaks += notice == Broken(mended=True)
            feed(model, notice)

    async with (
        await rig.session() as writer,
        Link(lambda: Address(url="http://localhost", socket=rig.running.socket)) as link,
    ):
        following = asyncio.create_task(follow(link, writer.session))
        talking = asyncio.create_task(talk(writer))
        for number in (20, 60, 100):
            await eventually(lambda n=number: following.done() or len(model.facts) >= n, 30 * stretch())
            await rig.restart_gateway()
        await talking
        await eventually(lambda: following.done() or len(model.facts) >= writer.seq, 30 * stretch())
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        check(model, writer.seq)
        assert breaks == 3


async def test_the_command_line_waits_for_a_gateway_that_can_not_read_the_log_yet(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline_gateway.dispatch.READY_S", 0.05)
    notices: list[Notice] = []

    async def follow(link: Link, session: str) -> None:
        async for notice in link.watch(session=session):
            notices.append(notice)  # noqa: PERF401 - they are looked at as they come

    async with (
        await rig.session() as writer,
        Link(lambda: Address(url="http://localhost", socket=rig.running.socket)) as link,
    ):
        following = asyncio.create_task(follow(link, writer.session))
        await eventually(lambda: any(isinstance(notice, Snapshot) for notice in notices))
        await rig.restart_gateway()
        ready = rig.running.gateway.directory.ready
        await ready.wait()
        ready.clear()
        refused = len(notices)
        await eventually(lambda: following.done() or rig.running.routes.clients)
        await asyncio.sleep(0.3)
        assert not following.done(), following.exception()
        ready.set()
        begin_turn(writer)
        await eventually(lambda: following.done() or any(isinstance(n, Received) for n in notices[refused:]), 20)
        assert not following.done()
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following


async def sse(answer: aiohttp.ClientResponse) -> AsyncIterator[Frame]:
    """Frames of an event stream; a line without its event's end is none."""
    fields: dict[str, str] = {}
    async for raw in answer.content:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        cursor = {"cursor": fields["id"]} if "id" in fields else {}
        if fields.get("event") == "subscribed":
            yield {"type": "opened", "payload": json.loads(fields["data"])} | cursor
        elif "data" in fields:
            yield {"type": "event", "event": fields["event"], "payload": json.loads(fields["data"])} | cursor
        else:
            yield {"type": "heartbeat"} | cursor
        fields = {}


async def test_an_event_stream_is_resumed_by_its_last_event_id(rig: Rig) -> None:
    model, chance, resumes = ModelClient(), random.Random(7), 0

    async def visit(session: str, frames: int) -> None:
        nonlocal resumes
        headers = {"Authorization": f"Bearer {rig.token}"}
        query = f"session={session}"
        if model.cursor is None:
            query += "&from=start"
        else:
            headers["Last-Event-ID"] = model.cursor
        async with (
            aiohttp.ClientSession(headers=headers) as http,
            http.get(f"{rig.running.url}/api/v1/events?{query}") as answer,
        ):
            async for frame in sse(answer):
                resumes += frame["type"] == "opened" and "Last-Event-ID" in headers
                model.feed(frame)
                frames -= 1
                if frames <= 0 or len(model.facts) == FACTS:
                    return

    async with await rig.session() as writer:
        talking = asyncio.create_task(talk(writer))
        restarts = iter((60, 120, 10_000))
        restart = next(restarts)
        async with asyncio.timeout(60 * stretch()):
            while len(model.facts) < FACTS:
                with contextlib.suppress(aiohttp.ClientError):
                    await visit(writer.session, chance.randrange(1, 20))
                if len(model.facts) > restart:
                    await rig.restart_gateway()
                    restart = next(restarts)
        await talking
        check(model, writer.seq)
        assert resumes >= 20
