"""A session of a Codex without an app-server: every prompt is a run of `codex exec`, one after the other."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from trunkline_adapters.codex import exec_launch
from trunkline_adapters.codex.content import plain_text
from trunkline_adapters.codex.exec_messages import kind_of, messages
from trunkline_adapters.codex.state import fact
from trunkline_adapters.codex.translate import CodexTranslator
from trunkline_agentkit import (
    AgentProcess,
    Context,
    Exit,
    Native,
    Out,
    Start,
    UserPrompt,
    decode_line,
    translate,
)
from trunkline_agentkit.fields import Obj, text
from trunkline_wire import TrunklineError
from trunkline_wire.work import NativeMessage

_UNREAD: Final = 1000
"""Messages that nobody has read yet; above it Codex waits."""


class ExecTranslator:
    """What `codex exec --json` says, told as an app-server would: the same events come of both."""

    def __init__(self, context: Context, *, resumed: bool = False) -> None:
        self._resumed = resumed
        self._inner = CodexTranslator(context, exec_launch.CAPABILITIES)
        self._run = 0

    @property
    def thread(self) -> str | None:
        return self._inner.thread

    @property
    def in_turn(self) -> bool:
        return self._inner.turn is not None

    def begin(self, command: str | None, content: list[Obj], *, schema: bool) -> None:
        """A run begins with this prompt."""
        self._run += 1
        params: Obj = {"threadId": self.thread, "input": content, "outputSchema": {} if schema else None}
        if command is not None:
            params["clientUserMessageId"] = command
        self._inner.sent({"id": f"run-{self._run}", "method": "turn/start", "params": params})

    def feed(self, message: Obj) -> list[Out]:
        if text(message, "type") == "thread.started":
            return self._started(text(message, "thread_id") or "")
        new = self._run == 1 and not self._resumed
        meant = messages(message, self.thread or "", self._run, new=new)
        if meant is None:
            return [fact(NativeMessage(known=False, kind=kind_of(message), reason="unknown_type"))]
        return [out for one in meant for out in self._inner.feed(one)]

    def sent(self, message: Obj) -> list[Out]:
        """Nothing is said to Codex but prompts, which are no messages."""
        del message
        return []

    def _started(self, thread: str) -> list[Out]:
        if self._inner.thread is not None:
            return []
        self._inner.sent({"id": 0, "method": "thread/start", "params": {}})
        return self._inner.feed({"id": 0, "result": {"thread": {"id": thread}}})


class ExecSession:
    """Made by `CodexAdapter`. It takes one prompt at a time; nothing runs between two of them."""

    def __init__(self, start: Start, program: str) -> None:
        self._start = start
        self._program = program
        self._native = start.native_session or start.options.resume_native
        self._translator = ExecTranslator(start.context, resumed=self._native is not None)
        self._natives: deque[Native] = deque()
        self._changed = asyncio.Condition()
        self._closing = False
        self._over = False
        self._process: AgentProcess | None = None
        self._reading: asyncio.Task[None] | None = None
        self._exit: Exit | None = None

    async def send(self, prompt: UserPrompt) -> None:
        if self._exit is not None:
            raise TrunklineError("agent_failed", "the session has ended: send a prompt to start it again")
        said = plain_text(prompt.content)
        if self._reading is not None:
            await asyncio.wait({self._reading})
        await asyncio.to_thread(exec_launch.write_schema, self._start)
        argv = exec_launch.arguments(self._start, self._translator.thread or self._native)
        process = await self._start.launch([self._program, *argv])
        self._process = process
        schema = self._start.options.output_schema is not None
        self._translator.begin(prompt.command, [{"type": "text", "text": said}], schema=schema)
        self._reading = asyncio.create_task(self._read(process), name=f"output of {process.pid}")
        for line in said.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
            await process.write_line(line.encode())
        process.close_input()

    async def messages(self) -> AsyncIterator[Native]:
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self._natives or self._over)
                if not self._natives:
                    return
                native = self._natives.popleft()
                self._changed.notify_all()
            yield native

    async def close(self, grace: float = 5.0) -> Exit:
        async with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._exit is None:
            self._exit = Exit(code=0) if self._process is None else await self._process.close(grace)
            if self._reading is not None:
                await asyncio.wait({self._reading})
            await self._end()
        return self._exit

    async def _read(self, process: AgentProcess) -> None:
        async for line in process.lines():
            decoded = decode_line(line)
            kind = kind_of(decoded.message) if decoded.message is not None else "?"
            native = translate(self._translator, decoded, kind)
            async with self._changed:
                await self._changed.wait_for(lambda: len(self._natives) < _UNREAD or self._closing)
                self._natives.append(native)
                self._changed.notify_all()
        end = await process.close()
        if self._translator.in_turn or self._translator.thread is None:
            # It ended without a word about its turn: the session has ended with it.
            self._exit = end
            await self._end()

    async def _end(self) -> None:
        """Tells the reader that nothing follows."""
        async with self._changed:
            self._over = True
            self._changed.notify_all()
