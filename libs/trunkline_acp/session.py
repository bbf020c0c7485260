"""One session in front of one editor: its events told as updates, its asks as dialogs, the editor's prompts awaited.

The watch goes on over a restart of the gateway, from its cursor. Leaving ends nothing but the view: what runs, runs on.
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from trunkline_acp import asks, describe
from trunkline_acp.connection import Editor, RefusedError
from trunkline_acp.native import Able
from trunkline_acp.translate import Translator
from trunkline_acp.way import Way
from trunkline_agentkit.fields import Obj
from trunkline_client import Gap, Notice, Opened, Received, Snapshot, Start, whole
from trunkline_fold.answering import Asked, decode_ask
from trunkline_fold.awaiting import Awaited
from trunkline_fold.session import SessionState, decode_state
from trunkline_wire import Event, TrunklineError, decode_event, encode
from trunkline_wire.asks import (
    AskDecided,
    AskExpired,
    AskWithdrawn,
    PermissionRequested,
    PlanProposed,
    QuestionAsked,
)
from trunkline_wire.blocks import Block, TextBlock, text_of
from trunkline_wire.errors import ERRORS, ErrorInfo
from trunkline_wire.ids import new_command_id
from trunkline_wire.session import SessionClaimed, SessionClosed
from trunkline_wire.turn import MessageUser, TurnCompleted, TurnStarted
from trunkline_wire.work import CommandFailed, CommandRejected

log = logging.getLogger(__name__)

OUTCOME_S: Final = 40.0
TOO_LATE: Final = frozenset({"already_decided", "withdrawn", "expired", "unknown_ask"})
"""Codes of an answer that came behind another's."""

ABSENT: Final = frozenset({"not_running", "log_unavailable", "timeout"})
"""Codes of a gateway that is not there, or can't read the log."""

STOPPED: Final = {"stopReason": "cancelled"}


