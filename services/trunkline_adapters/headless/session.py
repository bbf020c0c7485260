"""A session: every prompt is a run of the program, one after the other; nothing runs between two of them."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Sequence
from typing import Final

from trunkline_adapters.headless import launch
from trunkline_adapters.headless.native import kind_of
from trunkline_adapters.headless.profiles import Profile
from trunkline_adapters.headless.translate import HeadlessTranslator
from trunkline_agentkit import (
    AgentProcess,
    ConfigurableBase,
    Exit,
    Native,
    Start,
    UserPrompt,
    decode_line,
    translate,
    unsupported,
)
from trunkline_agentkit.protocol import Out
from trunkline_agentkit.redact import redact
from trunkline_agentkit.unread import Unread
from trunkline_wire import TrunklineError
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.turn import Outcome

log = logging.getLogger(__name__)

LINGER_S: Final = 10.0
"""Seconds that a program may take to leave once its turn has ended, or it was interrupted."""
_AGAIN: Final = 2
"""How often a program is started again that has done nothing."""
_SHOWN: Final = 600
"""Characters of the error output that are told, from its end."""


class HeadlessSession(ConfigurableBase):
    """Made by `HeadlessAdapter`. The program's end is told as a message of ours, `exit`, where the program has not told its turn's."""

    def __init__(self, start: Start, profile: Profile, path: str) -> None:
        self._start = start
        self._profile = profile
        self._path = path
        self._native = start.native_session or start.options.resume_native
        self._model = start.options.model
        self._mode = start.options.mode
        self._translator = HeadlessTranslator(start.context, profile, self._mode)
        self._unread = Unread()
        self._sending = asyncio.Lock()
        self._turns = 0
        self._process: AgentProcess | None = None
        self._running: asyncio.Task[None] | None = None
        self._since = 0.0
        """When the program has said its last word, or was interrupted."""
        self._keeping = False
        """What it has said waits for its reader."""
        self._interrupted = False
        self._stalled = False
        self._closing = False
        self._exit: Exit | None = None

    async def send(self, prompt: UserPrompt) -> None:
        said = launch.prompt_text(self._profile, prompt.content)
        async with self._sending:
            if self._running is not None:
                await asyncio.wait({self._running})
            if self._closing or self._exit is not None:
                raise TrunklineError("agent_failed", "the session has ended: send a prompt to start it again")
            process = await self._launch(said)
            anew = self._turns > 0 and self._taking_up is None
            self._turns += 1
            self._translator.begin(prompt.command, anew=anew)
            self._interrupted = self._stalled = False
            if self._profile.ends == "exit":
                await self._tell(self._translator.start(), "start")
            self._running = asyncio.create_task(self._run(process, said), name=f"headless run {process.pid}")

    def messages(self) -> AsyncIterator[Native]:
        return self._unread.messages()

    async def interrupt(self, *, cancel_queued: bool = False) -> None:
        del cancel_queued  # nothing waits here
        if self._process is None or not self._process.running or not self._translator.open:
            raise TrunklineError("stale_target", "no turn is running")
        self._interrupted = True
        self._since = asyncio.get_running_loop().time()
        self._translator.interrupting()
        self._process.signal_group(signal.SIGINT)

    async def set_model(self, model: str) -> None:
        """From the next turn on."""
        if not self._profile.model:
            raise unsupported("model_switching", f"{self._profile.title} can't be told which model to use")
        self._model = model

    async def set_mode(self, mode: str) -> None:
        """From the next turn on."""
        launch.check_mode(self._profile, mode)
        self._mode = mode
        self._translator.choose_mode(mode)

    async def close(self, grace: float = 5.0) -> Exit:
        self._closing = True
        self._unread.release()
        if self._process is not None:
            await self._process.close(grace)
        # A prompt that was on its way has started one more, or sees that it is too late.
        async with self._sending:
            last = Exit(code=0) if self._process is None else await self._process.close(grace)
            if self._running is not None:
                await asyncio.wait({self._running})
            self._exit = self._exit or last
        self._unread.end()
        return self._exit

    @property
    def _taking_up(self) -> str | None:
        """The native session that the next run goes on with."""
        return self._native if self._profile.resume else None

    async def _launch(self, said: str) -> AgentProcess:
        argv = launch.arguments(
            self._path,
            self._profile,
            said,
            session=self._taking_up,
            model=self._model,
            mode=self._mode,
        )
        self._process = process = await self._start.launch(argv, environment=self._start.environment)
        self._since = asyncio.get_running_loop().time()
        return process

    async def _run(self, process: AgentProcess, said: str) -> None:
        try:
            await self._turn(process, said)
        except Exception:
            log.exception("run_failed", extra={"pid": process.pid})
            self._exit = await process.close(0)
            self._unread.end()

    async def _turn(self, process: AgentProcess, said: str) -> None:
        """One turn: what the program says, until nothing of it is left."""
        end = await self._follow(process, said)
        for _ in range(_AGAIN):
            if not self._may_repeat(end):
                break
            log.info("run_repeated", extra={"pid": process.pid})
            process = await self._launch(said)
            end = await self._follow(process, said)
        self._native = self._translator.native_session or self._native
        if self._translator.open:
            await self._settle(end)

    def _may_repeat(self, end: Exit) -> bool:
        """Whether the program has done nothing, and a further run can do better.

        One that missed the prompt is asked again. One that has lost our session goes on in a new one: the log still has it all.
        """
        if self._interrupted or self._closing or self._translator.heard or end.code in {None, 0}:
            return False
        if self._profile.has_missed(end.stderr_tail):
            return True
        wanted = self._taking_up
        if wanted in {None, self._start.options.resume_native} or not self._profile.has_lost(end.stderr_tail):
            return False
        self._native = None
        self._translator.forget()
        return True

    async def _follow(self, process: AgentProcess, said: str) -> Exit:
        watching = asyncio.create_task(self._watch(process), name=f"silence of {process.pid}")
        writing = asyncio.create_task(self._write(process, said), name=f"prompt of {process.pid}")
        try:
            async for line in process.lines():
                self._keeping = True
                await self._unread.put(self._understand(line))
                self._keeping = False
                if not self._interrupted:
                    self._since = asyncio.get_running_loop().time()
        finally:
            watching.cancel()
            writing.cancel()
            await asyncio.gather(watching, writing, return_exceptions=True)
        return await process.close(LINGER_S)

    def _understand(self, line: bytes) -> Native:
        decoded = decode_line(line)
        if decoded.message is None and self._profile.ends == "exit":
            return Native(raw=decoded.raw, out=self._translator.line(line.decode(errors="replace")), kind="text")
        return translate(self._translator, decoded, "?" if decoded.message is None else kind_of(decoded.message))

    async def _write(self, process: AgentProcess, said: str) -> None:
        """The prompt on its standard input, and the end of it. One that leaves without reading it says why itself."""
        try:
            if self._profile.prompt == "stdin":
                for line in said.split("\n"):
                    await process.write_line(line.encode())
        except TrunklineError as error:
            log.info("prompt_unread", extra={"pid": process.pid, "code": error.code})
        process.close_input()

    async def _watch(self, process: AgentProcess) -> None:
        """Ends a program that is silent for too long, or that does not leave."""
        while True:
            rest = self._patience() - (asyncio.get_running_loop().time() - self._since)
            if rest <= 0:
                break
            await asyncio.sleep(min(rest, 1.0))
        self._stalled = self._translator.open and not self._interrupted
        await process.close(0)

    def _patience(self) -> float:
        if self._interrupted or not self._translator.open:
            return LINGER_S
        return float("inf") if self._translator.working or self._keeping else self._profile.stall_s

    async def _settle(self, end: Exit) -> None:
        """The program is gone, and its turn has no end."""
        ending = None if self._closing else self._ending(end)
        if ending is None:
            self._exit = self._exit or end
            self._unread.end()
            return
        outcome, error = ending
        await self._tell(self._translator.over(outcome, error), "exit")
        if error is not None and error.code == "history_lost":
            self._native = None

    async def _tell(self, out: Sequence[Out], kind: str) -> None:
        await self._unread.put(Native(raw=b"", out=out, kind=kind, ours=True))

    def _ending(self, end: Exit) -> tuple[Outcome, ErrorInfo | None] | None:
        """How a turn ended whose end was not told; None for a program that was killed, with which the session ends."""
        title = self._profile.title
        if self._interrupted:
            return "interrupted", None
        if self._stalled:
            silent = f"{title} was silent for {self._profile.stall_s:g} s and was ended: try again"
            return "error", ErrorInfo(code="timeout", message=silent)
        if end.code is None:
            return None
        if end.code == 0 and self._translator.answered():
            return "success", None
        said = redact(end.stderr_tail.strip()[-_SHOWN:], self._start.environment) or self._translator.failure()
        nothing = f"{title} ended with exit code {end.code} and without a result"
        return "error", self._profile.failure(said or nothing)
