"""The limit for the relay: plain aiohttp that sends back what it gets. `python -m tests.bench.echo` prints its port."""

import asyncio
import sys

import uvloop
from aiohttp import WSMsgType, web


async def echo(request: web.Request) -> web.WebSocketResponse:
    ws = web.WebSocketResponse(compress=False)
    await ws.prepare(request)
    async for message in ws:
        if message.type is WSMsgType.BINARY:
            await ws.send_bytes(message.data)
    return ws


async def serve() -> None:
    app = web.Application()
    app.router.add_get("/", echo)
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    uvloop.run(serve())
