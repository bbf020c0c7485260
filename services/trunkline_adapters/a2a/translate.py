"""The translator: native messages in, events out. A pure state machine over one session's tasks.

A turn begins with the agent's first word behind a prompt, and ends with a final status; while it asks, the final status only
ends the stream, and the turn goes on with the decision.
"""

from dataclasses import dataclass, field

from trunkline_adapters.a2a.native import (
    CODES,
    OPTIONS,
    OUTCOMES,
    OVER,
    RUNNING,
    TOOL_KINDS,
    coder_kind,
    is_card,
    joined,
    kind_of,
    parts_of,
)
from trunkline_agentkit.fields import Obj, obj, objects, text, truth, whole
from trunkline_agentkit.prompts import json_block
from trunkline_agentkit.protocol import Context, Fact, ItemEnd, Out, Piece
from trunkline_wire import Data
from trunkline_wire.asks import AskWithdrawn, PermissionRequested
from trunkline_wire.blocks import Block, DiffBlock, Location, TextBlock, ThinkingBlock
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.ids import ask_id, item_id
from trunkline_wire.session import Capabilities, SessionInitialized, SessionUpdated
from trunkline_wire.turn import (
    MessageAssistant,
    MessageSystem,
    Outcome,
    ToolCompleted,
    ToolStarted,
    ToolStatus,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import NativeMessage

_ENDS: dict[str, ToolStatus] = {"cancelled": "cancelled", "error": "failed", "success": "completed"}


@dataclass
class Tool:
    """A tool call without an end. `ask` is the one that waits for a decision on it, `held` until that is on its way."""

    item: str
    ask: str | None = None
    held: bool = False
    asked: int = 0
    refused: bool = False


@dataclass
class State:
    card: Obj = field(default_factory=dict[str, object])
    initialized: bool = False
    task: str | None = None
    context: str | None = None
    model: str | None = None
    prompt: str | None = None
    """The command of the prompt that was sent and that no turn has begun for."""
    waiting: bool = False
    turns: int = 0
    turn: bool = False
    interrupted: bool = False
    failure: str | None = None
    """What the agent has told of a failure in the running turn."""
    segment: tuple[str, list[str]] | None = None
    """Item of the text that is being written, and its pieces."""
    messages: int = 0
    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    finished: set[str] = field(default_factory=set[str])


class A2aTranslator:
    def __init__(self, context: Context, capabilities: Capabilities) -> None:
        self._context = context
        self._capabilities = capabilities
        self._state = State()

    @property
    def task(self) -> str | None:
        """The task that takes the next message; None where a new one begins."""
        return self._state.task

    @property
    def context(self) -> str | None:
        return self._state.context

    @property
    def busy(self) -> bool:
        """Whether a turn runs, or is about to."""
        return self._state.turn or self._state.waiting

    @property
    def asking(self) -> bool:
        """Whether the agent waits for a decision that is not on its way yet."""
        return any(tool.held for tool in self._state.tools.values())

    def prompt(self, command: str) -> None:
        """The next message is the one that this command has brought."""
        self._state.prompt, self._state.waiting = command, True

    def call_of(self, ask: str) -> str | None:
        """The tool call that an open ask is about."""
        return next((call for call, tool in self._state.tools.items() if tool.ask == ask), None)

    def open_asks(self) -> set[str]:
        return {tool.ask for tool in self._state.tools.values() if tool.ask is not None}

    def decided(self, call: str, *, denied: bool) -> None:
        tool = self._state.tools[call]
        tool.ask, tool.refused = None, denied

    def delivering(self, call: str) -> None:
        """The decision on this call goes out now: what ends from here on is the turn."""
        if (tool := self._state.tools.get(call)) is not None:
            tool.held = False

    def interrupting(self) -> None:
        self._state.interrupted = True

    def feed(self, message: Obj) -> list[Out]:
        if is_card(message):
            self._state.card = message
            return []
        if "error" in message:
            return self._failed(obj(message, "error"))
        result = obj(message, "result")
        match text(result, "kind"):
            case "task":
                return self._task(result)
            case "status-update":
                return self._status(result)
            case "artifact-update":
                return self._artifact(obj(result, "artifact"))
            case "message":
                return [*self._begin(), *self._whole(result), *self._end("success", None)]
            case _:
                return [_fact(NativeMessage(known=False, kind=kind_of(message), reason="unknown_type"))]

    def sent(self, message: Obj) -> list[Out]:
        """A request of ours: in a recording it is all that tells of a prompt."""
        params = obj(obj(message, "params"), "message")
        if joined(parts_of(params)) and not self.busy:
            self._state.waiting = True
        for part in parts_of(params):
            call = text(obj(part, "data"), "callId")
            if call in self._state.tools:
                self.decided(call, denied=text(obj(part, "data"), "outcome") == "cancel")
                self.delivering(call)
        return []

    def broken(self, reason: str) -> list[Out]:
        """The stream has ended without an end of the turn."""
        return [*self._begin(), *self._end("error", ErrorInfo(code="agent_failed", message=reason))]

    def _task(self, result: Obj) -> list[Out]:
        state, status = self._state, obj(result, "status")
        ended = text(status, "state") or "unknown"
        if not self.busy:
            # Of a task that is taken up, or that we have asked about.
            out = [] if state.initialized else self._known(text(result, "id"), text(result, "contextId"), None)
            state.task = None if ended in OVER else state.task
            return out
        out = [*self._known(text(result, "id"), text(result, "contextId"), None), *self._begin()]
        if ended in RUNNING:
            return out
        if not state.interrupted:
            # An answer that comes whole: what was said stands in the task.
            if said := _spoken(result):
                out += self._told([TextBlock(text=said)])
            for artifact in objects(result, "artifacts"):
                out += self._whole(artifact)
            if ended in OUTCOMES:
                out += self._whole(obj(status, "message"))
        return [*out, *self._final(ended, "" if ended in OUTCOMES else joined(parts_of(obj(status, "message"))))]

    def _known(self, task: str | None, context: str | None, model: str | None) -> list[Out]:
        """What the agent says of the session, as far as it is new."""
        state = self._state
        changed = task not in (None, state.task)
        state.context = context or state.context
        state.task = task or state.task
        new_model = model not in (None, state.model)
        state.model = model or state.model
        if not state.initialized and state.task is not None:
            state.initialized = True
            version = text(state.card, "version")
            return [
                _fact(
                    SessionInitialized(
                        capabilities=self._capabilities,
                        native_session=state.task,
                        model=state.model,
                        version=version,
                    )
                )
            ]
        if changed or new_model:
            return [_fact(SessionUpdated(native_session=task if changed else None, model=model if new_model else None))]
        return []

    def _begin(self) -> list[Out]:
        state = self._state
        if not state.waiting:
            return []
        state.waiting, state.turn, state.interrupted, state.failure = False, True, False, None
        state.turns += 1
        command, state.prompt = state.prompt, None
        return [_fact(TurnStarted(number=state.turns), cause=command)]

    def _status(self, result: Obj) -> list[Out]:
        status = obj(result, "status")
        about, message = coder_kind(result), obj(status, "message")
        if not self.busy:
            return []
        out = self._known(text(result, "taskId"), text(result, "contextId"), text(obj(result, "metadata"), "model"))
        out += self._begin()
        final = truth(result, "final")
        if about == "state-change" or final:
            # Its text is a word on the state, and none of the model's, but where an agent says nothing of the kind.
            said = joined(parts_of(message))
            if (failure := text(obj(result, "metadata"), "error")) is not None:
                self._state.failure, said = said or failure, ""
            if final and about is None and text(status, "state") in OUTCOMES:
                out, said = [*out, *self._whole(message)], ""
            return [*out, *self._final(text(status, "state"), said)] if final else out
        for part in parts_of(message):
            out += self._part(part, message, streamed=about is not None, thought=about == "thought")
        return out

    def _part(self, part: Obj, message: Obj, *, streamed: bool, thought: bool) -> list[Out]:
        data = obj(part, "data")
        if text(obj(data, "request"), "callId") is not None:
            return [*self._close(), *self._tool(data)]
        if thought:
            said = "\n".join(one for one in (text(data, "subject"), text(data, "description")) if one)
            return [*self._close(), *self._told([ThinkingBlock(text=said)])] if said else []
        said = text(part, "text")
        if said is None:
            return [*self._close(), *self._told([json_block(part)])]
        if not streamed:
            return [*self._close(), *self._told([TextBlock(text=said)], text(message, "messageId"))]
        if self._state.segment is None:
            self._state.segment = (self._next_item(), [])
        item, pieces = self._state.segment
        pieces.append(said)
        return [Piece(item=item, block=0, kind="text", text=said)]

    def _artifact(self, artifact: Obj) -> list[Out]:
        """Output of a tool, or what the agent has made."""
        if not self.busy:
            return []
        name, said = text(artifact, "artifactId") or "", joined(parts_of(artifact))
        call = name.removeprefix("tool-").removesuffix("-output")
        tool = self._state.tools.get(call)
        if tool is not None:
            return [Piece(item=tool.item, block=0, kind="tool_output", text=said)]
        return [*self._begin(), *self._whole(artifact)]

    def _whole(self, message: Obj) -> list[Out]:
        """A message or an artifact that came at once."""
        blocks: list[Block] = []
        for part in parts_of(message):
            said = text(part, "text")
            blocks.append(json_block(part) if said is None else TextBlock(text=said))
        name = text(message, "messageId") or text(message, "artifactId")
        return [*self._close(), *self._told(blocks, name)] if blocks else []

    def _told(self, blocks: list[Block], name: str | None = None) -> list[Out]:
        item = self._item(name) if name is not None else self._next_item()
        return [_fact(MessageAssistant(content=blocks, block=0), item=item)]

    def _close(self, *, aborted: bool = False) -> list[Out]:
        """Something else follows the text that was being written."""
        segment, self._state.segment = self._state.segment, None
        if segment is None:
            return []
        item, pieces = segment
        data = MessageAssistant(content=[TextBlock(text="".join(pieces))], block=0, aborted=aborted)
        return [_fact(data, item=item), ItemEnd(item)]

    def _tool(self, data: Obj) -> list[Out]:
        state, request = self._state, obj(data, "request")
        call = text(request, "callId") or ""
        if call in state.finished:
            return []
        out: list[Out] = []
        tool = state.tools.get(call)
        if tool is None:
            tool = state.tools[call] = Tool(item=self._item(call))
            out.append(self._started(call, request, tool))
        status = text(data, "status") or ""
        if status == "awaiting_approval":
            return [*out, *self._asked(call, request, obj(data, "confirmationDetails"), tool)]
        tool.held = False
        if tool.ask is not None:
            out.append(_fact(AskWithdrawn(ask=tool.ask, why="answered_elsewhere")))
            tool.ask = None
        if status in _ENDS:
            out.append(self._completed(call, tool, status, obj(data, "response")))
        return out or [Piece(item=tool.item, block=0, kind="tool_output", text="")]

    def _started(self, call: str, request: Obj, tool: Tool) -> Out:
        name, given = text(request, "name") or "unknown", obj(request, "args")
        path = text(given, "file_path") or text(given, "absolute_path") or text(given, "path")
        what = text(given, "command") or path or text(given, "pattern") or text(given, "query")
        data = ToolStarted(
            name=name,
            kind=TOOL_KINDS.get(name, "other"),
            title=f"{name} {what.splitlines()[0][:200]}" if what and what.strip() else name,
            input=request.get("args"),
            locations=[Location(path=path)] if path else [],
            native_id=call,
        )
        return _fact(data, item=tool.item)

    def _asked(self, call: str, request: Obj, details: Obj, tool: Tool) -> list[Out]:
        if tool.ask is not None:
            return []
        tool.asked += 1
        tool.held = True
        tool.ask = ask_id(self._context.session, self._context.incarnation, f"{call}#{tool.asked}")
        name = text(request, "name") or "unknown"
        data = PermissionRequested(
            ask=tool.ask,
            name=name,
            incarnation=self._context.incarnation,
            kind=TOOL_KINDS.get(name, "other"),
            title=text(details, "title"),
            input=request.get("args"),
            options=list(OPTIONS),
            description=text(details, "command") or text(details, "fileDiff"),
            tool=tool.item,
        )
        return [_fact(data, item=tool.item)]

    def _completed(self, call: str, tool: Tool, status: str, response: Obj) -> Out:
        del self._state.tools[call]
        self._state.finished.add(call)
        shown, failure = response.get("resultDisplay"), obj(response, "error")
        content: list[Block] = []
        if isinstance(shown, str) and shown:
            content.append(TextBlock(text=shown))
        elif (diff := text(obj(response, "resultDisplay"), "fileDiff")) is not None:
            name = text(obj(response, "resultDisplay"), "fileName") or ""
            content.append(DiffBlock(path=name, unified=diff))
        end: ToolStatus = "rejected" if tool.refused and status != "success" else _ENDS[status]
        said = text(failure, "message") or (shown if isinstance(shown, str) else None)
        data = ToolCompleted(status=end, content=content, reason=None if end == "completed" else said)
        return _fact(data, item=tool.item)

    def _final(self, state: str | None, said: str) -> list[Out]:
        """A final status: the end of the stream, and of the turn unless something is asked."""
        if self.asking and state == "input-required":
            return []
        if state in OVER:
            self._state.task = None
        outcome = OUTCOMES.get(state or "", "error")
        if self._state.failure is not None and outcome == "success":
            return self._end("error", ErrorInfo(code="agent_failed", message=self._state.failure))
        if outcome == "error":
            code = "agent_auth" if state == "auth-required" else "agent_failed"
            message = said or f"the task's state is {state!r}"
            if code == "agent_auth":
                message = f"the agent wants a login: sign in where its server runs, then try again ({message})"
            return self._end("error", ErrorInfo(code=code, message=message))
        notice = [_fact(MessageSystem(text=said, level="warning"))] if said and state == "input-required" else []
        return [*notice, *self._end(outcome, None)]

    def _failed(self, error: Obj) -> list[Out]:
        """Our request was refused."""
        code = CODES.get(whole(error, "code") or 0, "agent_failed")
        message = text(error, "message") or "the agent refused the request"
        if not self.busy:
            return []
        if code == "history_lost":
            self._state.task = self._state.context = None
        return [*self._begin(), *self._end("error", ErrorInfo(code=code, message=message))]

    def _end(self, outcome: Outcome, error: ErrorInfo | None) -> list[Out]:
        state = self._state
        if not state.turn:
            return []
        if state.interrupted and outcome == "error":
            outcome, error = "interrupted", None
        out = self._close(aborted=outcome != "success")
        why = "interrupted" if outcome == "interrupted" else "cancelled"
        for call, tool in list(state.tools.items()):
            if tool.ask is not None:
                out.append(_fact(AskWithdrawn(ask=tool.ask, why=why)))
            out.append(_fact(ToolCompleted(status="cancelled", reason="the turn ended"), item=tool.item))
            state.finished.add(call)
        state.tools.clear()
        state.turn = False
        return [*out, _fact(TurnCompleted(outcome=outcome, error=error))]

    def _item(self, native: str) -> str:
        return item_id(self._context.session, self._context.incarnation, native)

    def _next_item(self) -> str:
        self._state.messages += 1
        return self._item(f"message#{self._state.messages}")


def _spoken(task: Obj) -> str:
    """What the agent has said behind our last message, of an answer that came whole."""
    history = objects(task, "history")
    last = max((n for n, one in enumerate(history) if text(one, "role") == "user"), default=-1)
    return "".join(joined(parts_of(one)) for one in history[last + 1 :])


def _fact(data: Data, *, item: str | None = None, cause: str | None = None) -> Out:
    return Fact(data=data, item=item, cause=cause)
