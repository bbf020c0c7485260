"""A chat with agents: messages become prompts, the turn's answer comes back to the chat that asked, asks come with buttons."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from trunkline_bus.tasks import end
from trunkline_extensions.chat.telegram import CallbackQuery, Message, Telegram, Update
from trunkline_extensions.client import Client
from trunkline_extensions.notify.app import written
from trunkline_extensions.sender import (
    LINKED,
    Deliver,
    Delivery,
    NotDeliveredError,
    RefusedError,
    SenderConfig,
    write_private,
)
from trunkline_wire import TrunklineError, encode
from trunkline_wire.secret import Secret

log = logging.getLogger(__name__)

PAUSE_S: Final = 2.0


class ChatConfig(SenderConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`chats` are the ids of the chats that may talk to agents, and decide what they ask."""

    token: Secret
    chats: tuple[str, ...]
    api: str = "https://api.telegram.org"

    @property
    def routed(self) -> bool:
        return True


class Memory(msgspec.Struct):
    """What outlives the process: the next update, and the session of each chat."""

    offset: int = 0
    sessions: dict[str, str] = {}


class Bridge:
    """`file` keeps its memory."""

    def __init__(self, client: Client, telegram: Telegram, config: ChatConfig, file: Path) -> None:
        self._client = client
        self._telegram = telegram
        self._config = config
        self._file = file
        self._memory = msgspec.json.decode(file.read_bytes(), type=Memory) if file.exists() else Memory()

    async def listen(self) -> None:
        """Take what people write and press until cancelled; an update is done before the next one is asked for."""
        while True:
            try:
                for update in await self._telegram.updates(self._memory.offset):
                    await self._take(update)
                    self._memory.offset = update.update_id + 1
                    self._remember()
            except (NotDeliveredError, RefusedError) as error:
                log.warning("telegram_failed", extra={"error": str(error)})
                await asyncio.sleep(PAUSE_S)

    async def deliver(self, delivery: Delivery) -> None:
        """Bring an event of a turn to the chat whose message began it."""
        chat = str(delivery.event["source"]["route"]).partition("/")[2]
        if chat not in self._config.chats:
            raise RefusedError("the chat is no longer one of `chats`")
        title, text = written(delivery)
        data: dict[str, Any] = delivery.event["data"]
        if delivery.event["type"] == "turn.completed":
            await self._telegram.send(chat, await self._result(delivery))
            return
        buttons = None
        if delivery.event["type"] in LINKED:
            buttons = {"Allow": f"allow:{data['ask']}", "Deny": f"deny:{data['ask']}"}
        await self._telegram.send(chat, f"{title}\n{text}", buttons)

    async def _result(self, delivery: Delivery) -> str:
        data: dict[str, Any] = delivery.event["data"]
        if isinstance(data.get("result"), str):
            return str(data["result"])
        state = (await self._client.insist("approver", "session.get", session=delivery.event["session"]))["state"]
        return str(state.get("last_text") or f"Done ({data.get('outcome')}).")

    async def _take(self, update: Update) -> None:
        try:
            if update.callback_query is not None:
                await self._pressed(update.callback_query)
            elif update.message is not None and update.message.text:
                await self._said(update.update_id, update.message, update.message.text)
        except RefusedError as error:
            # To take the same update again would not help.
            log.warning("telegram_refused", extra={"error": str(error)})

    async def _said(self, number: int, message: Message, text: str) -> None:
        chat = str(message.chat.id)
        if chat not in self._config.chats:
            log.warning("stranger", extra={"chat": chat})
            return
        if text.startswith("/use "):
            session = text.removeprefix("/use ").strip()
            try:
                await self._client.insist("viewer", "session.get", session=session)
            except TrunklineError as error:
                await self._telegram.send(chat, str(error))
                return
            self._memory.sessions[chat] = session
            self._remember()
            await self._telegram.send(chat, f"Your messages go to {session} now.")
            return
        session = self._memory.sessions.get(chat)
        if session is None:
            await self._telegram.send(chat, "Choose a session first: /use ses_…")
            return
        # Taken again after a crash it is the same command.
        command = _command(f"message:{chat}:{number}")
        try:
            await self._client.insist(
                "participant", "session.prompt", session=session, text=text, route=chat, id=command
            )
        except TrunklineError as error:
            await self._telegram.send(chat, str(error))

    async def _pressed(self, query: CallbackQuery) -> None:
        chat = str(query.message.chat.id) if query.message is not None else ""
        behaviour, _, ask = (query.data or "").partition(":")
        if chat not in self._config.chats or behaviour not in {"allow", "deny"}:
            log.warning("stranger", extra={"chat": chat})
            return
        try:
            answer = _command(f"button:{query.id}")
            await self._client.insist("approver", "ask.answer", ask=ask, behaviour=behaviour, id=answer)
            told = "Allowed." if behaviour == "allow" else "Denied."
        except TrunklineError as error:
            told = error.message
        with suppress(NotDeliveredError):
            await self._telegram.pressed(query.id, told)

    def _remember(self) -> None:
        write_private(self._file, encode(self._memory))


def _command(what: str) -> str:
    return f"cmd_{hashlib.sha256(what.encode()).hexdigest()[:32]}"


@asynccontextmanager
async def opened(config: ChatConfig, client: Client) -> AsyncGenerator[Deliver]:
    """The bridge, listening until the block ends."""
    async with aiohttp.ClientSession() as http:
        bridge = Bridge(client, Telegram(http, config.api, config.token), config, client.files / "chat.json")
        listening = asyncio.create_task(bridge.listen())
        try:
            yield bridge.deliver
        finally:
            await end(listening)
