"""Putting messages into streams, in order, without the rules of a SessionWriter."""

import asyncio
import itertools

from trunkline_bus import leader
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.mux import Lost, NoAnswer
from trunkline_testkit.nats import NatsServer
from trunkline_wire import subjects
from trunkline_wire.ids import new_event_id


async def put(bus: Bus, subject: str, body: bytes, *, id: str | None = None, type: str = "message.assistant") -> int:
    """Store one message; its sequence."""
    headers = {subjects.HEADER_ID: id or new_event_id(), subjects.HEADER_TYPE: type}
    answer = await leader.publish(bus.mux, subject, body, headers)
    assert isinstance(answer, int), answer
    return answer


async def fill(bus: Bus, subject: str, bodies: list[bytes], *, in_flight: int = 200) -> list[int]:
    """Store messages in this order; their sequences."""
    sequences: list[int] = []
    for start in range(0, len(bodies), in_flight):
        sequences += await asyncio.gather(*(put(bus, subject, body) for body in bodies[start : start + in_flight]))
    return sequences


async def insist(bus: Bus, subject: str, body: bytes) -> None:
    """Store one message, over a server that is killed: it may be stored more than once, as a client without OCC would."""
    for tries in itertools.count():
        try:
            await put(bus, subject, body)
            return
        except (Lost, NoAnswer, AssertionError):
            await leader.pause(bus.mux, tries)


async def write_elsewhere(server: NatsServer, subject: str, count: int) -> None:
    """Write while a reader can't connect: on another port."""
    other = NatsServer(store=server.store)
    await asyncio.to_thread(other.start)
    try:
        async with Bus.open(BusSettings(url=other.url)) as bus:
            await fill(bus, subject, [b"other"] * count)
    finally:
        await asyncio.to_thread(other.stop)
