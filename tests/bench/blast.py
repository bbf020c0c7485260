"""The limit for the fan-out: plain aiohttp that sends the same message to every connection, one after the other.

Prints its port; for each line `<count> <size>` on its input it sends that many messages of that many bytes, the last one
with the mark in it, and prints `done`. With a third number it waits so many seconds after each, and they say when they were made.
"""

import asyncio
import json
import sys
import time

import uvloop
from aiohttp import web

MARK = b"the last one"
GROUPS = 20


async def connections() -> list[web.WebSocketResponse]:
    """A server on a free port, which is printed; its open connections, as they come and go."""
    clients: list[web.WebSocketResponse] = []

    async def accept(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse(compress=False)
        await ws.prepare(request)
        clients.append(ws)
        async for _ in ws:
            pass
        clients.remove(ws)
        return ws

    app = web.Application()
    app.router.add_get("/ws", accept)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    say(json.dumps({"port": runner.addresses[0][1]}))
    return clients


async def serve() -> None:
    clients = await connections()
    while line := await asyncio.to_thread(sys.stdin.readline):
        count, size, *every = line.split()
        if every:
            await pace(clients, int(count), int(size), float(every[0]))
            continue
        count, size = int(count), int(size)
        message = b"x" * size
        for number in range(count):
            body = message if number < count - 1 else message[: -len(MARK)] + MARK
            for ws in clients:
                await ws.send_bytes(body)
        say("done")


async def pace(clients: list[web.WebSocketResponse], count: int, size: int, every: float) -> None:
    """Each message to a twentieth of the clients at a time, so that as many go at once as watch one session of twenty."""
    groups = [clients[number::GROUPS] for number in range(GROUPS)]
    for _ in range(count):
        for group in groups:
            body = f"at={time.time_ns()}; ".encode().ljust(size, b"x")
            for ws in group:
                await ws.send_bytes(body)
            await asyncio.sleep(every / GROUPS)
    say("done")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(serve())
