"""A running session of an adapter and everything that it has said, for tests."""

from typing import Any, Generic, TypeVar

from trunkline_agentkit import BackendSession, Fact, Native, UserPrompt
from trunkline_testkit import eventually
from trunkline_wire import Data
from trunkline_wire.blocks import Block, TextBlock
from trunkline_wire.turn import Delivery, TurnCompleted

S = TypeVar("S", bound=BackendSession)


class Running(Generic[S]):
    """A session and all that it has said so far."""

    def __init__(self, session: S) -> None:
        self.session = session
        self.natives: list[Native] = []
        self.over = False
        """The agent's messages have ended."""

    async def read(self) -> None:
        async for native in self.session.messages():
            self.natives.append(native)
        self.over = True

    def facts(self, *kinds: type[Data]) -> list[Fact]:
        found = [out for native in self.natives for out in native.out if isinstance(out, Fact)]
        return [fact for fact in found if isinstance(fact.data, kinds)]

    def all(self, *kinds: type[Data]) -> list[Any]:
        return [fact.data for fact in self.facts(*kinds)]

    async def wait(self, kind: type[Data], count: int = 1, timeout: float = 30) -> Any:  # noqa: ASYNC109  # it is a deadline
        await eventually(lambda: len(self.all(kind)) >= count, timeout)
        return self.all(kind)[count - 1]

    async def say(self, text: str, command: str = "cmd_1", *more: Block, delivery: Delivery = "sent") -> None:
        content: list[Block] = [TextBlock(text=text), *more]
        await self.session.send(UserPrompt(command=command, content=content, delivery=delivery))

    async def turn(self, text: str, count: int = 1) -> TurnCompleted:
        """Says it and waits for the end of the session's turn number `count`."""
        await self.say(text, f"cmd_{count}")
        return await self.wait(TurnCompleted, count)

    async def result(self, text: str, count: int = 1) -> Any:
        return (await self.turn(text, count)).result
