"""A running session of the ACP adapter with its fake agent, and everything that it has said, for tests."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from trunkline_adapters.acp.adapter import AcpAdapter
from trunkline_adapters.acp.session import AcpSession
from trunkline_agentkit import Fact, Native, Start, UserPrompt, local_start
from trunkline_testkit import eventually
from trunkline_wire import Data
from trunkline_wire.blocks import Block, TextBlock, join_text
from trunkline_wire.session import SessionOptions
from trunkline_wire.turn import MessageAssistant, TurnCompleted

STAND_IN = str(Path(__file__).parent / "acp_stand_in.py")
STAND_IN_PROFILE = {
    "TRUNKLINE_ACP_PROFILES": str(Path(__file__).parent / "acp_profiles"),
    "TRUNKLINE_PROGRAM_ACP_STAND_IN": STAND_IN,
}
"""With these the fake is an agent with a profile, `stand-in`."""


class Running:
    """A session and all that it has said so far."""

    def __init__(self, start: Start, session: AcpSession) -> None:
        self.start = start
        self.session = session
        self.natives: list[Native] = []
        self.turns = 0
        self.over = False

    async def read(self) -> None:
        async for native in self.session.messages():
            self.natives.append(native)
        self.over = True

    async def until_over(self) -> None:
        """Until the session's messages have ended."""
        await eventually(lambda: self.over, 30)

    def facts(self, *kinds: type[Data]) -> list[Fact]:
        found = [out for native in self.natives for out in native.out if isinstance(out, Fact)]
        return [fact for fact in found if isinstance(fact.data, kinds)]

    def all(self, *kinds: type[Data]) -> list[Any]:
        return [fact.data for fact in self.facts(*kinds)]

    async def wait(self, kind: type[Data], count: int = 1, timeout: float = 30) -> Any:  # noqa: ASYNC109  # it is a deadline
        await eventually(lambda: len(self.all(kind)) >= count, timeout)
        return self.all(kind)[count - 1]

    async def send(self, text: str, *more: Block, command: str = "cmd_1") -> None:
        await self.session.send(UserPrompt(command=command, content=[TextBlock(text=text), *more]))

    async def turn(self, text: str, *more: Block) -> TurnCompleted:
        """Says it and waits for the end of the turn."""
        self.turns = len(self.all(TurnCompleted)) + 1
        await self.send(text, *more, command=f"cmd_{self.turns}")
        return await self.wait(TurnCompleted, self.turns)

    async def said(self, text: str, *more: Block) -> str:
        """What the agent says to it."""
        before = len(self.all(MessageAssistant))
        await self.turn(text, *more)
        return "".join(join_text(one.content) for one in self.all(MessageAssistant)[before:])

    async def told(self, text: str, *more: Block) -> Any:
        return json.loads(await self.said(text, *more))


@asynccontextmanager
async def running(
    tmp_path: Path,
    behaviour: str = "",
    *,
    agent: str | None = None,
    resume: str | None = None,
    fork: bool = False,
    since: str | None = None,
    source: Mapping[str, str] | None = None,
    **options: Any,
) -> AsyncGenerator[Running]:
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **(source or {})}
    adapter = AcpAdapter(given)
    options.setdefault("environment", {"STAND_IN": behaviour, "STAND_IN_STATE": str(tmp_path)})
    if agent is None:
        options["native"] = {"command": [STAND_IN], **options.get("native", {})}
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    chosen = SessionOptions(**options)
    start = local_start(
        adapter, work, source=given, options=chosen, agent=agent, native_session=resume, fork=fork, temporary=tmp_path
    )
    start = msgspec.structs.replace(start, native_since=since)
    opened = Running(start, await (adapter.create if resume is None else adapter.resume)(start))
    reading = asyncio.create_task(opened.read())
    try:
        yield opened
    finally:
        await opened.session.close(grace=1)
        await reading