class _Prompt:
    """A prompt of the editor's on its way. `answer` is what `session/prompt` gets; a `slash` command may bring no turn."""

    def __init__(self, command: str, *, slash: bool) -> None:
        self.awaited = Awaited(command)
        self.slash = slash
        self.answer: asyncio.Future[Obj] = asyncio.get_running_loop().create_future()
        # Where the editor has called the prompt off nobody awaits it, and its error is no news.
        self.answer.add_done_callback(lambda done: done.cancelled() or done.exception())

    def settle(self, answer: Obj | TrunklineError) -> None:
        if self.answer.done():
            return
        if isinstance(answer, TrunklineError):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class Attached:
    """Use `open`, then `caught_up`; `close` at the end. `link` is this session's alone."""

    def __init__(self, editor: Editor, link: Way, session: str, able: Able, like: SessionState | None = None) -> None:
        self.session = session
        self._like = like
        self._editor = editor
        self._link = link
        self._links = contextlib.AsyncExitStack()
        self._able = able
        self._translator = Translator(session, able)
        self._prompts: dict[str, _Prompt] = {}
        self._asks: dict[str, Asked] = {}
        """What waits for a decision, whether its dialog is open or not."""
        self._dialogs: dict[str, asyncio.Task[None]] = {}
        self._stopping = False
        """The editor has cancelled the turn: the dialogs that it calls off answer nothing."""
        self._target = 0
        """The number of the last event that is past."""
        self._caught_up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._caught_up.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._watching: asyncio.Task[None] | None = None
        self._doing: set[asyncio.Task[Any]] = set()

    @property
    def state(self) -> SessionState:
        return self._translator.state

    async def open(self, start: Start, target: int = 0) -> None:
        """Connect and begin to tell: from the `start`, the events up to number `target` as its past; or what is so now (`snapshot`)."""
        await self._links.enter_async_context(self._link)
        self._target = target
        self._watching = asyncio.create_task(self._watch(start), name=f"events of {self.session}")

    @property
    def expected(self) -> SessionState:
        """The state, with what its agent has told in an earlier session (`like`) as long as it has not started."""
        return describe.expected(self.state, self._like)

    @property
    def prompting(self) -> bool:
        """Prompts of this editor are under way."""
        return bool(self._prompts)

    async def quiet(self) -> None:
        """Until none is."""
        await asyncio.gather(*(one.answer for one in self._prompts.values()), return_exceptions=True)

    async def caught_up(self) -> SessionState:
        """The state once all that is past has been told. Raises the gateway's TrunklineError."""
        await asyncio.shield(self._caught_up)
        return self.state

    async def close(self) -> None:
        """Let go of the session: it goes on."""
        tasks = [*self._doing, *([self._watching] if self._watching is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._fail(TrunklineError("session_closed", "the editor has let go of the session"))
        await self._links.aclose()

    # the editor

    async def prompt(self, content: list[Block]) -> Obj:
        """Sends a prompt, or runs the slash command that it is. Returns with the end of the turn that it brings about.

        Raises TrunklineError for what the gateway or the agent refuses, and for a turn that fails.
        """
        await self.caught_up()
        command, slash = new_command_id(), self._slash(content)
        waiting = self._prompts[command] = _Prompt(command, slash=slash is not None)
        self._translator.mine.add(command)
        self._stopping = False
        try:
            if self.state.closed is not None:
                await self.change("resume", {})
            await self._send(command, content, slash)
            return await waiting.answer
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            del self._prompts[command]

    async def _send(self, command: str, content: list[Block], slash: tuple[str, str] | None) -> None:
        if slash is None:
            raw = msgspec.to_builtins(content)
            await self._link.call("session.prompt", session=self.session, content=raw, id=command)
        else:
            args = {"name": slash[0], "arguments": slash[1]}
            await self._link.call("session.command", session=self.session, verb="run_command", args=args, id=command)

    def _slash(self, content: list[Block]) -> tuple[str, str] | None:
        """Name and arguments of the agent's command that a prompt is."""
        match content:
            case [TextBlock(text=str(said))] if said.startswith("/"):
                name, _, arguments = said[1:].strip().partition(" ")
                known = {one.id.removeprefix("/") for one in self.state.commands}
                able = self.state.capabilities is not None and self.state.capabilities.slash_commands
                return (name, arguments.strip()) if able and name in known else None
            case _:
                return None

    def cancel(self) -> None:
        """Interrupts the turn; what this editor has queued behind it is dropped too."""
        self._stopping = True
        self._do(self._cancel())

    async def _cancel(self) -> None:
        turn = self.state.turn
        mine = turn is not None and turn.cause in self._prompts
        queued = len(self._prompts) - (1 if mine else 0) > 0
        code = None
        try:
            done = await self._link.call(
                "session.interrupt",
                session=self.session,
                turn=None if queued or turn is None else turn.id,
                cancel_queued=queued or turn is None,
                wait=True,
                within=OUTCOME_S,
            )
            code = (done.get("error") or {}).get("code")
        except TrunklineError as error:
            code = error.code
        if code is not None:
            log.info("not_interrupted", extra={"session": self.session, "code": code})
        if code == "stale_target":
            # A prompt whose turn is still to come is interrupted once it has begun.
            for prompt in self._prompts.values():
                if prompt.slash:
                    prompt.settle(STOPPED)

    async def change(self, verb: str, args: dict[str, Any]) -> None:
        """Sets a mode, model or thinking. Raises TrunklineError where that fails."""
        done = await self._link.call(
            "session.command",
            session=self.session,
            verb=verb,
            args=args,
            id=new_command_id(),
            wait=True,
            within=OUTCOME_S,
        )
        if done.get("outcome") != "finished":
            raise _error(done.get("error") or {})

    # the session

    async def _watch(self, start: Start) -> None:
        while True:
            try:
                async for notice in self._link.watch(session=self.session, start=start):
                    await self._notice(notice, start)
            except TrunklineError as error:
                log.warning("watch_ended", extra={"session": self.session, "code": error.code})
                self._fail(error)
                if error.code not in ABSENT:
                    return
            except ConnectionError:
                return  # the editor is gone
            except Exception as error:
                log.exception("watch_failed", extra={"session": self.session})
                self._fail(TrunklineError("internal", f"the session can't be shown: {type(error).__name__}"))
                return
            # The gateway has been away for longer than the link waits: whenever it is back, the editor sees what is so then.
            start = "snapshot"
            await asyncio.sleep(1)

    async def _notice(self, notice: Notice, start: Start) -> None:
        match notice:
            case Opened() if start == "start" and self._target <= self.state.seq:
                await self._arrive()
            case Snapshot(payload=payload):
                await self._snapshot(payload)
            case Received(event=value):
                event = await whole(self._link, decode_event(encode(value)))
                for update in self._translator.feed(event, past=not self._caught_up.done()):
                    await self._editor.update(self.session, update)
                self._follow(event)
                if not self._caught_up.done() and self._target and self.state.seq >= self._target:
                    await self._arrive()
            case Gap(payload=payload):
                said = f"Some of what happened is missing here ({payload.get('reason', 'unknown')})."
                await self._tell(said)
            case _:
                pass

    async def _snapshot(self, payload: Obj) -> None:
        state = decode_state(encode(payload.get("state") or {"session": self.session}))
        for update in self._translator.begin(state, payload.get("blocks") or []):
            await self._editor.update(self.session, update)
        found = [decode_ask(value) for value in payload.get("asks") or []]
        still = {ask.ask: ask.requested for ask in found if ask.status == "open"}
        for ask in set(self._asks) - set(still):
            self._ask_ended(ask)
        for ask, asked in still.items():
            self._ask_opened(ask, asked)
        self._resettle(state)
        await self._arrive()

    async def _arrive(self) -> None:
        """All that is past has been told."""
        if self._caught_up.done():
            return
        for update in self._translator.summary():
            await self._editor.update(self.session, update)
        self._caught_up.set_result(None)
        for ask, asked in self._asks.items():
            self._show(ask, asked)

    def _follow(self, event: Event) -> None:
        self._settle(event)
        match event.data:
            case PermissionRequested(ask=ask) | QuestionAsked(ask=ask) | PlanProposed(ask=ask) as asked:
                self._ask_opened(ask, asked)
            case AskDecided(ask=ask) | AskExpired(ask=ask) | AskWithdrawn(ask=ask):
                self._ask_ended(ask)
            case TurnStarted() if self._stopping and event.cause in self._prompts:
                self.cancel()
            case SessionClaimed(incarnation=None):
                for ask in list(self._asks):
                    self._ask_ended(ask)
            case SessionClosed(reason=reason, last_error=said):
                closed = TrunklineError("session_closed", f"the session was closed: {reason}. {text_of(said)}".strip())
                for prompt in self._prompts.values():
                    prompt.settle(closed)
            case _:
                pass

    def _settle(self, event: Event) -> None:
        for prompt in list(self._prompts.values()):
            if prompt.awaited.feed(event) is not None:
                prompt.settle(_answer(event))

    def _resettle(self, state: SessionState) -> None:
        """Events are missing: a prompt whose turn ended among them has its answer by the state."""
        last = state.last_turn
        for command, prompt in self._prompts.items():
            if last is not None and last.cause == command:
                ended = TurnCompleted(outcome=last.outcome, error=last.error)
                prompt.settle(describe.stop(ended) or _error_of(ended.error, last.outcome))

    def _fail(self, error: TrunklineError) -> None:
        """Nothing more will come of what is under way."""
        for prompt in self._prompts.values():
            prompt.settle(error)
        if not self._caught_up.done():
            self._caught_up.set_exception(error)

    async def _tell(self, said: str) -> None:
        content = {"type": "text", "text": said}
        await self._editor.update(self.session, {"sessionUpdate": "agent_message_chunk", "content": content})

    # asks

    def _ask_opened(self, ask: str, asked: Asked) -> None:
        known = ask in self._asks
        self._asks[ask] = asked
        if self._caught_up.done() and not known:
            self._show(ask, asked)

    def _ask_ended(self, ask: str) -> None:
        """Decided, here or elsewhere, or withdrawn: the editor's dialog is called off."""
        self._asks.pop(ask, None)
        dialog = self._dialogs.pop(ask, None)
        if dialog is not None:
            dialog.cancel()

    def _show(self, ask: str, asked: Asked) -> None:
        self._dialogs[ask] = self._do(self._dialog(ask, asked))

    async def _dialog(self, ask: str, asked: Asked) -> None:
        try:
            answer = await self._ask(asked)
        except RefusedError as error:
            log.warning("dialog_refused", extra={"session": self.session, "ask": ask, "error": str(error)})
            return
        except ConnectionError:
            return
        # From here on it is no dialog that could be called off, and what the editor has said counts.
        self._dialogs.pop(ask, None)
        if answer is None or (self._stopping and answer == asks.CALLED_OFF):
            return  # the interrupted turn takes the ask with it
        await self._decide(ask, answer)

    async def _decide(self, ask: str, answer: asks.Answer) -> None:
        try:
            await self._link.call("ask.answer", ask=ask, session=self.session, id=new_command_id(), **answer)
        except TrunklineError as error:
            if error.code in TOO_LATE:
                log.info("answered_too_late", extra={"session": self.session, "ask": ask, "code": error.code})
                return
            log.warning("answer_refused", extra={"session": self.session, "ask": ask, "code": error.code})
            with contextlib.suppress(ConnectionError):
                await self._tell(f"Your answer was refused ({error.message}): the question is still open.")

    async def _ask(self, asked: Asked) -> asks.Answer | None:
        match asked:
            case QuestionAsked() if self._able.forms:
                request = asks.form(asked, self.session)
                return asks.form_answer(asked, await self._editor.request(request.method, request.params))
            case QuestionAsked() if asks.choosable(asked):
                return await self._choices(asked)
            case QuestionAsked():
                await self._tell(asks.unanswerable(asked))
                return None
            case PermissionRequested() | PlanProposed():
                request = asks.permission(asked, self.session, self.state.cwd)
                return asks.permission_answer(asked, await self._editor.request(request.method, request.params))

    async def _choices(self, asked: QuestionAsked) -> asks.Answer:
        answers: dict[str, Any] = {}
        for question in asked.questions:
            request = asks.choice(question, self.session, asked.tool or asked.ask)
            result = await self._editor.request(request.method, request.params)
            chosen = asks.choice_answer(question, result)
            if chosen is None:
                cancelled = (result.get("outcome") or {}).get("outcome") == "cancelled"
                return dict(asks.CALLED_OFF if cancelled else asks.DENIED)
            answers[question.id] = chosen
        return {"behaviour": "answered", "answers": answers}

    def _do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)
        return task


def _answer(event: Event) -> Obj | TrunklineError:
    """What a prompt gets that ended with this event."""
    match event.data:
        case TurnCompleted() as ended:
            return describe.stop(ended) or _error_of(ended.error, ended.outcome)
        case CommandRejected(error=error) | CommandFailed(error=error):
            return _error_of(error, error.message)
        case MessageUser():
            return STOPPED
        case _:
            return {"stopReason": "end_turn"}


def _error_of(error: ErrorInfo | None, otherwise: str) -> TrunklineError:
    if error is None:
        return TrunklineError("agent_failed", f"the turn has failed: {otherwise}")
    code = error.code if error.code in ERRORS else "agent_failed"
    return TrunklineError(code, error.message, **error.details)


def _error(error: Obj) -> TrunklineError:
    code = str(error.get("code"))
    said = str(error.get("message") or "it was refused")
    return TrunklineError(code if code in ERRORS else "agent_failed", said)
