"""From the demo agent's messages to events. Pure: no I/O, no clock."""

from typing import Any, Final, TypeVar

import msgspec

from trunkline_adapters.demo import native
from trunkline_agentkit import Context, Fact, ItemEnd, Out, Piece, Progress
from trunkline_wire import ErrorInfo
from trunkline_wire.asks import AskOption, AskWithdrawn, PermissionRequested, Question, QuestionAsked, QuestionOption
from trunkline_wire.blocks import Choice, TextBlock, Usage
from trunkline_wire.ids import ask_id, item_id
from trunkline_wire.session import Capabilities, SessionInitialized, SessionUpdated
from trunkline_wire.turn import MessageAssistant, ToolCompleted, ToolProgress, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import NativeMessage

CAPABILITIES: Final = Capabilities(
    streaming=True,
    interrupt=True,
    resume=True,
    fork=True,
    model_switching=True,
    mode_switching=True,
    permissions=True,
    questions=True,
    steering=True,
    queueing=True,
    native_protocol=True,
    hold=("child", "detached"),
    options=("model", "mode", "native"),
)
MEANINGLESS: Final = frozenset({"queued", "steered", "cancelled", "asks", "native_result", "refused"})
"""Replies and receipts that say nothing the log does not know otherwise."""

T = TypeVar("T", bound=msgspec.Struct)


class DemoTranslator:
    """`asks` are the agent's own ids of the asks it waits for, by Trunkline's."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.asks: dict[str, str] = {}

    def sent(self, message: dict[str, Any]) -> list[Out]:  # noqa: ARG002  # nothing we say changes the meaning of replies
        return []

    def answered(self, message: dict[str, Any]) -> None:
        """An answer of ours to an ask went out."""
        self.asks.pop(self._ask_id(message.get("ask", "")), None)

    def feed(self, message: dict[str, Any]) -> list[Out]:
        kind = message.get("type")
        if kind in MEANINGLESS:
            return []
        match kind:
            case "ready":
                return self._ready(_read(message, native.Ready))
            case "turn_started":
                started = _read(message, native.TurnStarted)
                return [Fact(data=TurnStarted(number=0, trigger=started.trigger), cause=started.prompt)]
            case "text":
                piece = _read(message, native.TextPiece)
                return [Piece(item=self._item(piece.message), block=0, kind="text", text=piece.text)]
            case "message":
                return self._message(_read(message, native.Message))
            case "tool_started":
                tool = _read(message, native.ToolStarted)
                data = ToolStarted(name=tool.name, kind="execute", input=tool.input, native_id=tool.tool)
                return [Fact(data=data, item=self._item(tool.tool))]
            case "tool_output":
                output = _read(message, native.ToolOutput)
                return [Progress(data=ToolProgress(output=output.text), item=self._item(output.tool))]
            case "tool_done":
                done = _read(message, native.ToolDone)
                data = ToolCompleted(status=done.status, content=[TextBlock(text=done.output)])
                return [Fact(data=data, item=self._item(done.tool))]
            case "ask":
                return self._ask(_read(message, native.Ask))
            case "question":
                return self._question(_read(message, native.Question))
            case "ask_cancelled":
                ask = self._ask_id(_read(message, native.AskCancelled).ask)
                self.asks.pop(ask, None)
                return [Fact(data=AskWithdrawn(ask=ask, why="cancelled"))]
            case "changed":
                changed = _read(message, native.Changed)
                return [Fact(data=SessionUpdated(model=changed.model, mode=changed.mode))]
            case "turn_done":
                return self._turn_done(_read(message, native.TurnDone))
            case _:
                return [Fact(data=NativeMessage(known=False, kind=str(kind), reason="unknown_type"))]

    def _item(self, native_id: str) -> str:
        return item_id(self._context.session, self._context.incarnation, native_id)

    def _ask_id(self, native_id: str) -> str:
        return ask_id(self._context.session, self._context.incarnation, native_id)

    def _ready(self, ready: native.Ready) -> list[Out]:
        data = SessionInitialized(
            capabilities=CAPABILITIES,
            native_session=ready.session,
            incarnation=self._context.incarnation,
            model=ready.model,
            mode=ready.mode,
            models=[Choice(id=model) for model in ready.models],
            modes=[Choice(id=mode) for mode in ready.modes],
            version=ready.version,
        )
        return [Fact(data=data)]

    def _message(self, message: native.Message) -> list[Out]:
        item = self._item(message.message)
        data = MessageAssistant(content=[TextBlock(text=message.text)], block=0, aborted=message.aborted)
        return [Fact(data=data, item=item), ItemEnd(item)]

    def _ask(self, ask: native.Ask) -> list[Out]:
        identifier = self._ask_id(ask.ask)
        self.asks[identifier] = ask.ask
        data = PermissionRequested(
            ask=identifier,
            name=ask.name,
            incarnation=self._context.incarnation,
            kind="execute",
            input=ask.input,
            options=[
                AskOption(id="allow", name="Allow", kind="allow_once"),
                AskOption(id="deny", name="Deny", kind="reject_once"),
            ],
            tool=self._item(ask.tool),
        )
        return [Fact(data=data, item=self._item(ask.tool))]

    def _question(self, question: native.Question) -> list[Out]:
        identifier = self._ask_id(question.ask)
        self.asks[identifier] = question.ask
        asked = Question(
            id=question.text,
            text=question.text,
            options=[QuestionOption(label=label) for label in question.options],
        )
        return [Fact(data=QuestionAsked(ask=identifier, incarnation=self._context.incarnation, questions=[asked]))]

    def _turn_done(self, done: native.TurnDone) -> list[Out]:
        error = None if done.error is None else ErrorInfo(code="agent_failed", message=done.error)
        usage = Usage(input=done.usage.input, output=done.usage.output, cost_usd=done.usage.cost_usd)
        return [Fact(data=TurnCompleted(outcome=done.outcome, trigger=done.trigger, error=error, usage=usage))]


def _read(message: dict[str, Any], kind: type[T]) -> T:
    return msgspec.convert(message, kind)
