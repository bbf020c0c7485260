"""A running session of a server: prompts and decisions in, translated messages out."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

from trunkline_adapters.opencode import launch, replies
from trunkline_adapters.opencode.choices import Choices
from trunkline_adapters.opencode.content import native_parts
from trunkline_adapters.opencode.errors import refusal
from trunkline_adapters.opencode.follow import Follower
from trunkline_adapters.opencode.profiles import Profile
from trunkline_adapters.opencode.server import Server
from trunkline_adapters.opencode.state import Beginning
from trunkline_adapters.opencode.translate import OpenCodeTranslator
from trunkline_adapters.opencode.translate_session import (
    COMPACT,
    SHELL,
    commands_of,
    model_of,
    prompt_of,
)
from trunkline_agentkit import (
    ConfigurableBase,
    Decoded,
    Exchange,
    Exit,
    HttpResponse,
    Native,
    Start,
    UserPrompt,
    translate,
    unsupported,
)
from trunkline_agentkit.fields import Obj, as_obj, obj, objects, text
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided
from trunkline_wire.blocks import Json
from trunkline_wire.session import Thinking

log = logging.getLogger(__name__)

START_DEADLINE: Final = 120.0
"""Seconds for each answer while a session begins: the first request sets up a directory, for which a busy machine takes long."""
DEADLINE: Final = 30.0
COMMAND_DEADLINE: Final = 24 * 3600.0
"""Seconds for the answer to a request that comes only when its turn is over."""
GRACE: Final = 3.0
"""Seconds after which a session that rests in the middle of a turn, or beside a prompt, is asked how it is."""
AGAIN: Final = 90.0
"""Seconds that a lost server may take to come back."""
_REVIVALS: Final = 3
_LAST_WORD: Final = 3.0
_METHODS: Final = frozenset({"DELETE", "GET", "PATCH", "POST", "PUT"})


class OpenCodeSession(ConfigurableBase):
    """Made by `OpenCodeAdapter`; `open` before use."""

    def __init__(self, start: Start, server: Server, translator: OpenCodeTranslator, profile: Profile) -> None:
        self._start = start
        self._server = server
        self._translator = translator
        self._profile = profile
        self._exchange = Exchange(
            self._understand,
            sent=translator.sent,
            record=server.record,
            shown=launch.shown,
            concerns=translator.concerns,
            secrets=server.secrets,
        )
        self._follower = Follower(self._exchange, server, translator, self._ask)
        self._choices = Choices(translator, profile)
        self._bodies: dict[str, Obj] = {}
        """Of prompts that no answer has come to, by their commands."""
        self._revived: dict[str, int] = {}
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._caring: asyncio.Task[None] | None = None
        self._closing = False

    async def open(self) -> None:
        """Starts or reaches the server, and begins, takes up or copies the session. On failure the server is ended.

        Raises TrunklineError `agent_auth`, `history_lost`, `agent_failed`, `timeout`, `bad_params`.
        """
        try:
            await self._server.open(self._exchange)
            await self._learn()
            await self._begin()
            await self._follower.start()
            self._choices.settle(self._start.options)
        except BaseException:
            await self.close(grace=0)
            raise

    async def _learn(self) -> None:
        """What the session can choose from."""
        await self._ask("GET", "/global/health", deadline=START_DEADLINE)
        for name, given in self._start.options.mcp_servers.items():
            await self._ask("POST", "/mcp", launch.mcp_body(name, given), deadline=START_DEADLINE)
        for path in ("/config", "/config/providers", "/agent", "/command", "/mcp", "/experimental/tool/ids"):
            await self._ask("GET", path, deadline=START_DEADLINE)

    async def _begin(self) -> None:
        start = self._start
        native = start.native_session or start.options.resume_native
        if start.survivor is not None:
            self._translator.restore(start.survivor)
        if native is None:
            await self._ask("POST", "/session", launch.session_body(start), deadline=START_DEADLINE)
        elif start.fork:
            body: Obj = {}
            if start.fork_at is not None:
                body["messageID"] = await self._message_of(native, start.fork_at)
            await self._ask("POST", f"/session/{native}/fork", body, deadline=START_DEADLINE)
        else:
            await self._ask("GET", f"/session/{native}", deadline=START_DEADLINE)
        if self._translator.session is None:
            raise TrunklineError("agent_failed", f"{self._profile.title} gave the session no id: update it")

    async def send(self, prompt: UserPrompt) -> None:
        parts = native_parts(prompt.content, prompt.command)
        await self._until_ready()
        turn = self._translator.turn
        if turn is not None and turn.interrupted:
            # What is said to a turn that is about to end may be kept and never answered.
            await self._wait(lambda: self._translator.turn is not turn, GRACE * 5)
        self._bodies[prompt.command] = launch.prompt_body(self._start.options, parts) | self._choices.of_prompt()
        await self._prompt(prompt.command)

    async def _prompt(self, command: str) -> None:
        body = self._bodies[command]
        for left in (1, 0):
            try:
                await self._ask("POST", f"{self._path}/prompt_async", body)
            except TrunklineError as error:
                if "sent" not in error.details:
                    del self._bodies[command]
                    raise
                again = left and not error.details["sent"]
                if not await self._came_through(command, again=bool(again)):
                    del self._bodies[command]
                    raise
                if not again:
                    return
            else:
                return

    async def _came_through(self, command: str, *, again: bool) -> bool:
        """After a lost connection: whether the server has a prompt, or may be given it `again`."""
        if not again and self._translator.stored(command):
            return True
        await self._until_ready()
        if again or self._translator.stored(command) or not self._translator.awaits(command):
            if again:
                self._translator.forget(command)
            return True
        self._translator.forget(command)
        return False

    def messages(self) -> AsyncIterator[Native]:
        return self._exchange.messages()

    async def close(self, grace: float = 5.0) -> Exit:
        self._closing = True
        self._exchange.release()
        await self._leave()
        return await self._let_go(grace)

    async def abandon(self) -> Exit:
        """Lets go of a session that runs on, on a server that is not ours."""
        self._closing = True
        self._exchange.release()
        return await self._let_go(0)

    async def _let_go(self, grace: float) -> Exit:
        await self._follower.stop()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._exchange.close()
        return await self._server.close(grace)

    async def _leave(self) -> None:
        """Nothing is to run on for a session that is closed: a shared server would not end the turn by itself."""
        if self._translator.turn is None or not self._server.outlives or self._exchange.ended:
            return
        try:
            await self._ask("POST", f"{self._path}/abort", deadline=_LAST_WORD)
        except TrunklineError as error:
            log.info("turn_left_running", extra={"error": str(error)})

    async def interrupt(self, *, cancel_queued: bool = False) -> None:
        del cancel_queued  # prompts wait in Trunkline
        if self._translator.turn is None:
            raise TrunklineError("stale_target", "no turn runs that could be interrupted")
        await self._ask("POST", f"{self._path}/abort")

    async def decide(self, ask: str, decision: AskDecided) -> None:
        waiting = self._translator.open_ask(ask)
        if waiting is None:
            raise TrunklineError("unknown_ask", f"the agent does not wait for {ask!r} any more")
        path, body = replies.answer(waiting, decision)
        try:
            await self._ask("POST", path, body)
        except TrunklineError as error:
            if "sent" not in error.details:
                raise
            # With what is read back the answer is given once more, if the server still waits for it.
            await self._until_ready()
        if waiting.kind == "question" and decision.interrupt:
            await self.interrupt()

    async def pending(self) -> set[str] | None:
        return self._translator.open_asks()

    async def set_model(self, model: str) -> None:
        self._choices.choose_model(model)

    async def set_mode(self, mode: str) -> None:
        self._choices.choose_mode(mode)

    async def set_thinking(self, level: Thinking) -> None:
        self._choices.choose_thinking(level)

    async def run_command(self, name: str, arguments: str, command_id: str) -> None:
        name = name.removeprefix("/")
        there = [one.id for one in commands_of(self._translator.state)]
        if name not in there:
            raise TrunklineError("bad_params", f"there is no command {name!r}; there are: {', '.join(there)}")
        own = {text(one, "name") for one in self._translator.learned.commands}
        if name == COMPACT.id and name not in own:
            await self.compact(arguments or None, command_id)
            return
        chosen = self._choices.of_prompt()
        if name == SHELL.id and name not in own:
            chosen.pop("variant", None)
            await self._begin_turn(f"{self._path}/shell", chosen | {"command": arguments}, command_id)
            return
        if model := chosen.pop("model", None):
            chosen["model"] = model_of(model)
        body = chosen | {"command": name, "arguments": arguments}
        await self._begin_turn(f"{self._path}/command", body, command_id)

    async def compact(self, instructions: str | None, command_id: str) -> None:
        if instructions:
            raise unsupported("compaction", f"{self._profile.title} compacts without instructions: leave them out")
        model = self._choices.model
        if model is None:
            raise TrunklineError("bad_params", "no model is known that could write the summary: choose one")
        await self._begin_turn(f"{self._path}/summarize", launch.model_body(model), command_id)

    async def _begin_turn(self, path: str, body: Obj, command: str) -> None:
        """Sends a request that is answered when its turn is over, and waits until the turn has begun."""
        await self._until_ready()
        self._translator.name(command)
        turns = self._translator.state.turns
        asking = self._spawn(self._ask("POST", path, body, deadline=COMMAND_DEADLINE))
        beginning = self._spawn(self._wait(lambda: self._translator.state.turns > turns, COMMAND_DEADLINE))
        await asyncio.wait({asking, beginning}, return_when=asyncio.FIRST_COMPLETED)
        beginning.cancel()
        if asking.done():
            asking.result()

    async def rename(self, title: str) -> None:
        await self._ask("PATCH", self._path, {"title": title})

    async def rewind(self, to: str, *, dry_run: bool = False) -> Json:
        """Takes files and conversation back to before a prompt; `native` with `POST /session/{session}/unrevert` undoes it."""
        message = await self._message_of(self._translator.session or "", to)
        told = await self._ask("GET", f"{self._path}/diff?messageID={message}")
        changed = [text(one, "file") for one in objects({"diffs": told.body}, "diffs")]
        if not dry_run:
            await self._ask("POST", f"{self._path}/revert", {"messageID": message})
        return {"files": [name for name in changed if name]}

    async def native(self, method: str, params: dict[str, Json]) -> Json:
        """Any request of the server: `method` is its method and path, `{session}` in it this session; `params` are its body."""
        verb, _, path = method.partition(" ")
        if verb not in _METHODS or not path.startswith("/"):
            raise TrunklineError("bad_params", f"{method!r} is no request: write `GET /session/{{session}}/todo`")
        path = path.replace("{session}", self._translator.session or "")
        answer = await self._ask(verb, path, params if params or verb == "POST" else None)
        return launch.shown(f"{verb} {path}", answer.body)

    async def _message_of(self, session: str, command: str) -> str:
        """The user message of a prompt's command. Raises TrunklineError `bad_params`."""
        answer = await self._ask("GET", f"/session/{session}/message")
        message = prompt_of(objects({"messages": answer.body}, "messages"), command)
        if message is None:
            raise TrunklineError("bad_params", f"the session holds no prompt of the command {command!r}")
        return message

    @property
    def _path(self) -> str:
        return f"/session/{self._translator.session}"

    async def _ask(self, method: str, path: str, body: Any = None, *, deadline: float | None = None) -> HttpResponse:
        """The server's answer. Raises TrunklineError where it refuses, and what `Exchange.request` raises."""
        answer = await self._exchange.request(method, path, body, deadline=DEADLINE if deadline is None else deadline)
        if not answer.ok:
            raise refusal(f"{method} {path}", answer)
        return answer

    async def _until_ready(self) -> None:
        """Until events come and nothing is missing. Raises TrunklineError `agent_failed` where that takes too long."""
        if self._follower.ready.is_set():
            return
        await self._wait(lambda: self._follower.ready.is_set() or self._exchange.ended, AGAIN)
        if not self._follower.ready.is_set():
            raise TrunklineError("agent_failed", "the server is gone: send a prompt to start it again")

    async def _wait(self, condition: Callable[[], bool], limit: float) -> bool:
        """Waits for what messages bring about; whether it came in time."""
        try:
            async with asyncio.timeout(limit), self._changed:
                await self._changed.wait_for(condition)
        except TimeoutError:
            return condition()
        return True

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("request_failed", extra={"error": str(error)})

    def _understand(self, decoded: Decoded) -> Native:
        message = decoded.message
        kind = self._translator.kind(message) if message is not None else "?"
        native = translate(self._translator, decoded, kind)
        if not self._closing:
            self._spawn(self._tell())
            self._care()
        return native

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _care(self) -> None:
        """Sees to what does not come by itself."""
        turn = self._translator.turn
        lost = bool(self._translator.unanswered()) or (turn is not None and turn.idle)
        hopeless = turn is not None and turn.hopeless is not None and not turn.interrupted
        repeats = bool(self._translator.state.repeats)
        if (lost or hopeless or repeats) and (self._caring is None or self._caring.done()):
            self._caring = self._spawn(self._see_to_it())

    async def _see_to_it(self) -> None:
        for ask in self._translator.repeats():
            await self._ask("POST", *replies.repeated(ask))
        turn = self._translator.turn
        if turn is not None and turn.hopeless is not None and not turn.interrupted:
            await self._ask("POST", f"{self._path}/abort")
        if turn is not None and turn.idle:
            if not await self._wait(lambda: self._translator.turn is not turn or not turn.idle, GRACE):
                await self._follower.doubt()
        elif (waiting := self._translator.unanswered()) and not await self._wait(
            lambda: self._translator.turn is not None or not self._translator.unanswered(), GRACE
        ):
            for beginning in waiting:
                await self._revive(beginning)

    async def _revive(self, beginning: Beginning) -> None:
        """A prompt that the server keeps and does not answer is sent again in its place."""
        command, message = beginning.command, beginning.message
        if command is None or command not in self._bodies:
            return
        status = await self._ask("GET", "/session/status")
        if text(obj(as_obj(status.body), self._translator.session or ""), "type") not in {None, "idle"}:
            return
        self._revived[command] = self._revived.get(command, 0) + 1
        if self._revived[command] > _REVIVALS:
            self._exchange.say({"unanswered": command})
            return
        log.warning("prompt_unanswered", extra={"command": command, "times": self._revived[command]})
        await self._ask("DELETE", f"{self._path}/message/{message}")
        self._translator.forget(command)
        await self._prompt(command)
