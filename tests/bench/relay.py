"""The other limit for the fan-out: bare nats-py pulls the same events, plain aiohttp sends each to every connection.

`python -m tests.bench.relay <NATS URL> <stream> <filter>` prints its port. It folds, checks and remembers nothing.
"""

import asyncio
import json
import sys
from typing import Final

import nats
import uvloop
from nats.aio.msg import Msg
from tests.bench.blast import connections

HEAD: Final = b"x" * 220
"""As many bytes as the gateway puts around an event."""
BATCH: Final = 1000


async def serve(url: str, stream: str, filter: str) -> None:
    nc = await nats.connect(url)
    inbox = nc.new_inbox()
    config = {"ack_policy": "none", "mem_storage": True, "deliver_policy": "new", "filter_subject": filter}
    create = json.dumps({"stream_name": stream, "config": {**config, "inactive_threshold": 300_000_000_000}}).encode()
    answer = await nc.request(f"$JS.API.CONSUMER.CREATE.{stream}", create, timeout=5)
    pull = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{json.loads(answer.data)['name']}"
    request = json.dumps({"batch": BATCH, "expires": 300_000_000_000}).encode()
    received = 0

    async def take(msg: Msg) -> None:
        nonlocal received
        if not msg.reply:
            return
        received += 1
        if received % BATCH == 0:
            await nc.publish(pull, request, reply=inbox)
        for ws in clients:
            await ws.send_bytes(HEAD + msg.data)

    clients = await connections()
    await nc.subscribe(inbox, cb=take, pending_msgs_limit=-1, pending_bytes_limit=-1)
    await nc.publish(pull, request, reply=inbox)
    await nc.publish(pull, request, reply=inbox)
    await nc.flush()
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    uvloop.run(serve(*sys.argv[1:]))
