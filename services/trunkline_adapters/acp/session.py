"""A running agent: prompts and decisions in, translated messages out.

The protocol has one turn at a time, so prompts that come while one runs wait here. What ends a turn is the agent's answer
to its prompt, which nobody awaits: however late it comes, the turn ends with it. Only an agent that does not heed an
interrupt is ended itself, and a further process takes its session up.
"""

import asyncio
import contextlib
import datetime as dt
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Final

from trunkline_adapters.acp import gemini_leftovers, replies
from trunkline_adapters.acp.content import native_content
from trunkline_adapters.acp.files import Files
from trunkline_adapters.acp.launch import failed, initialize, level_among, session_params, until_loadable
from trunkline_adapters.acp.native import ASKED, CANCEL_REQUEST, CODES, VERSION
from trunkline_adapters.acp.profiles import Profile
from trunkline_adapters.acp.renewal import Renewal, messages_of
from trunkline_adapters.acp.state import Turn, fact
from trunkline_adapters.acp.terminals import Terminals
from trunkline_adapters.acp.translate import AcpTranslator
from trunkline_adapters.acp.translate_session import MODE, MODEL, THINKING, capabilities, choices_of, option_of
from trunkline_agentkit import AgentProcess, ConfigurableBase, Decoded, Exit, Native, Peer, Start, UserPrompt
from trunkline_agentkit import translate as translate_message
from trunkline_agentkit.fields import Obj, as_obj, obj, text, whole
from trunkline_agentkit.peer import Serve
from trunkline_agentkit.protocol import unsupported
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided
from trunkline_wire.blocks import Block, Json, TextBlock
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.session import Thinking
from trunkline_wire.work import ErrorRaised

log = logging.getLogger(__name__)

NATIVE_DEADLINE: Final = 60.0
_CLOSE_DEADLINE: Final = 2.0
_QUIET: Final = 0.4
_QUIET_AT_LAST: Final = 10.0
"""Seconds of silence after which a session's history is told, and how long it is waited for."""


