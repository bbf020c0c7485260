"""A running agent: prompts and decisions in, translated messages out.

The protocol has one turn at a time, so prompts that come while one runs wait here. What ends a turn is the agent's answer
to its prompt, which nobody awaits: however late it comes, the turn ends with it.
"""

import asyncio
import contextlib
import datetime as dt
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Final

from trunkline_adapters.acp import replies
from trunkline_adapters.acp.content import native_content
from trunkline_adapters.acp.files import Files
from trunkline_adapters.acp.launch import initialize, login, session_params, until_loadable
from trunkline_adapters.acp.native import ASKED, CANCEL_REQUEST, CODES, VERSION
from trunkline_adapters.acp.profiles import Profile
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

log = logging.getLogger(__name__)

NATIVE_DEADLINE: Final = 60.0
_CLOSE_DEADLINE: Final = 2.0
_QUIET: Final = 0.4
_QUIET_AT_LAST: Final = 10.0
"""Seconds of silence after which a session's history is told, and how long it is waited for."""
_LEVELS: Final[Mapping[Thinking, tuple[str, ...]]] = {
    "off": ("off", "none", "minimal"),
    "low": ("low", "minimal"),
    "medium": ("medium", "default"),
    "high": ("high",),
    "max": ("max", "xhigh", "ultra", "high"),
}
"""What agents call the levels of thinking, the best name first."""


class AcpSession(ConfigurableBase):
    """Made by `AcpAdapter`; `open` before use."""

    def __init__(self, process: AgentProcess, translator: AcpTranslator, profile: Profile, start: Start) -> None:
        self._process = process
        self._translator = translator
        self._profile = profile
        self._start = start
        self._agent: Obj = {}
        self._waiting: deque[tuple[str, list[Block], list[Obj]]] = deque()
        """Prompts behind the running turn: command, content, and the content as the agent takes it."""
        self._next: asyncio.Task[None] | None = None
        self._heard = 0.0
        """When the agent's last message came."""
        self._terminals = Terminals(start.cwd, start.environment, translator.terminal)
        self._peer = Peer(
            process,
            self._understand,
            sent=translator.sent,
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
        try:
            self._agent = as_obj(
                await self._peer.request("initialize", initialize(self._profile), deadline=self._profile.start_s)
            )
            spoken = whole(self._agent, "protocolVersion")
            if spoken != VERSION:
                raise TrunklineError(
                    "agent_failed", f"{self._profile.title} speaks version {spoken} of ACP, not {VERSION}"
                )
            if (method := self._start.options.native.get("authenticate")) is not None:
                await self._peer.request("authenticate", {"methodId": method}, deadline=self._profile.start_s)
            await self._begin()
            await self._configure()
        except TrunklineError as error:
            raise self._failed(await self.close(grace=0), error) from error
        except BaseException:
            await self.close(grace=0)
            raise

    async def _begin(self) -> None:
        start, deadline = self._start, self._profile.start_s
        params = session_params(start, self._agent)
        native = start.native_session or start.options.resume_native
        if native is None:
            await self._peer.request("session/new", params, deadline=deadline)
            return
        has = obj(self._agent, "agentCapabilities")
        able = obj(has, "sessionCapabilities")
        params["sessionId"] = native
        if start.fork:
            if "fork" not in able:
                raise unsupported("fork", f"{self._profile.title} can't copy a session")
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

    async def _until_quiet(self) -> None:
        """Some agents go on telling the history after their answer: what comes behind our first prompt would be its turn's."""
        clock = asyncio.get_running_loop().time
        latest = clock() + _QUIET_AT_LAST
        while (rest := min(self._heard + _QUIET, latest) - clock()) > 0 and not self._peer.ended:  # noqa: ASYNC110  # silence is what it waits for
            await asyncio.sleep(rest)

    async def _configure(self) -> None:
        """Mode, model and thinking as they are wanted. A mode of the profile's is only set where the agent has it."""
        options, known = self._start.options, self._translator.state.known
        if options.mode is not None:
            await self.set_mode(options.mode)
        elif self._profile.mode in {mode.id for mode in known.modes} - {known.mode, None}:
            await self.set_mode(self._profile.mode or "")
        if options.model is not None:
            await self.set_model(options.model)
        if options.thinking is not None:
            await self.set_thinking(options.thinking)

    def _failed(self, end: Exit, error: TrunklineError) -> TrunklineError:
        said = end.stderr_tail.strip()
        if error.code == "agent_auth":
            return login(self._profile, self._agent)
        if error.code != "agent_failed" or "native_code" in error.details or self._agent:
            return error
        reason = said.splitlines()[-1] if said else f"it printed nothing, exit code {end.code}"
        return TrunklineError(
            "agent_failed",
            f"{self._profile.title} ended at its start: {reason}",
            exit_code=end.code,
            signal=end.signal,
            stderr=said[-2000:],
        )

    async def send(self, prompt: UserPrompt) -> None:
        supported = obj(obj(self._agent, "agentCapabilities"), "promptCapabilities")
        await self._prompt(prompt.command, prompt.content, native_content(prompt.content, supported))

    async def _prompt(self, command: str, content: list[Block], native: list[Obj]) -> None:
        if self._peer.ended or not self._process.running:
            raise TrunklineError("agent_failed", "the agent has ended: send a prompt to start it again")
        if self._translator.busy or self._waiting:
            self._waiting.append((command, content, native))
        else:
            await self._post(command, content, native)

    async def _post(self, command: str, content: list[Block], native: list[Obj]) -> None:
        self._translator.prompt(command, content)
        try:
            await self._peer.post("session/prompt", {"sessionId": self._native, "prompt": native})
        except TrunklineError as error:
            if error.code != "timeout":  # then the agent may still take it
                self._peer.tell(self._translator.undelivered(command, ErrorInfo.of(error)), "session/prompt")
            raise

    def messages(self) -> AsyncIterator[Native]:
        return self._peer.messages()

    async def close(self, grace: float = 5.0) -> Exit:
        self._peer.release()
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
        await self._peer.notify("session/cancel", {"sessionId": self._native})
        # An agent may wait for these before it ends its turn.
        for ask in self._translator.open_asks():
            with contextlib.suppress(TrunklineError):
                await self._peer.answer(ask.key, replies.cancelled(ask))

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
        offered = [choice.id for choice in choices_of(option)]
        wanted = next((name for name in _LEVELS[level] if name in offered), None)
        if wanted is None:
            raise TrunklineError("bad_params", f"the agent has no level {level!r}; there are: {', '.join(offered)}")
        await self._set_option(THINKING, wanted)

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
        if self._waiting and not self._translator.busy and self._next is None:
            self._next = asyncio.create_task(self._send_next(), name=f"next prompt of {self._process.pid}")
        return native

    async def _send_next(self) -> None:
        """A turn is over: the prompt that waited longest is the next one's."""
        command, content, native = self._waiting.popleft()
        try:
            await self._post(command, content, native)
        except TrunklineError as error:
            log.info("prompt_undelivered", extra={"code": error.code, "command": command})
        finally:
            self._next = None
