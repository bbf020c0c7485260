"""The limit for the pipeline: the same agent, its lines forwarded to a WebSocket as they come. No log, no checks."""

import asyncio
import json
import sys

import aiohttp
import uvloop
from aiohttp import web


async def forward(request: web.Request) -> web.WebSocketResponse:
    ws = web.WebSocketResponse(compress=False)
    await ws.prepare(request)
    agent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.bench.agent",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    assert agent.stdin is not None
    assert agent.stdout is not None
    out = agent.stdout

    async def pump() -> None:
        while line := await out.readline():
            await ws.send_bytes(line)

    pumping = asyncio.create_task(pump())
    async for message in ws:
        if message.type == aiohttp.WSMsgType.TEXT:
            agent.stdin.write(message.data.encode() + b"\n")
    agent.stdin.close()
    await agent.wait()
    await pumping
    return ws


async def serve() -> None:
    app = web.Application()
    app.router.add_get("/ws", forward)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sys.stdout.write(json.dumps({"port": runner.addresses[0][1]}) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve())
