"""The fake agent of `rpc_agent` behind a real WebSocket server, on a TCP port and on a unix socket."""

import json
from contextlib import AsyncExitStack
from pathlib import Path

from aiohttp import WSMsgType, web
from tests.integration.agentkit import rpc_agent


async def serve_socket(request: web.Request) -> web.StreamResponse:
    if "Origin" in request.headers:
        return web.Response(status=403)
    if request.app[WANTED] not in (None, request.headers.get("Authorization")):
        return web.Response(status=401)
    socket = web.WebSocketResponse(max_msg_size=0)
    await socket.prepare(request)
    async for frame in socket:
        assert frame.type is WSMsgType.TEXT
        if json.loads(frame.data).get("method") == "die":
            break
        for reply in rpc_agent.replies(frame.data.encode()):
            await socket.send_str(reply.decode())
    return socket


WANTED: web.AppKey[str | None] = web.AppKey("wanted")


class Server:
    """A WebSocket server on a TCP port and on a unix socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.port = 0

    async def start(self, stack: AsyncExitStack, token: str | None) -> None:
        app = web.Application()
        app[WANTED] = token and f"Bearer {token}"
        app.router.add_get("/", serve_socket)
        runner = web.AppRunner(app, shutdown_timeout=1.0)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.UnixSite(runner, str(self.path)).start()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[-1][1]

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/"
