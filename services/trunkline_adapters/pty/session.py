"""A session: one program in its terminal. Its screen is read off the loop, and prompts are typed when it waits for one."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import msgspec

from trunkline_adapters.pty import launch, native
from trunkline_adapters.pty.link import Heard, Link
from trunkline_adapters.pty.log import LogReader
from trunkline_adapters.pty.profiles import Profile
from trunkline_adapters.pty.translate import PtyTranslator
from trunkline_agentkit import (
    ConfigurableBase,
    Exit,
    Fact,
    Native,
    Out,
    Piece,
    Start,
    Survivor,
    UserPrompt,
    decode_line,
    translate,
    unsupported,
    untranslated,
)
from trunkline_agentkit.agent_process import Said
from trunkline_agentkit.catching_up import CatchingUp
from trunkline_agentkit.fields import Obj, text, truth
from trunkline_agentkit.framing import NOT_JSON, Decoded
from trunkline_agentkit.unread import Unread
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided
from trunkline_wire.ids import item_id
from trunkline_wire.turn import MessageUser

log = logging.getLogger(__name__)

ECHOES_WITHIN_S: Final = 5.0
"""Seconds that a program may take to show what is typed; some never do."""
LEAVES_WITHIN_S: Final = 3.0
"""Seconds that a program may take to end once it was told to in its own words."""


class PtySession(ConfigurableBase):
    """Made by `PtyAdapter`. `said` is what had passed before a program was taken up from its detached holder."""

    def __init__(
        self,
        start: Start,
        profile: Profile,
        link: Link,
        translator: PtyTranslator,
        *,
        log: LogReader | None = None,
        writable: bool = True,
        said: Sequence[Said] | None = None,
    ) -> None:
        self._start = start
        self._profile = profile
        self._link = link
        self._process = process = link.process
        self._translator = translator
        self._log = log
        self._writable = writable
        self._unread = Unread()
        self._translating = asyncio.Lock()
        self._typing = asyncio.Lock()
        self._ending = asyncio.Lock()
        self._said = said
        messages = [decode_line(one.line).message or {} for one in said or () if one.ours]
        self._received = {text(message, "command") for message in messages}
        self._typed = ""
        """What a worker before had typed of a prompt without its end."""
        self._prompts: deque[tuple[UserPrompt, str]] = deque()
        self._news = asyncio.Event()
        self._heard = asyncio.get_running_loop().time()
        """Loop time of the last message."""
        self._shows: Callable[[bytes], None] | None = None
        self._exit: Exit | None = None
        self._closing = False
        self._tasks = [
            asyncio.create_task(self._read(), name=f"terminal of {process.pid}"),
            asyncio.create_task(self._keep_time(), name=f"clock of {process.pid}"),
        ]

    def received(self, command: str) -> bool:
        return command in self._received

    async def send(self, prompt: UserPrompt) -> None:
        said = launch.prompt_text(prompt.content)
        if not self._writable:
            raise _looks_only()
        if self._closing or not self._process.running:
            raise _gone()
        self._prompts.append((prompt, said))
        self._news.set()

    def messages(self) -> AsyncIterator[Native]:
        return self._unread.messages()

    async def interrupt(self, *, cancel_queued: bool = False) -> None:
        waiting = bool(self._prompts)
        if cancel_queued or not self._translator.open:
            await self._cancel_prompts()
        if self._translator.open:
            await self._type(self._profile.interrupt)
            for _ in range(self._profile.interrupts - 1):
                await asyncio.sleep(self._profile.submit_s)
                await self._type(self._profile.interrupt)
        elif not waiting:
            raise TrunklineError("stale_target", "no turn is running")

    async def decide(self, ask: str, decision: AskDecided) -> None:
        *before, last = self._translator.keys_for(ask, decision)
        for key in before:
            await self._type(key)
            await asyncio.sleep(self._profile.submit_s)
        await self._type(last, answers=ask)

    async def pending(self) -> set[str] | None:
        return self._translator.pending

    async def close(self, grace: float = 5.0) -> Exit:
        self._closing = True
        self._unread.release()
        async with self._ending:
            if self._exit is None:
                if grace > 0:
                    await self._ask_to_leave(grace)
                await self._end(await self._link.close(grace))
        return self._exit or Exit()

    async def abandon(self) -> Exit:
        """Lets go of a program that is held; any other ends."""
        self._closing = True
        self._unread.release()
        async with self._ending:
            if self._exit is None:
                await self._end(await self._link.abandon())
        return self._exit or Exit()

    # The terminal, for those who look at it and type there

    @property
    def size(self) -> tuple[int, int]:
        return self._translator.screen.columns, self._translator.screen.rows

    @property
    def writable(self) -> bool:
        return self._writable

    def follow(self, shows: Callable[[bytes], None] | None) -> None:
        self._shows = shows

    async def paint(self, history: int, place: Callable[[bytes], None]) -> None:
        above = await self._link.history(history) if history > 0 else None
        # Nothing is shown meanwhile, so the screen is the one at this very point of what is printed.
        async with self._translating:
            painted = await asyncio.to_thread(self._translator.screen.paint, history, above)
            place(painted.encode(errors="replace"))

    async def type(self, keys: str) -> None:
        await self._type(keys, person=True)

    async def resize(self, columns: int, rows: int) -> None:
        if not self._process.running:
            raise _gone()
        if self._link.answers:
            await self._tell(lambda at: native.resized(columns, rows, at))
        await self._link.resize(columns, rows)

    async def _ask_to_leave(self, grace: float) -> None:
        if not self._profile.leave or not self._process.running or not self._translator.ready:
            return
        with contextlib.suppress(TrunklineError, TimeoutError):
            await self._type(self._profile.leave, leaves=True)
            async with asyncio.timeout(min(grace, LEAVES_WITHIN_S)):
                await self._process.wait()

    async def _end(self, found: Exit) -> None:
        await asyncio.wait(self._tasks)
        words = found.stderr_tail.strip() or self._translator.last_words
        self._exit = self._exit or msgspec.structs.replace(found, stderr_tail=words)

    async def _read(self) -> None:
        """What the terminal says, until it has ended."""
        try:
            if self._said is not None and self._start.survivor is not None:
                await self._catch_up(self._said, self._start.survivor)
            async for heard in self._link.heard():
                await self._unread.room()
                await self._understand(heard)
                answers = self._translator.take_answers()
                if answers and self._link.answers and self._process.running:
                    with contextlib.suppress(TrunklineError):
                        await self._type(answers, reports=True)
        finally:
            self._unread.end()
            self._closing = True
            self._news.set()

    async def _catch_up(self, said: Sequence[Said], survivor: Survivor) -> None:
        """Goes through all that had passed, in its order; what the log lacks of it is told."""
        async with self._translating:
            caught = await asyncio.to_thread(catch_up, self._translator, said, survivor)
            for one in caught.new:
                self._unread.keep(one)
            self._typed, self._said = caught.typed, None
            self._heard = asyncio.get_running_loop().time()
        self._news.set()
        if caught.answers and self._process.running:
            with contextlib.suppress(TrunklineError):
                await self._type(caught.answers, reports=True)

    async def _understand(self, heard: Heard) -> None:
        async with self._translating:
            if heard.messages:
                self._heard = asyncio.get_running_loop().time()
                self._show(heard.messages)
            await self._read_log()
            self._unread.keep(await asyncio.to_thread(understand, self._translator, heard))
            self._process.taken()
        self._news.set()

    def _show(self, messages: list[Obj]) -> None:
        if self._shows is None:
            return
        for message in messages:
            if native.kind_of(message) == "output" and (data := text(message, "data")):
                self._shows(data.encode(errors="replace"))

    async def _keep_time(self) -> None:
        """Tells the translator of time that has passed, and types prompts when the program waits for one."""
        while not self._closing:
            self._news.clear()
            try:
                async with asyncio.timeout(self._wait()):
                    await self._news.wait()
            except TimeoutError:
                await self._tell(native.tick)
            if self._prompts and self._translator.ready and not self._closing:
                await self._type_prompt()

    def _wait(self) -> float | None:
        """Seconds until something is due."""
        due = self._translator.due
        return None if due is None else max(0.0, due - self._now())

    def _now(self) -> float:
        """The terminal's time."""
        return self._translator.at + max(0.0, asyncio.get_running_loop().time() - self._heard)

    async def _type_prompt(self) -> None:
        prompt, said = self._prompts.popleft()
        try:
            keys, typed, self._typed = launch.keystrokes(said, pastes=self._translator.pastes), self._typed, ""
            if keys != typed:
                await self._type(keys)
            await self._until_shown(said)
            await asyncio.sleep(self._profile.submit_s)
            if self._log is not None:
                await asyncio.to_thread(self._log.begin, said)
            await self._type(self._profile.submit, begins=True, command=prompt.command)
        except TrunklineError:
            log.info("prompt_untyped", extra={"pid": self._process.pid})

    async def _until_shown(self, said: str) -> None:
        """Waits for the echo: some take an Enter that comes with the text for a part of it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ECHOES_WITHIN_S):
                while not self._translator.shows(said) and not self._closing:
                    self._news.clear()
                    await self._news.wait()

    async def _cancel_prompts(self) -> None:
        out: list[Out] = []
        while self._prompts:
            prompt, _ = self._prompts.popleft()
            item = item_id(self._start.session, self._start.incarnation, prompt.command)
            data = MessageUser(content=prompt.content, delivery="cancelled", command=prompt.command)
            out.append(Fact(data=data, item=item))
        self._keep(out, "input")

    async def _type(self, data: str, **what: object) -> None:
        async with self._typing:
            if not self._process.running:
                raise _gone()
            if not self._writable:
                raise _looks_only()
            await self._tell(lambda at: native.typed(data, at, **what), put=self._link.put)  # pyright: ignore[reportArgumentType]  # passed through
            await self._process.drain()

    async def _tell(self, make: Callable[[float], Obj], put: Callable[[Obj], None] | None = None) -> None:
        """Has the translator know of what we do, at the terminal's present time."""
        async with self._translating:
            await self._read_log()
            message = make(self._now())
            # First: what the log says of it must have been done.
            (put or self._process.note)(message)
            self._heard = asyncio.get_running_loop().time()
            out = await asyncio.to_thread(self._translator.sent, message)
            self._keep(out, native.kind_of(message))
        self._news.set()

    async def _read_log(self) -> None:
        """Tells the translator what the program itself has kept of the turn, before that may end."""
        if self._log is None or not self._translator.open:
            return
        for said in await asyncio.to_thread(self._log.news, asyncio.get_running_loop().time()):
            message = native.logged(said, self._translator.at)
            self._process.note(message)
            self._keep(self._translator.sent(message), "logged")

    def _keep(self, out: list[Out], kind: str) -> None:
        if out:
            self._unread.keep(Native(raw=b"", out=out, kind=kind, ours=True))


