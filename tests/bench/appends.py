"""Appends: SessionWriter against plain `js.publish` with the same headers, bytes and number in flight."""

import asyncio

from nats.aio.client import Client
from tests.bench.report import Figure, turns

from trunkline_bus.connection import Bus
from trunkline_bus.writer import SessionWriter
from trunkline_wire import AgentRef, encode, make_event, subjects, timestamp
from trunkline_wire.blocks import TextBlock
from trunkline_wire.ids import new_host_id, new_session_id, new_worker_id
from trunkline_wire.session import SessionCreated
from trunkline_wire.turn import MessageAssistant

SIZE = 300
SEQUENTIAL = 1000
PER_SESSION = 50
SESSIONS = 64


def payload() -> MessageAssistant:
    return MessageAssistant(content=[TextBlock(text="x" * SIZE)])


async def new_writer(bus: Bus) -> SessionWriter:
    session = new_session_id()
    created = SessionCreated(adapter="bench", cwd="/", host=new_host_id(), workspace="ws_" + "0" * 32)
    return await SessionWriter.create(
        bus, created, session=session, worker=new_worker_id(), agent=AgentRef(adapter="bench")
    )


class Raw:
    """What a program would write without us: one message at a time, with the same fence and headers."""

    def __init__(self, plain: Client) -> None:
        self._js = plain.jetstream()
        self._session = new_session_id()
        self._expected = 0
        self._seq = 0

    async def publish(self) -> None:
        self._seq += 1
        event = make_event(payload(), session=self._session, time=timestamp(), seq=self._seq, epoch=1)
        ack = await self._js.publish(
            subjects.event(self._session, "agent.fact"),
            encode(event),
            headers={
                subjects.HEADER_ID: event.id,
                subjects.HEADER_TYPE: event.type,
                subjects.HEADER_EXPECTED: str(self._expected),
                subjects.HEADER_EXPECTED_FILTER: subjects.agent_fence(self._session),
            },
        )
        self._expected = ack.seq

    async def run(self, count: int) -> None:
        for _ in range(count):
            await self.publish()


async def ours(writer: SessionWriter, count: int) -> None:
    for _ in range(count):
        writer.append(payload())
        await writer.flush()


async def queued(writer: SessionWriter, count: int) -> None:
    for _ in range(count):
        writer.append(payload())
    await writer.flush()


async def prepare(bus: Bus) -> None:
    """Nothing: what is measured is the writing."""


async def measure(bus: Bus, plain: Client, _: None, setting: str) -> list[Figure]:
    raw_one, writer = Raw(plain), await new_writer(bus)
    limit, one = await turns(lambda: raw_one.run(SEQUENTIAL), lambda: ours(writer, SEQUENTIAL))
    await writer.close()

    raw_many = [Raw(plain) for _ in range(SESSIONS)]
    writers = [await new_writer(bus) for _ in range(SESSIONS)]
    limit_many, many = await turns(
        lambda: asyncio.gather(*(raw.run(PER_SESSION) for raw in raw_many)),
        lambda: asyncio.gather(*(queued(writer, PER_SESSION) for writer in writers)),
    )
    for writer in writers:
        await writer.close()
    total = SESSIONS * PER_SESSION
    return [
        Figure(
            name=f"appends, one session ({setting})",
            unit="/s",
            value=SEQUENTIAL / one.wall,
            limit=SEQUENTIAL / limit.wall,
            limit_name="js.publish",
            goal=0.8,
            at_least=True,
            note=f"CPU {one.cpu / SEQUENTIAL * 1e6:.0f} against {limit.cpu / SEQUENTIAL * 1e6:.0f} us an event",
        ),
        Figure(
            name=f"appends, {SESSIONS} sessions ({setting})",
            unit="/s",
            value=total / many.wall,
            limit=total / limit_many.wall,
            limit_name=f"js.publish, {SESSIONS} in flight",
            goal=0.8,
            at_least=True,
            note=f"CPU {many.cpu / total * 1e6:.0f} against {limit_many.cpu / total * 1e6:.0f} us an event",
        ),
    ]
