"""Reading: Reader against a callback subscription with two overlapping pull requests and no checks at all."""

import asyncio
import json
from collections.abc import Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.bench.report import Figure, turns

from trunkline_bus.connection import Bus
from trunkline_bus.reader import Reader
from trunkline_wire import subjects
from trunkline_wire.ids import new_session_id

COUNT = 20_000
BATCH = 1000


async def prepare(bus: Bus) -> str:
    """Store the messages; returns whose deltas they are."""
    session = new_session_id()
    subject = subjects.delta(session)
    body = b"x" * 512
    for number in range(COUNT):
        await bus.writing.publish(subject, body, headers={subjects.HEADER_ID: str(number)})
    await bus.writing.flush()
    return session


async def raw_pull(
    nc: Client, stream: str, filter: str, count: int, look: Callable[[Msg], object] = lambda _: None
) -> None:
    """Receive `count` messages of `filter`, and do no more with each than `look`."""
    done = asyncio.Event()
    received = 0
    inbox = nc.new_inbox()
    config = {
        "stream_name": stream,
        "config": {
            "deliver_policy": "all",
            "ack_policy": "none",
            "filter_subject": filter,
            "mem_storage": True,
            "inactive_threshold": 30_000_000_000,
        },
    }
    answer = await nc.request(f"$JS.API.CONSUMER.CREATE.{stream}", json.dumps(config).encode(), timeout=5)
    name = json.loads(answer.data)["name"]
    pull = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}"
    request = json.dumps({"batch": BATCH, "expires": 30_000_000_000}).encode()

    async def take(msg: Msg) -> None:
        nonlocal received
        if not msg.reply:
            return
        look(msg)
        received += 1
        if received % BATCH == 0:
            await nc.publish(pull, request, reply=inbox)
        if received == count:
            done.set()

    subscription = await nc.subscribe(inbox, cb=take)
    await nc.publish(pull, request, reply=inbox)
    await nc.publish(pull, request, reply=inbox)
    await asyncio.wait_for(done.wait(), 60)
    await subscription.unsubscribe()


async def through_reader(bus: Bus, stream: str, filter: str, count: int) -> None:
    received = 0
    async with Reader(bus, stream, [filter]) as reader:
        async for batch in reader.batches():
            received += len(batch)
            if received >= count:
                return


async def measure(bus: Bus, plain: Client, session: str, setting: str) -> list[Figure]:
    what = (subjects.DELTAS, subjects.session_deltas(session), COUNT)
    limit, ours = await turns(lambda: raw_pull(plain, *what), lambda: through_reader(bus, *what))
    return [
        Figure(
            name=f"Reader, 512 B ({setting})",
            unit="/s",
            value=COUNT / ours.wall,
            limit=COUNT / limit.wall,
            limit_name="raw callback pull",
            goal=0.6,
            at_least=True,
            note=f"CPU {ours.cpu / COUNT * 1e6:.1f} against {limit.cpu / COUNT * 1e6:.1f} us a message",
        )
    ]
