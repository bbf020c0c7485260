"""A conversation with an agent, for tests: prompts in, everything that it said kept and waited for."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import pytest

from trunkline_agentkit.protocol import (
    BackendSession,
    Fact,
    Interruptible,
    Native,
    Out,
    PermissionHandler,
    Piece,
    Start,
    UserPrompt,
)
from trunkline_wire import Data
from trunkline_wire.asks import AskDecided, PermissionRequested
from trunkline_wire.blocks import TextBlock, join_text
from trunkline_wire.ids import new_command_id
from trunkline_wire.session import Capabilities, SessionInitialized
from trunkline_wire.turn import Delivery, MessageAssistant, TurnCompleted, TurnStarted


class Talk:
    """A conversation with an agent: `natives` is all it said, `facts` what that meant. A step may take `patience` seconds."""

    def __init__(self, start: Start, session: BackendSession, patience: float) -> None:
        self.start = start
        self._patience = patience
        self.session = session
        self.natives: list[Native] = []
        self._read = 0
        self._news = asyncio.Event()
        self._over = False
        self._task = asyncio.create_task(self._listen())

    @property
    def facts(self) -> list[Fact]:
        return [out for native in self.natives for out in native.out if isinstance(out, Fact)]

    @property
    def capabilities(self) -> Capabilities:
        """What the agent said last that it can do."""
        return data_of(self.facts, SessionInitialized)[-1].capabilities

    async def prompt(self, text: str, delivery: Delivery = "sent") -> str:
        command = new_command_id()
        await self.session.send(UserPrompt(command=command, content=[TextBlock(text=text)], delivery=delivery))
        return command

    async def decide(self, ask: str, behaviour: Literal["allow", "deny"], **more: Any) -> None:
        assert isinstance(self.session, PermissionHandler)
        await self.session.decide(ask, AskDecided(ask=ask, behaviour=behaviour, by="test", **more))

    async def interrupt(self) -> None:
        assert isinstance(self.session, Interruptible)
        await self.session.interrupt()

    async def turn(self, text: str) -> TurnCompleted:
        """Says it, allows whatever is asked, and gives the turn's end."""
        await self.prompt(text)
        return await self.end_of_turn()

    async def end_of_turn(self, patience: float | None = None) -> TurnCompleted:
        """The end of the turn under way; whatever is asked meanwhile is allowed."""
        while True:
            out = await self._until(_found(PermissionRequested, TurnCompleted), "end of the turn", patience)
            for ask in data_of(out, PermissionRequested):
                await self.decide(ask.ask, "allow")
            if ended := data_of(out, TurnCompleted):
                return cast("TurnCompleted", ended[-1])

    async def until(self, *wanted: type[Data] | type[Piece]) -> list[Out]:
        """What came since the last call, up to and with the native message that brought one of `wanted` (a piece with some text)."""
        return await self._until(_found(*wanted), " or ".join(kind.__name__ for kind in wanted))

    async def until_over(self) -> None:
        """Until the agent's messages have ended."""
        async with asyncio.timeout(self._patience):
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        await asyncio.wait({self._task}, timeout=5.0)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _until(self, found: Callable[[Native], bool], what: str, patience: float | None = None) -> list[Out]:
        out: list[Out] = []
        patience = self._patience if patience is None else patience
        try:
            async with asyncio.timeout(patience):
                while True:
                    while self._read < len(self.natives):
                        native = self.natives[self._read]
                        self._read += 1
                        out += native.out
                        if found(native):
                            return out
                    if self._over:
                        break
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass
        pytest.fail(
            f"no {what} came within {patience:g} s; there were {[native.kind for native in self.natives][-40:]}"
        )

    async def _listen(self) -> None:
        try:
            async for native in self.session.messages():
                self.natives.append(native)
                self._news.set()
        finally:
            self._over = True
            self._news.set()


def _found(*wanted: type[Data] | type[Piece]) -> Callable[[Native], bool]:
    def found(out: Out) -> bool:
        if isinstance(out, Piece):
            return Piece in wanted and bool(out.text)
        return isinstance(out, Fact) and isinstance(out.data, wanted)

    return lambda native: any(found(out) for out in native.out)


def data_of(out: Sequence[Out], kind: type[Any]) -> list[Any]:
    return [one.data for one in out if isinstance(one, Fact) and isinstance(one.data, kind)]


def only(out: Sequence[Out], kind: type[Data]) -> Fact:
    (fact,) = [one for one in out if isinstance(one, Fact) and isinstance(one.data, kind)]
    return fact


def assert_paired(data: Sequence[Data]) -> None:
    """Turns begin and end in alternation; a last one may be open."""
    turns = [type(one) for one in data if isinstance(one, TurnStarted | TurnCompleted)]
    assert turns == [TurnStarted if n % 2 == 0 else TurnCompleted for n in range(len(turns))]


def spoken(out: Sequence[Out]) -> str:
    """What the agent itself said in whole messages."""
    messages = [one.data for one in out if isinstance(one, Fact) and one.lane is None]
    return "".join(join_text(one.content) for one in messages if isinstance(one, MessageAssistant))


def streamed(out: Sequence[Out]) -> list[str]:
    """The pieces of text, as they came."""
    return [one.text for one in out if isinstance(one, Piece) and one.kind == "text" and one.lane is None and one.text]