class Caught(msgspec.Struct, frozen=True, kw_only=True):
    """`typed` waits for its Enter, `answers` are those that the program waits for."""

    new: list[Native]
    typed: str
    answers: str


def catch_up(translator: PtyTranslator, said: Sequence[Said], survivor: Survivor) -> Caught:
    """What follows from all that had passed, and the log lacks."""
    catching_up, new, typed, answers = CatchingUp(survivor), list[Native](), "", ""
    for one in said:
        decoded = decode_line(one.line)
        message = decoded.message
        if not one.ours:
            heard = Heard(raw=decoded.raw, messages=None if message is None else [message])
            new += catching_up.pass_on(understand(translator, heard))
            answers += translator.take_answers()
        elif message is not None:
            out = translator.sent(message)
            new += catching_up.pass_on(Native(raw=b"", out=out, kind=native.kind_of(message), ours=True))
            data = text(message, "data") or ""
            if truth(message, "reports"):
                answers = answers.removeprefix(data)
            elif native.kind_of(message) == "input":
                done = truth(message, "begins") or message.get("answers") is not None
                typed = "" if done else typed + data
    return Caught(new=[*new, *catching_up.end()], typed=typed, answers=answers)


def understand(translator: PtyTranslator, heard: Heard) -> Native:
    """What a line means: one message, several, or nothing but a step of what carries them."""
    if heard.messages is None:
        return untranslated(heard.raw, "?", NOT_JSON)
    out: list[Out] = []
    kind = "control"
    for message in heard.messages:
        kind = native.kind_of(message)
        out += translate(translator, Decoded(raw=heard.raw, message=message), kind).out
    return Native(raw=heard.raw, out=out or [Piece(item="", block=0, kind="text", text="")], kind=kind)


def _looks_only() -> TrunklineError:
    return unsupported(
        "terminal", "the session only looks at this terminal: start it with the native option `writable` to type there"
    )


def _gone() -> TrunklineError:
    return TrunklineError("agent_failed", "the program has ended: send a prompt to start it again")