class AcpSession(ConfigurableBase):
    """Made by `AcpAdapter`, which says how `argv` starts the agent; `open` before use."""

    def __init__(
        self, process: AgentProcess, translator: AcpTranslator, profile: Profile, start: Start, argv: Sequence[str]
    ) -> None:
        self._translator = translator
        self._profile = profile
        self._start = start
        self._argv = argv
        self._agent: Obj = {}
        self._waiting: deque[tuple[str, list[Block], list[Obj]]] = deque()
        """Prompts behind the running turn: command, content, and the content as the agent takes it."""
        self._next: asyncio.Task[None] | None = None
        self._heard = 0.0
        """When the agent's last message came."""
        self._insisting: asyncio.Task[None] | None = None
        """Waits for the end of a turn that was interrupted, or brings the next process."""
        self._renewal: Renewal | None = None
        self._renewing = False
        self._connect(process)

    def _connect(self, process: AgentProcess) -> None:
        self._process = process
        self._terminals = Terminals(self._start.cwd, self._start.environment, self._translator.terminal)
        self._peer = Peer(
            process,
            self._understand,
            sent=self._translator.sent,
            served=self._served(),
            asked=ASKED,
            cancels=(CANCEL_REQUEST, "requestId"),
            codes=CODES,
        )

    def _served(self) -> dict[str, Serve]:
        served: dict[str, Serve] = {}
        if self._profile.files:
            files = Files(self._start.cwd, missing_is_empty=self._profile.missing_file == "empty")
            served |= {"fs/read_text_file": files.read, "fs/write_text_file": files.write}
        if self._profile.terminals:
            served |= self._terminals.served
        return served

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def _native(self) -> str:
        return self._translator.state.known.native_session or ""

    async def open(self) -> None:
        """Introduces us to the agent and begins, takes up or forks its session. On failure the agent is ended.

        Raises TrunklineError `agent_auth` saying which command to run, `history_lost`, `unsupported`, `bad_params`,
        `timeout`, or `agent_failed` with the end of its error output.
        """
        start, options = self._start, self._start.options
        try:
            await self._introduce()
            await self._begin(start.native_session or options.resume_native, fork=start.fork)
            await self._configure(options.mode, options.model, options.thinking)
        except TrunklineError as error:
            raise failed(self._profile, self._agent, await self.close(grace=0), error) from error
        except BaseException:
            await self.close(grace=0)
            raise

    async def _introduce(self) -> None:
        deadline = self._profile.start_s
        self._agent = as_obj(await self._peer.request("initialize", initialize(self._profile), deadline=deadline))
        spoken = whole(self._agent, "protocolVersion")
        if spoken != VERSION:
            raise TrunklineError("agent_failed", f"{self._profile.title} speaks version {spoken} of ACP, not {VERSION}")
        if (method := self._start.options.native.get("authenticate")) is not None:
            await self._peer.request("authenticate", {"methodId": method}, deadline=deadline)

    async def _begin(self, native: str | None, *, fork: bool) -> None:
        start, deadline = self._start, self._profile.start_s
        params = session_params(start, self._agent)
        if native is None:
            await self._peer.request("session/new", params, deadline=deadline)
            return
        has = obj(self._agent, "agentCapabilities")
        able = obj(has, "sessionCapabilities")
        params["sessionId"] = native
        if fork:
            if "fork" not in able:
                raise unsupported("fork", f"{self._profile.title} can't copy a session")
            if self._profile.load_to_fork:
                self._translator.copying()
                await self._peer.request("session/load", params, deadline=deadline)
            await self._peer.request("session/fork", params, deadline=deadline)
            await self._until_quiet()
            return
        if "resume" not in able and has.get("loadSession") is not True:
            raise TrunklineError("history_lost", f"{self._profile.title} can't take up a session")
        # Taking up says nothing of the past; loading tells all of it again.
        method = "session/resume" if "resume" in able else "session/load"
        if method == "session/load" and self._profile.load_later:
            await asyncio.sleep(until_loadable(start.native_since, dt.datetime.now(dt.UTC)))
        try:
            await self._peer.request(method, params, deadline=deadline)
        except TrunklineError as error:
            if error.code in ("agent_failed", "bad_params") and not self._peer.ended:
                raise TrunklineError(
                    "history_lost", f"{self._profile.title} does not know the session {native!r}: {error.message}"
                ) from error
            raise
        if method == "session/load":
            await self._until_quiet()
        if self._profile.history is not None:
            await asyncio.to_thread(gemini_leftovers.remove, start.environment, native)

    async def _until_quiet(self) -> None:
        """Some agents go on telling the history after their answer: what comes behind our first prompt would be its turn's."""
        clock = asyncio.get_running_loop().time
        latest = clock() + _QUIET_AT_LAST
        while (rest := min(self._heard + _QUIET, latest) - clock()) > 0 and not self._peer.ended:  # noqa: ASYNC110  # silence is what it waits for
            await asyncio.sleep(rest)

    async def _configure(self, mode: str | None, model: str | None, thinking: Thinking | None) -> None:
        """Mode, model and thinking as they are wanted. A mode of the profile's is only set where the agent has it."""
        known = self._translator.state.known
        if mode is not None:
            await self.set_mode(mode)
        elif self._profile.mode in {one.id for one in known.modes} - {known.mode, None}:
            await self.set_mode(self._profile.mode or "")
        if model is not None:
            await self.set_model(model)
        if thinking is not None:
            await self.set_thinking(thinking)

    async def send(self, prompt: UserPrompt) -> None:
        supported = obj(obj(self._agent, "agentCapabilities"), "promptCapabilities")
        await self._prompt(prompt.command, prompt.content, native_content(prompt.content, supported))

    async def _prompt(self, command: str, content: list[Block], native: list[Obj]) -> None:
        await self._until_renewed()
        if self._peer.ended or not self._process.running:
            raise TrunklineError("agent_failed", "the agent has ended: send a prompt to start it again")
        if self._translator.busy or self._waiting:
            self._waiting.append((command, content, native))
        else:
            await self._post(command, content, native)

    async def _until_renewed(self) -> None:
        """A process that is on its way out, or whose login was refused, hears no further prompt: the next one may find another login."""
        state = self._translator.state
        if state.signed_out and capabilities(state).resume and not self._renewing:
            self._renewing = True
            self._insisting = asyncio.create_task(self._replace(), name=f"renewal of {self._process.pid}")
        if self._renewing and self._insisting is not None:
            await asyncio.wait({self._insisting})

    async def _post(self, command: str, content: list[Block], native: list[Obj]) -> None:
        self._translator.prompt(command, content)
        try:
            await self._peer.post("session/prompt", {"sessionId": self._native, "prompt": native})
        except TrunklineError as error:
            if error.code != "timeout":  # then the agent may still take it
                self._peer.tell(self._translator.undelivered(command, ErrorInfo.of(error)), "session/prompt")
            raise

    def messages(self) -> AsyncIterator[Native]:
        return messages_of(self._peer, lambda: self._renewal)

    async def close(self, grace: float = 5.0) -> Exit:
        self._peer.release()
        if self._insisting is not None and self._insisting is not asyncio.current_task():
            self._insisting.cancel()
            await asyncio.gather(self._insisting, return_exceptions=True)
        if grace and self._process.running and not self._translator.busy:
            await self._say_goodbye()
        if self._next is not None:
            self._next.cancel()
        await self._terminals.close()
        end = await self._process.close(grace)
        await self._peer.wait()
        return end

    async def _say_goodbye(self) -> None:
        able = obj(obj(self._agent, "agentCapabilities"), "sessionCapabilities")
        if "close" in able and self._native:
            with contextlib.suppress(TrunklineError):
                await self._peer.request("session/close", {"sessionId": self._native}, deadline=_CLOSE_DEADLINE)

    async def interrupt(self, *, cancel_queued: bool = False) -> None:
        if cancel_queued:
            for command, content, _ in self._waiting:
                self._translator.drop(command, content)
            self._waiting.clear()
        if self._renewing:
            return  # the turn that was to be interrupted has its end
        turn = self._translator.state.turn
        if turn is not None and not turn.interrupted:
            if self._insisting is not None:
                self._insisting.cancel()
            self._insisting = asyncio.create_task(self._insist(turn), name=f"interrupt of {self._process.pid}")
        await self._peer.notify("session/cancel", {"sessionId": self._native})
        # An agent may wait for these before it ends its turn.
        for ask in self._translator.open_asks():
            with contextlib.suppress(TrunklineError):
                await self._peer.answer(ask.key, replies.cancelled(ask))

    async def _insist(self, turn: Turn) -> None:
        """A turn that goes on though it was interrupted ends with its agent."""
        await asyncio.sleep(self._profile.interrupt_s)
        if self._translator.state.turn is not turn or self._peer.ended:
            return
        log.warning("interrupt_unheeded", extra={"pid": self._process.pid, "seconds": self._profile.interrupt_s})
        await self._replace()

    async def _replace(self) -> None:
        """Another process for this one; where that fails the session's agent has ended."""
        self._renewing = True
        renewal = self._renewal = Renewal(self._peer)
        try:
            await self._renew(renewal)
        except Exception as error:
            log.warning("session_not_renewed", extra={"pid": self._process.pid}, exc_info=True)
            if isinstance(error, TrunklineError):
                self._peer.tell([fact(ErrorRaised(code=error.code, message=error.message))], "renewal")
            await self.close(grace=0)
        finally:
            self._renewing = False
            renewal.settle(self._cut())
        self._go_on()

    async def _renew(self, renewal: Renewal) -> None:
        """Ends the process, and has the next one take the session up, with mode, model and thinking as they were.

        Raises TrunklineError where that fails. For an agent that can't take up a session there is none.
        """
        known = self._translator.state.known
        mode, model, thinking = known.mode, known.model, known.thinking
        renewal.old.release()
        await self._terminals.close()
        await self._process.close(0)
        await renewal.old.wait()
        renewal.cut.set_result(self._cut())
        if not capabilities(self._translator.state).resume:
            return
        self._connect(await self._start.launch(self._argv, environment=self._start.environment))
        renewal.peer.set_result(self._peer)
        await self._introduce()
        await self._begin(self._native, fork=False)
        if mode is not None and mode != known.mode:
            await self.set_mode(mode)
        if model is not None and model != known.model:
            await self.set_model(model)
        if thinking is not None and thinking != known.thinking:
            await self._set_option(THINKING, thinking)

    def _cut(self) -> Native:
        return Native(raw=b"", out=self._translator.cut(), kind="renewal", ours=True)

    async def decide(self, ask: str, decision: AskDecided) -> None:
        waiting = self._translator.open_ask(ask)
        if waiting is None or not self._peer.waits_for(waiting.key):
            raise TrunklineError("unknown_ask", f"the agent does not wait for {ask!r} any more")
        result = replies.result_of(waiting, decision)
        self._translator.decided(waiting, denied=decision.behaviour == "deny")
        await self._peer.answer(waiting.key, result)
        if decision.behaviour == "deny" and decision.interrupt:
            await self.interrupt()

    async def pending(self) -> set[str] | None:
        """A request that we have not answered is one that the agent waits for."""
        return {one.ask for one in self._translator.open_asks() if self._peer.waits_for(one.key)}

    async def set_model(self, model: str) -> None:
        if not self._translator.state.known.models:
            raise unsupported("model_switching", f"the agent has no choice of models, so {model!r} can't be set")
        if await self._set_option(MODEL, model):
            return
        await self._peer.request("session/set_model", {"sessionId": self._native, "modelId": model})

    async def set_mode(self, mode: str) -> None:
        known = self._translator.state.known
        if not known.modes:
            raise unsupported("mode_switching", f"the agent has no modes, so {mode!r} can't be set")
        if mode not in {one.id for one in known.modes}:
            raise TrunklineError(
                "bad_params", f"mode {mode!r} is unknown; there are: {', '.join(one.id for one in known.modes)}"
            )
        if await self._set_option(MODE, mode):
            return
        await self._peer.request("session/set_mode", {"sessionId": self._native, "modeId": mode})

    async def set_thinking(self, level: Thinking) -> None:
        option = option_of(self._translator.state.known, THINKING)
        if option is None:
            raise unsupported("thinking", f"the agent can't be set to think at level {level!r}")
        await self._set_option(THINKING, level_among(level, [choice.id for choice in choices_of(option)]))

    async def _set_option(self, category: str, value: str) -> bool:
        """Sets a config option; False where the agent has none of this category."""
        option = option_of(self._translator.state.known, category)
        if option is None:
            return False
        offered = [choice.id for choice in choices_of(option)]
        if offered and value not in offered:
            raise TrunklineError("bad_params", f"{category} {value!r} is unknown; there are: {', '.join(offered[:50])}")
        params = {"sessionId": self._native, "configId": text(option, "id"), "value": value}
        await self._peer.request("session/set_config_option", params)
        return True

    async def run_command(self, name: str, arguments: str, command_id: str) -> None:
        name = name.removeprefix("/")
        there = [command.id for command in self._translator.state.known.commands]
        if not there:
            raise unsupported("slash_commands", f"the agent has told no commands, so {name!r} can't be run")
        if name not in there:
            raise TrunklineError("bad_params", f"there is no command {name!r}; there are: {', '.join(there[:100])}")
        said = f"/{name} {arguments}".rstrip()
        await self._prompt(command_id, [TextBlock(text=said)], [{"type": "text", "text": said}])

    async def compact(self, instructions: str | None, command_id: str) -> None:
        if not capabilities(self._translator.state).compaction:
            raise unsupported("compaction", "the agent has no command to compact its context")
        await self.run_command(self._translator.state.profile.compact, instructions or "", command_id)

    async def native(self, method: str, params: dict[str, Json]) -> Json:
        """Any request of the protocol (`session/list`, `session/delete`, …), with its parameters as they are given."""
        return await self._peer.request(method, params, deadline=NATIVE_DEADLINE)

    def _understand(self, decoded: Decoded) -> Native:
        self._heard = asyncio.get_running_loop().time()
        kind = self._translator.kind_of(decoded.message)
        native = translate_message(self._translator, decoded, kind)
        self._go_on()
        return native

    def _go_on(self) -> None:
        if self._waiting and not (self._translator.busy or self._renewing or self._next is not None):
            self._next = asyncio.create_task(self._send_next(), name=f"next prompt of {self._process.pid}")

    async def _send_next(self) -> None:
        """A turn is over: the prompt that waited longest is the next one's."""
        command, content, native = self._waiting.popleft()
        try:
            await self._until_renewed()
            await self._post(command, content, native)
        except TrunklineError as error:
            log.info("prompt_undelivered", extra={"code": error.code, "command": command})
        finally:
            self._next = None
