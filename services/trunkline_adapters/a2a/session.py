"""A session with an agent's server: prompts and decisions in, translated messages out. The server runs by itself."""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator
from typing import Final

from trunkline_adapters.a2a.link import Link
from trunkline_adapters.a2a.native import OPTIONS, kind_of, user_message
from trunkline_adapters.a2a.translate import A2aTranslator
from trunkline_agentkit import Exit, Native, Start, UserPrompt, decode_line, translate
from trunkline_agentkit.fields import Obj, as_obj, obj, text, whole
from trunkline_agentkit.prompts import as_text
from trunkline_agentkit.unread import Unread
from trunkline_wire import TrunklineError, decode_json, encode
from trunkline_wire.asks import AskDecided

log = logging.getLogger(__name__)

KEEP_S: Final = 2.0
"""Seconds between two uses of a connection that is to stay."""
_GOODBYE_S: Final = 2.0


class A2aSession:
    """Made by `A2aAdapter`; `open` before use."""

    def __init__(self, link: Link, translator: A2aTranslator, start: Start, *, streaming: bool) -> None:
        self._link = link
        self._translator = translator
        self._start = start
        self._method = "message/stream" if streaming else "message/send"
        self._unread = Unread()
        self._one = asyncio.Lock()
        """Held while an answer comes: a task takes one message at a time."""
        self._work: set[asyncio.Task[None]] = set()
        self._exit: Exit | None = None

    async def open(self, card: bytes) -> None:
        """Takes up the native session that is asked for, if one is. Raises TrunklineError `history_lost`, `agent_failed`."""
        await self._keep(card)
        native = self._start.native_session or self._start.options.resume_native
        if native is None:
            return
        answer = await self._link.call("tasks/get", {"id": native}, str(uuid.uuid4()))
        failure = obj(as_obj(decode_json(answer)), "error")
        if failure:
            raise TrunklineError(
                "history_lost",
                f"the agent does not know the task {native!r}: {text(failure, 'message') or whole(failure, 'code')}",
            )
        await self._keep(answer)

    async def send(self, prompt: UserPrompt) -> None:
        said = "\n\n".join(as_text(block) for block in prompt.content)
        self._alive()
        self._post([{"kind": "text", "text": said}], command=prompt.command)

    def messages(self) -> AsyncIterator[Native]:
        return self._unread.messages()

    async def interrupt(self, *, cancel_queued: bool = False) -> None:
        del cancel_queued  # nothing waits here
        if self._translator.task is None or not self._translator.busy:
            raise TrunklineError("stale_target", "no turn is running")
        self._translator.interrupting()
        answer = await self._link.call("tasks/cancel", {"id": self._translator.task}, str(uuid.uuid4()))
        await self._keep(answer)

    async def decide(self, ask: str, decision: AskDecided) -> None:
        call = self._translator.call_of(ask)
        if call is None:
            raise TrunklineError("unknown_ask", f"the agent does not wait for {ask!r} any more")
        denied = decision.behaviour == "deny"
        outcome = decision.option or ("cancel" if denied else "proceed_once")
        if outcome not in {option.id for option in OPTIONS}:
            raise TrunklineError("bad_answer", f"there is no option {outcome!r}")
        self._alive()
        self._translator.decided(call, denied=denied)
        self._post([{"kind": "data", "data": {"callId": call, "outcome": outcome}}], call=call)
        if denied and decision.interrupt:
            await self.interrupt()

    async def pending(self) -> set[str] | None:
        return self._translator.open_asks()

    async def close(self, grace: float = 5.0) -> Exit:
        self._unread.release()
        if self._exit is None:
            self._exit = Exit(code=0)
            if grace and self._translator.busy and self._translator.task is not None:
                with contextlib.suppress(TrunklineError, TimeoutError):
                    async with asyncio.timeout(_GOODBYE_S):
                        await self._link.call("tasks/cancel", {"id": self._translator.task}, str(uuid.uuid4()))
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._link.close()
        self._unread.end()
        return self._exit

    def _alive(self) -> None:
        if self._exit is not None:
            raise TrunklineError("agent_failed", "the session has ended: send a prompt to start it again")

    def _post(self, parts: list[Obj], *, command: str | None = None, call: str | None = None) -> None:
        """Sends the prompt of a command, or a decision on a call; its answer is read behind that of the one before."""
        task = asyncio.create_task(self._exchange(parts, command, call), name=f"message to {self._link.card_url}")
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _exchange(self, parts: list[Obj], command: str | None, call: str | None) -> None:
        translator = self._translator
        try:
            async with self._one:
                if command is not None:
                    translator.prompt(command)
                if call is not None:
                    translator.delivering(call)
                message = user_message(str(uuid.uuid4()), parts, self._start.cwd, translator.task, translator.context)
                async for raw in self._link.stream(self._method, {"message": message}, str(uuid.uuid4())):
                    await self._keep(raw)
                if translator.busy and not translator.asking:
                    await self._break("the agent's answer has ended without an end of the turn")
            # While somebody decides, the connection is kept, and so the task.
            while translator.asking and not self._one.locked():
                async with self._one:
                    await self._link.keep()
                await asyncio.sleep(KEEP_S)
        except TrunklineError as error:
            log.info("link_lost", extra={"code": error.code})
            self._lose(error.message)
        except Exception as error:
            log.exception("exchange_failed")
            self._lose(f"the agent's answer could not be read: {error!r}")

    def _lose(self, reason: str) -> None:
        self._exit = self._exit or Exit(code=1, stderr_tail=reason)
        self._unread.end()

    async def _break(self, reason: str) -> None:
        raw = encode({"ended": reason})
        await self._unread.put(Native(raw=raw, out=self._translator.broken(reason), kind="end"))

    async def _keep(self, raw: bytes) -> None:
        decoded = decode_line(raw)
        kind = "?" if decoded.message is None else kind_of(decoded.message)
        await self._unread.put(translate(self._translator, decoded, kind))
