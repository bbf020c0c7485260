"""A running demo agent: its lines translated, and what can be asked of it."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

from trunkline_adapters.demo.translate import DemoTranslator
from trunkline_agentkit import (
    AgentProcess,
    ConfigurableBase,
    Exit,
    Native,
    Survivor,
    UserPrompt,
    decode_line,
    kind_of,
    translate,
)
from trunkline_agentkit.agent_process import Said
from trunkline_agentkit.catching_up import CatchingUp
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided
from trunkline_wire.blocks import Json, join_text


class DemoSession(ConfigurableBase):
    """`said` is what had passed before the agent was taken up with `survivor`."""

    def __init__(
        self,
        process: AgentProcess,
        translator: DemoTranslator,
        said: Sequence[Said] = (),
        survivor: Survivor | None = None,
    ) -> None:
        self._process = process
        self._translator = translator
        self._said = said
        self._survivor = survivor
        self._received = {message.get("id") for message in _ours(said) if message.get("type") == "prompt"}
        # Ids that were used before the agent was taken up are not used again.
        self._numbers = itertools.count(1 + sum(one.ours for one in said))
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}

    def received(self, command: str) -> bool:
        return command in self._received

    async def send(self, prompt: UserPrompt) -> None:
        message: dict[str, Any] = {"type": "prompt", "id": prompt.command, "text": join_text(prompt.content)}
        if prompt.delivery == "steered":
            message["steer"] = True
        await self._process.write_line(message)

    async def messages(self) -> AsyncIterator[Native]:
        if self._survivor is not None:
            for native in self._catch_up(CatchingUp(self._survivor)):
                yield native
        async for line in self._process.lines():
            native = self._understand(line)
            self._process.taken()
            yield native
        for waiting in self._replies.values():
            waiting.cancel()

    def _understand(self, line: bytes) -> Native:
        decoded = decode_line(line)
        if decoded.message is not None:
            self._settle(decoded.message)
        return translate(self._translator, decoded, kind_of(decoded.message))

    def _catch_up(self, catching_up: CatchingUp) -> list[Native]:
        """What the log lacks of all that had passed."""
        new: list[Native] = []
        for one in self._said:
            if not one.ours:
                new += catching_up.pass_on(self._understand(one.line))
            elif (message := decode_line(one.line).message) is not None and message.get("type") == "answer":
                self._translator.answered(message)
        self._said = ()
        return [*new, *catching_up.end()]

    async def close(self, grace: float = 5.0) -> Exit:
        return await self._process.close(grace)

    async def abandon(self) -> Exit:
        return await self._process.abandon()

    async def interrupt(self, *, cancel_queued: bool = False) -> None:
        await self._process.write_line({"type": "interrupt", "cancel_queued": cancel_queued})

    async def decide(self, ask: str, decision: AskDecided) -> None:
        native = self._translator.asks.pop(ask, None)
        if native is None:
            raise TrunklineError("unknown_ask", f"the agent does not wait for {ask!r}")
        await self._process.write_line(
            {
                "type": "answer",
                "ask": native,
                "allow": decision.behaviour != "deny",
                "input": decision.updated_input,
                "answers": decision.answers,
                "message": decision.message,
                "interrupt": decision.interrupt,
            }
        )

    async def pending(self) -> set[str] | None:
        reply = await self._request({"type": "list_asks"})
        return {ask for ask, native in self._translator.asks.items() if native in reply["asks"]}

    async def set_model(self, model: str) -> None:
        await self._process.write_line({"type": "set", "model": model})

    async def set_mode(self, mode: str) -> None:
        await self._process.write_line({"type": "set", "mode": mode})

    async def native(self, method: str, params: dict[str, Json]) -> Json:
        if method != "echo":
            raise TrunklineError("bad_params", f"the demo agent has no method {method!r}; it has 'echo'")
        return (await self._request({"type": "native", "params": params}))["echo"]

    async def _request(self, message: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and waits for its reply, which `messages()` finds."""
        number = next(self._numbers)
        self._replies[number] = asyncio.get_running_loop().create_future()
        try:
            await self._process.write_line(message | {"id": number})
            return await self._replies[number]
        finally:
            del self._replies[number]

    def _settle(self, message: dict[str, Any]) -> None:
        if message.get("type") in {"asks", "native_result"}:
            waiting = self._replies.get(message.get("id", 0))
            if waiting is not None and not waiting.done():
                waiting.set_result(message)


def _ours(said: Sequence[Said]) -> list[dict[str, Any]]:
    return [message for one in said if one.ours and (message := decode_line(one.line).message) is not None]
