"""A device that is cut off again and again, anywhere between its handshake and a sentence, has what one has that never left."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.integration.gateway.rig import Rig, begin_turn, end_turn, say
from tests.integration.relay import stage
from tests.integration.relay.stage import Served

from trunkline_bus.tasks import end
from trunkline_bus.writer import SessionWriter
from trunkline_client import Address, Gap, Link, Paired, Received, Sealed
from trunkline_client.pairing import pair
from trunkline_relay.app import Host
from trunkline_seal.pairing import Link as PairingLink
from trunkline_testkit import eventually
from trunkline_testkit.model_client import ModelClient

WORDS: Final = "wörd 😀 "


async def paired(home: Path) -> Paired:
    """This program as a device of the host, whose person has compared the codes."""
    async with stage.offer(home) as asked:
        link, codes = PairingLink.parse((await asked.next())["link"]), asyncio.Queue[str]()
        pairing = asyncio.create_task(pair(link, "laptop", lambda code, _host: codes.put_nowait(code)))
        assert (await asked.next())["code"] == await codes.get()
        asked.say({"agree": True})
        return await pairing


async def talk(writer: SessionWriter, stop: asyncio.Event) -> None:
    """Turns with streamed text, one after the other, until it is enough."""
    number = 0
    while not stop.is_set():
        number += 1
        turn, item = begin_turn(writer, number), f"itm_{number:032x}"
        await writer.flush()
        for _ in range(4):
            writer.piece(item, 0, "text", WORDS, turn=turn)
            await asyncio.sleep(0.02)
        say(writer, item, WORDS * 4, turn=turn)
        end_turn(writer, turn)
        await writer.flush()


async def follow(link: Link, session: str, model: ModelClient) -> None:
    async for notice in link.watch(session=session, start="start"):
        if isinstance(notice, Received):
            event = notice.event
            model.feed({"type": "event", "event": event["type"], "cursor": notice.cursor, "payload": event})
        elif isinstance(notice, Gap):
            model.gaps.append(notice.payload["reason"])


@asynccontextmanager
async def following(address: Address, session: str, model: ModelClient) -> AsyncGenerator[asyncio.Task[None]]:
    async with Link(address) as link:
        task = asyncio.create_task(follow(link, session, model))
        try:
            yield task
            assert not task.done(), task.exception()
        finally:
            await end(task)


@pytest.mark.parametrize(
    "times", [50, pytest.param(500, marks=[pytest.mark.long, pytest.mark.timeout(600)])], ids=["short", "long"]
)
async def test_cut_off_at_any_point(rig: Rig, relay: Served, host: Host, times: int) -> None:
    assert host.line.ready
    chance = random.Random(times)
    left, stayed = ModelClient(), ModelClient()
    sealed = Sealed(await paired(rig.home))
    stop = asyncio.Event()
    cut = 0
    async with (
        await rig.session() as writer,
        following(Address(url="http://localhost", socket=rig.running.socket), writer.session, stayed),
        following(Address(url="", sealed=sealed), writer.session, left) as away,
    ):
        talking = asyncio.create_task(talk(writer, stop))
        while cut < times and not away.done():
            await asyncio.sleep(chance.random() * 0.1)
            for place in list(relay.switch.hosts.values()):
                for visit in list(place.visits.values()):
                    place.leave(visit, "a test")
                    cut += 1
        stop.set()
        await talking
        assert not away.done(), away.exception()
        for model in (stayed, left):
            await eventually(lambda model=model: len(model.facts) >= writer.seq, 60)
    for model in (stayed, left):
        assert [fact["seq"] for fact in model.facts.values()] == list(range(1, writer.seq + 1))
        assert (model.gaps, model.missing, model.repeated, model.replayed, model.wrong) == ([], [], 0, 0, [])
        assert model.blocks == {}
        assert set(model.texts.values()) == {WORDS * 4}
    assert left.texts == stayed.texts
    assert list(left.facts) == list(stayed.facts)
