"""The Telegram Bot API, as much of it as a chat needs: https://core.telegram.org/bots/api."""

from typing import Any, Final

import aiohttp
import msgspec

from trunkline_extensions.sender import NotDeliveredError, RefusedError

POLL_S: Final = 25
ANSWER_S: Final = 15.0
MAX_TEXT: Final = 4096
"""Characters that a message may have."""


class Chat(msgspec.Struct, frozen=True):
    id: int


class Message(msgspec.Struct, frozen=True):
    message_id: int
    chat: Chat
    text: str | None = None


class CallbackQuery(msgspec.Struct, frozen=True):
    """A button that was pressed."""

    id: str
    data: str | None = None
    message: Message | None = None


class Update(msgspec.Struct, frozen=True):
    update_id: int
    message: Message | None = None
    callback_query: CallbackQuery | None = None


class _Answer(msgspec.Struct, frozen=True):
    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    description: str = ""


class Telegram:
    """One bot. Its token is part of each URL, so no URL is ever told. Raises NotDeliveredError, RefusedError."""

    def __init__(self, http: aiohttp.ClientSession, api: str, token: str) -> None:
        self._http = http
        self._base = f"{api.rstrip('/')}/bot{token}"

    async def updates(self, offset: int) -> list[Update]:
        """What has come from `offset` on, waited for."""
        body = {"offset": offset, "timeout": POLL_S, "allowed_updates": ["message", "callback_query"]}
        return msgspec.json.decode(await self._call("getUpdates", body, POLL_S + ANSWER_S), type=list[Update])

    async def send(self, chat: str, text: str, buttons: dict[str, str] | None = None) -> None:
        """A message; `buttons` are label -> data (at most 64 bytes)."""
        body: dict[str, Any] = {"chat_id": chat, "text": text[:MAX_TEXT] or "-"}
        if buttons:
            row = [{"text": label, "callback_data": data} for label, data in buttons.items()]
            body["reply_markup"] = {"inline_keyboard": [row]}
        await self._call("sendMessage", body, ANSWER_S)

    async def pressed(self, query: str, text: str) -> None:
        """Tell the person who pressed a button what came of it."""
        await self._call("answerCallbackQuery", {"callback_query_id": query, "text": text[:200]}, ANSWER_S)

    async def _call(self, method: str, body: dict[str, Any], within: float) -> msgspec.Raw:
        timeout = aiohttp.ClientTimeout(total=within)
        try:
            async with self._http.post(f"{self._base}/{method}", json=body, timeout=timeout) as response:
                status, raw = response.status, await response.read()
            answer = msgspec.json.decode(raw, type=_Answer)
        except (aiohttp.ClientError, OSError, TimeoutError, msgspec.MsgspecError) as error:
            raise NotDeliveredError(f"Telegram can't be reached: {type(error).__name__}") from None
        if not answer.ok:
            kind = NotDeliveredError if status >= 500 or status == 429 else RefusedError
            raise kind(f"Telegram refuses {method}: {answer.description[:200]}")
        return answer.result
