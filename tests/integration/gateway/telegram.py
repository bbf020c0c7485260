"""A fake of Telegram's Bot API over HTTP: what people write and press, and what the bot says to them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

TOKEN = "123:abc"


class FakeTelegram:
    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.pressed: list[dict[str, Any]] = []
        self.url = ""
        self._updates: list[dict[str, Any]] = []
        self._news = asyncio.Event()

    def write(self, chat: int, text: str) -> None:
        self._add({"message": {"message_id": 1, "chat": {"id": chat, "type": "private"}, "date": 0, "text": text}})

    def press(self, chat: int, data: str) -> None:
        message = {"message_id": 1, "chat": {"id": chat, "type": "private"}, "date": 0}
        self._add({"callback_query": {"id": "q", "from": {"id": chat}, "data": data, "message": message}})

    def _add(self, update: dict[str, Any]) -> None:
        self._updates.append({"update_id": 100 + len(self._updates), **update})
        self._news.set()

    async def on_call(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != TOKEN:
            return web.json_response({"ok": False, "error_code": 401, "description": "Unauthorized"}, status=401)
        body = await request.json()
        match request.match_info["method"]:
            case "getUpdates":
                found = self._from(body["offset"])
                if not found:
                    self._news.clear()
                    await asyncio.wait([asyncio.ensure_future(self._news.wait())], timeout=body["timeout"])
                    found = self._from(body["offset"])
                return web.json_response({"ok": True, "result": found})
            case "sendMessage":
                self.sent.append(body)
            case "answerCallbackQuery":
                self.pressed.append(body)
            case other:
                return web.json_response({"ok": False, "error_code": 404, "description": other}, status=404)
        return web.json_response({"ok": True, "result": True})

    def _from(self, offset: int) -> list[dict[str, Any]]:
        return [update for update in self._updates if update["update_id"] >= offset]

    def end(self) -> None:
        self._news.set()


@asynccontextmanager
async def fake_telegram() -> AsyncGenerator[FakeTelegram]:
    fake = FakeTelegram()
    app = web.Application()
    app.router.add_post("/bot{token}/{method}", fake.on_call)
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        fake.end()
        await runner.cleanup()
