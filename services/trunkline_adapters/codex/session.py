"""A running thread of a Codex server: prompts and decisions in, translated messages out."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

from trunkline_adapters.codex import launch, modes, replies
from trunkline_adapters.codex.content import native_content
from trunkline_adapters.codex.errors import SIGN_IN, ended, refusal
from trunkline_adapters.codex.history import turn_of
from trunkline_adapters.codex.link import Link
from trunkline_adapters.codex.native import ASKING
from trunkline_adapters.codex.state import Ask
from trunkline_adapters.codex.translate import CodexTranslator
from trunkline_adapters.codex.translate_asks import answer_of
from trunkline_agentkit import (
    ConfigurableBase,
    Decoded,
    Exit,
    LineTransport,
    Native,
    Peer,
    Start,
    Survivor,
    UserPrompt,
    translate,
    unsupported,
)
from trunkline_agentkit.fields import Obj, as_obj, obj, text
from trunkline_agentkit.jsonrpc import id_key
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided
from trunkline_wire.blocks import Json
from trunkline_wire.session import Thinking

log = logging.getLogger(__name__)

START_DEADLINE: Final = 60.0
DEADLINE: Final = 30.0
TOLD_WITHIN: Final = 5.0
"""Seconds that Codex may take to tell a setting that it has changed."""
_LAST_WORD: Final = 3.0
"""Seconds that a server of its own may take to end the turn of a session that is closed."""
_ASKED_AGAIN_WITHIN: Final = 5.0
"""Seconds in which a thread that waits for an answer has to ask again over a new connection."""
_SEARCHED: Final = 20
"""Turns among which the one has to be that was running when a worker died."""
_PAGES: Final = 5
_WITHOUT_THREAD: Final = frozenset({"thread/list", "thread/loaded/list", "thread/search", "thread/start"})
_IMPLEMENT: Final = "Implement the plan."


class CodexSession(ConfigurableBase):
    """Made by `CodexAdapter`; `open` before use."""

    def __init__(self, start: Start, link: Link, translator: CodexTranslator, version: str) -> None:
        self._start = start
        self._link = link
        self._translator = translator
        self._version = version
        self._peer: Peer | None = None
        self._closing = False
        self._plain_mode: str | None = None
        """The mode to go back to when a plan is approved."""
        self._changing = asyncio.Lock()
        self._told = asyncio.Event()
        """Codex has told settings of the thread."""
        self._asked = asyncio.Event()
        """Codex has asked for something."""

    async def open(self) -> None:
        """Introduces us to the server and gives the session its thread. On failure the connection is ended.

        Raises TrunklineError `agent_auth` (Codex is not signed in), `history_lost`, `agent_failed`, `timeout`, `bad_params`.
        """
        try:
            await self._greet(await self._link.connect())
            await self._learn()
            if self._start.survivor is not None:
                await self._adopt(self._start.survivor)
            else:
                method, params = launch.thread(self._start, await self._fork_point())
                await self._request(method, params, deadline=START_DEADLINE)
                self._plain_mode = self._translator.known.mode
                await self._settle_options()
        except TrunklineError as error:
            raise ended(await self.close(grace=0), error) from error
        except BaseException:
            await self.close(grace=0)
            raise

    async def _adopt(self, survivor: Survivor) -> None:
        """Takes up a thread that ran on when the worker died that had it."""
        self._translator.restore(survivor)
        await self._request("thread/turns/list", self._last_turns(self._thread, _SEARCHED, "summary"))
        if not self._translator.reach:
            raise TrunklineError("history_lost", "Codex does not know the turn that was running")
        await self._take_up()
        self._plain_mode = next(
            (mode for mode in (survivor.session.mode, self._start.options.mode) if mode != modes.PLAN), None
        )

    async def _take_up(self) -> None:
        """Takes the thread up over a new connection: what waits for an answer comes again, what was missed is asked for."""
        sub_agents = self._translator.sub_agents
        for thread in (self._thread, *sub_agents):
            await self._request("thread/resume", {"threadId": thread, "excludeTurns": True})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ASKED_AGAIN_WITHIN):
                while self._translator.awaiting:
                    self._asked.clear()
                    await self._asked.wait()
        for thread in sub_agents:
            await self._request("thread/turns/list", self._last_turns(thread, 1, "full"))
        await self._request("thread/turns/list", self._last_turns(self._thread, self._translator.reach, "full"))

    @staticmethod
    def _last_turns(thread: str, limit: int, view: str) -> Obj:
        return {"threadId": thread, "limit": limit, "itemsView": view, "sortDirection": "desc"}

    async def _greet(self, transport: LineTransport) -> None:
        self._peer = Peer(
            transport,
            self._understand,
            sent=self._translator.sent,
            asked=ASKING,
            versioned=False,
            codes={-32600: "bad_params"},
        )
        await self._request("initialize", launch.initialize(self._version), deadline=START_DEADLINE)
        await self._peer.notify("initialized")

    async def _learn(self) -> None:
        """What the session can choose from, and whether Codex may talk to its model at all."""
        account = await self._request("account/read", {})
        if account.get("requiresOpenaiAuth") is True and account.get("account") is None:
            raise TrunklineError("agent_auth", f"Codex is not signed in: {SIGN_IN}")
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await self._request("model/list", {} if cursor is None else {"cursor": cursor})
            cursor = text(page, "nextCursor")
            if cursor is None:
                break
        await self._request("skills/list", {"cwds": [self._start.cwd]})

    async def _fork_point(self) -> str | None:
        start = self._start
        if start.fork_at is None or start.native_session is None:
            return None
        return await turn_of(self._request, start.native_session, start.fork_at)

    async def _settle_options(self) -> None:
        """Options that only a thread's settings can have."""
        options = self._start.options
        if options.mode == modes.PLAN:
            await self.set_mode(modes.PLAN)
        if options.thinking is not None:
            await self.set_thinking(options.thinking)
        if self._start.title and self._translator.known.title != self._start.title:
            await self.rename(self._start.title)

    async def send(self, prompt: UserPrompt) -> None:
        content = native_content(prompt.content)
        turn = self._translator.turn
        if prompt.delivery == "steered" and turn is not None:
            params = {
                "threadId": self._thread,
                "expectedTurnId": turn.id,
                "input": content,
                "clientUserMessageId": prompt.command,
            }
            try:
                await self._request("turn/steer", params)
            except TrunklineError as error:
                # The turn has ended meanwhile: what was said to it begins the next one.
                if error.code != "stale_target":
                    raise
            else:
                return
        await self._turn(content, prompt.command)

    async def _turn(self, content: list[Obj], command: str | None = None) -> None:
        params: dict[str, Any] = {"threadId": self._thread, "input": content}
        if command is not None:
            params["clientUserMessageId"] = command
        if self._start.options.output_schema is not None:
            params["outputSchema"] = self._start.options.output_schema
        await self._request("turn/start", params)

    async def messages(self) -> AsyncIterator[Native]:
        while (peer := self._peer) is not None:
            async for native in peer.messages():
                yield native
                await self._answer_again(peer)
            if self._closing or not await self._reconnect():
                return

    async def _reconnect(self) -> bool:
        """Takes the thread up again over a new connection; what was missed is asked for."""
        self._translator.lose()
        transport = await self._link.again()
        if transport is None:
            return False
        try:
            await self._greet(transport)
            await self._take_up()
        except TrunklineError as error:
            log.warning("thread_not_taken_up", extra={"code": error.code})
            return False
        return True

    async def _answer_again(self, peer: Peer) -> None:
        """Answers what was answered before, over a connection that was lost."""
        for ask in self._translator.repeats():
            try:
                await peer.answer(id_key(ask.request_id), answer_of(ask)["result"])
            except TrunklineError as error:
                log.info("answer_undelivered", extra={"code": error.code})

    async def close(self, grace: float = 5.0) -> Exit:
        return await self._end(grace, leave_running=False)

    async def abandon(self) -> Exit:
        """Ends the connection alone: on a server that runs by itself the turn goes on, for whoever takes it up."""
        return await self._end(0, leave_running=True)

    async def _end(self, grace: float, *, leave_running: bool) -> Exit:
        self._closing = True
        peer = self._peer
        if peer is not None:
            peer.release()
            if not leave_running:
                await self._leave()
        end = await self._link.close(grace)
        if peer is not None:
            await peer.wait()
        return end

    async def _leave(self) -> None:
        """Nothing is to run on for a session that is closed: a shared server would not end the turn by itself."""
        if self._translator.turn is None or self._peer is None or self._peer.ended or not self._link.outlives:
            return
        try:
            async with asyncio.timeout(_LAST_WORD):
                await self.interrupt()
        except (TrunklineError, TimeoutError) as error:
            log.info("turn_left_running", extra={"error": str(error)})

    async def interrupt(self, *, cancel_queued: bool = False) -> None:
        del cancel_queued  # prompts wait in Trunkline, not in Codex
        turn = self._translator.active_turn()
        if turn is None:
            raise TrunklineError("stale_target", "no turn runs that could be interrupted")
        self._translator.interrupting()
        await self._request("turn/interrupt", {"threadId": self._thread, "turnId": turn})

    async def decide(self, ask: str, decision: AskDecided) -> None:
        waiting = self._translator.open_ask(ask)
        if waiting is None:
            raise TrunklineError("unknown_ask", f"the agent does not wait for {ask!r} any more")
        if waiting.kind == "plan":
            await self._decide_plan(waiting, decision)
            return
        await self._connected.answer(id_key(waiting.request_id), replies.result(waiting, decision))
        if decision.interrupt and waiting.kind not in {"command", "file"}:
            await self.interrupt()

    async def _decide_plan(self, ask: Ask, decision: AskDecided) -> None:
        """Codex waits for no answer to a plan: an approved one is its next prompt, in the mode from before."""
        self._translator.settle_plan(ask)
        if decision.behaviour == "deny":
            if decision.message:
                await self._turn([{"type": "text", "text": decision.message, "text_elements": []}])
            return
        await self.set_mode(self._plain_mode or "auto")
        await self._turn([{"type": "text", "text": _IMPLEMENT, "text_elements": []}])

    async def pending(self) -> set[str] | None:
        return self._translator.open_asks()

    async def set_model(self, model: str) -> None:
        async with self._changing:
            changed: dict[str, Any] = {"model": model}
            if self._translator.known.mode == modes.PLAN:
                changed |= self._settings(modes.PLAN, model)
            await self._update(changed, model=model)

    async def set_mode(self, mode: str) -> None:
        async with self._changing:
            workspace = await self._workspace() if modes.needs_workspace(mode) else None
            changed = self._settings(mode, self._translator.known.model, workspace)
            await self._update(changed, mode=modes.name_of(mode))
            if mode != modes.PLAN:
                self._plain_mode = mode

    async def set_thinking(self, level: Thinking) -> None:
        async with self._changing:
            effort = launch.effort(level, list(self._translator.efforts()))
            await self._update({"effort": effort}, thinking=effort)

    def _settings(self, mode: str, model: str | None, workspace: Obj | None = None) -> dict[str, Any]:
        known = self._translator.known
        return modes.settings(mode, current=known.mode, model=model, effort=known.thinking, workspace=workspace)

    async def _workspace(self) -> Obj:
        """What the sandbox `workspace-write` allows besides the directory: as the thread had it, or as it is configured."""
        if (known := self._translator.known.workspace) is not None:
            return known
        read: Obj = {}
        with contextlib.suppress(TrunklineError):  # what can't be known is as Codex has it by itself
            read = await self._request("config/read", {"cwd": self._start.cwd})
        return modes.configured_workspace(obj(read, "config"), as_obj(self._start.options.native.get("config")))

    async def _update(self, changed: dict[str, Any], **wanted: str) -> None:
        """Changes settings and waits until Codex tells them, which it does after its answer: the next change builds on them."""
        await self._request("thread/settings/update", {"threadId": self._thread} | changed)
        known = self._translator.known
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TOLD_WITHIN):
                while any(getattr(known, name) != value for name, value in wanted.items()):
                    self._told.clear()
                    await self._told.wait()

    async def run_command(self, name: str, arguments: str, command_id: str) -> None:
        name = name.removeprefix("/")
        skills = self._translator.skills
        if name == "review":
            self._translator.name(command_id)
            await self._request("review/start", {"threadId": self._thread, "target": launch.review_target(arguments)})
        elif name == "compact":
            await self.compact(arguments or None, command_id)
        elif name in skills:
            skill: Obj = {"type": "skill", "name": name, "path": skills[name]}
            said: Obj = {"type": "text", "text": f"${name} {arguments}".rstrip(), "text_elements": []}
            await self._turn([skill, said], command_id)
        else:
            there = ", ".join(["review", "compact", *sorted(skills)])
            raise TrunklineError("bad_params", f"Codex has no command {name!r}; there are: {there}")

    async def compact(self, instructions: str | None, command_id: str) -> None:
        if instructions:
            raise unsupported("compaction", "Codex compacts without instructions: leave them out")
        self._translator.name(command_id)
        await self._request("thread/compact/start", {"threadId": self._thread})

    async def rename(self, title: str) -> None:
        await self._request("thread/name/set", {"threadId": self._thread, "name": title})

    async def native(self, method: str, params: dict[str, Json]) -> Json:
        """Any request of the app-server. Those of a thread are of this session's, unless the params name another.

        `thread/revert` also takes `before`, the id of a prompt's command, in place of `beforeTurnId`.
        """
        wanted = dict(params)
        if method.startswith(("thread/", "turn/", "review/")) and method not in _WITHOUT_THREAD:
            wanted.setdefault("threadId", self._thread)
        if method == "thread/revert" and isinstance(prompt := wanted.pop("before", None), str):
            wanted["beforeTurnId"] = await turn_of(self._request, self._thread, prompt)
        return await self._request(method, wanted)

    @property
    def _thread(self) -> str:
        return self._translator.thread or ""

    @property
    def _connected(self) -> Peer:
        if self._peer is None:
            raise TrunklineError(
                "agent_failed", "the session has no connection to Codex: send a prompt to start it again"
            )
        return self._peer

    async def _request(self, method: str, params: Any, *, deadline: float | None = None) -> Obj:
        try:
            limit = DEADLINE if deadline is None else deadline
            return as_obj(await self._connected.request(method, params, deadline=limit))
        except TrunklineError as error:
            raise refusal(method, error) from error

    def _understand(self, decoded: Decoded) -> Native:
        message = decoded.message
        kind = self._translator.kind(message) if message is not None else "?"
        native = translate(self._translator, decoded, kind)
        if kind == "thread/settings/updated":
            self._told.set()
        if kind in ASKING:
            self._asked.set()
        if kind == "serverRequest/resolved" and message is not None and self._peer is not None:
            self._peer.forget(id_key(obj(message, "params").get("requestId")))
        return native
