"""A stand-in for what receives webhooks and notifications: an HTTP server that keeps what is posted to it."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web


class Receiver:
    """`answers` are the statuses of the next posts, 200 after them; `paths` is where each came. `meanwhile` is done
    before a post is answered.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.posts: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.url = ""
        self.port = 0

    @property
    def bodies(self) -> list[Any]:
        return [msgspec.json.decode(body) for _, body in self.posts]

    async def on_post(self, request: web.Request) -> web.Response:
        body = await request.read()
        if self.meanwhile is not None:
            await self.meanwhile()
        self.paths.append(request.path)
        self.posts.append((dict(request.headers), body))
        status = self.answers.pop(0) if self.answers else 200
        return web.json_response({"id": "x"}, status=status)


@asynccontextmanager
async def receiving() -> AsyncGenerator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/{path:.*}", receiver.on_post)
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.port = runner.addresses[0][1]
    receiver.url = f"http://127.0.0.1:{receiver.port}"
    try:
        yield receiver
    finally:
        await runner.cleanup()
