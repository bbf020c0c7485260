"""A session's events as a person reads them. Each finished text is written once, whether its deltas came or not."""

from typing import Final

from trunkline_cli.output import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Screen, Style, safe, short
from trunkline_fold.answering import input_line
from trunkline_wire import Event, parse_time
from trunkline_wire.asks import (
    AskDecided,
    AskExpired,
    AskWithdrawn,
    PermissionRequested,
    PlanProposed,
    QuestionAsked,
)
from trunkline_wire.blocks import BlobRef, Block, TextBlock, join_text, text_of
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.session import (
    SessionArchived,
    SessionClosed,
    SessionCompacted,
    SessionInitialized,
    SessionReset,
    SessionResumed,
    SessionStatus,
    SessionUpdated,
)
from trunkline_wire.turn import (
    MessageAssistant,
    MessageDelta,
    MessageSystem,
    MessageUser,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
)
from trunkline_wire.work import AuthUpdated, CommandFailed, CommandRejected, ErrorRaised, PlanUpdated

_MARKS: Final = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
_LEVELS: Final[dict[str, Style]] = {"info": DIM, "warning": YELLOW, "error": RED}


class Renderer:
    """Feed it events of one session, in order. `mine` are ids of commands whose prompts the person typed here."""

    def __init__(self, screen: Screen) -> None:
        self.mine: set[str] = set()
        self._screen = screen
        self._written: dict[tuple[str, int], str] = {}
        self._tools: dict[str, tuple[str, str]] = {}
        self._model: str | None = None

    def piece(self, item: str, block: int, at: int, text: str) -> None:
        """A piece of a block at offset `at` (code points); what is written already is not repeated."""
        key = (item, block)
        known = self._written.get(key, "")
        if at > len(known):
            return  # a hole: the whole block, or the finished message, follows
        fresh = text[len(known) - at :]
        if fresh:
            if not known and self._written:
                self._screen.end()
            self._screen.stream(safe(fresh))
            self._written[key] = known + fresh

    def feed(self, event: Event) -> None:
        """Write what there is to say about an event; most say nothing."""
        indent = "    " if event.lane else "  "
        screen = self._screen
        match event.data:
            case MessageDelta(kind="text", block=block, at=at, text=text) if event.item and not event.lane:
                self.piece(event.item, block, at, text)
            case MessageAssistant() as data:
                self._assistant(event, data, indent)
            case MessageUser() as data if data.command not in self.mine and not data.synthetic:
                text = join_text(data.content)
                if text:
                    who = f"{data.author}: " if data.author else ""
                    screen.line(f"> {who}{safe(text)}", BOLD)
            case MessageSystem(text=text, level=level):
                screen.line(f"{indent}{short(safe(text_of(text)), 400)}", _LEVELS[level])
            case ToolStarted() as data:
                self._tools[event.item or ""] = (data.name, event.time)
                title = data.title or input_line(data.input)
                screen.line(f"{indent}· {data.name}{': ' if title else ''}{short(safe(title))}", CYAN)
            case ToolCompleted() as data:
                self._tool_completed(event, data, indent)
            case PlanUpdated(entries=entries):
                for entry in entries:
                    screen.line(f"{indent}{_MARKS[entry.status]} {short(safe(entry.content))}", DIM)
            case TurnCompleted() as data:
                self._turn_completed(data)
            case _:
                self._small(event, indent)

    def feed_ask(self, asked: PermissionRequested | QuestionAsked | PlanProposed, indent: str = "  ") -> None:
        """Write what is asked for."""
        for line in describe(asked):
            self._screen.line(f"{indent}? {line}", YELLOW)

    def _assistant(self, event: Event, data: MessageAssistant, indent: str) -> None:
        for index, block in enumerate(data.content, data.block or 0):
            text = _text(block)
            if text is None:
                continue
            if event.lane:
                self._screen.line(f"{indent}| {short(safe(text), 200)}", DIM)
                continue
            key = (event.item or event.id, index)
            known = self._written.pop(key, "")
            if (large := _reference(block)) is not None:
                self._screen.stream("" if known else safe(text))
                self._screen.end()
                self._screen.line(f"{indent}… {large.size:,} bytes in all: `trunkline blob {large.sha256}`", DIM)
                continue
            if known and text.startswith(known):
                self._screen.stream(safe(text[len(known) :]))
            elif text != known:
                self._screen.end()
                self._screen.stream(safe(text))
            self._screen.end()
        if data.error is not None:
            self._screen.line(f"{indent}! {_error(data.error)}", RED)

    def _tool_completed(self, event: Event, data: ToolCompleted, indent: str) -> None:
        name, started = self._tools.pop(event.item or "", ("tool", event.time))
        seconds = (
            data.duration_ms / 1000
            if data.duration_ms is not None
            else (parse_time(event.time) - parse_time(started)).total_seconds()
        )
        if data.status == "completed":
            code = f" exit {data.exit_code}" if data.exit_code else ""
            self._screen.line(f"{indent}  {name} done in {seconds:.1f} s{code}", DIM)
            return
        why = data.reason or join_text(data.content)
        self._screen.line(f"{indent}  {name} {data.status}{': ' if why else ''}{short(safe(why), 200)}", YELLOW)

    def _turn_completed(self, data: TurnCompleted) -> None:
        facts: list[str] = []
        if data.duration_ms is not None:
            facts.append(f"{data.duration_ms / 1000:.1f} s")
        if data.usage is not None:
            total = data.usage.input + data.usage.output + data.usage.cache_read + data.usage.cache_write
            facts.append(f"{total:,} tokens")
        if data.cost_usd:
            facts.append(f"${data.cost_usd:.4f}")
        ending = "done" if data.outcome == "success" else data.outcome
        if data.error is not None:
            ending = f"{ending}: {_error(data.error)}"
        detail = f" ({', '.join(facts)})" if facts else ""
        self._screen.line(f"— {ending}{detail}", GREEN if data.outcome == "success" else RED)

    def _small(self, event: Event, indent: str) -> None:
        screen = self._screen
        match event.data:
            case PermissionRequested() | QuestionAsked() | PlanProposed() as data:
                self.feed_ask(data, indent)
            case AskDecided() as data:
                rule = f" (rule {data.rule})" if data.rule else ""
                chosen = f", option {data.option}" if data.option else ""
                screen.line(f"{indent}  {data.behaviour} by {data.by}{rule}{chosen}", DIM)
            case AskExpired(behaviour=behaviour):
                screen.line(f"{indent}  expired: {behaviour}", YELLOW)
            case AskWithdrawn(why=why):
                screen.line(f"{indent}  the agent no longer asks ({why})", DIM)
            case SessionInitialized(model=model, version=version) if model and model != self._model:
                self._model = model
                screen.line(f"{indent}{model}{f', version {version}' if version else ''}", DIM)
            case SessionUpdated(model=model) if model and model != self._model:
                self._model = model
                screen.line(f"{indent}model {model}", DIM)
            case SessionStatus(status="retrying") as data:
                wait = f" in {data.after_ms / 1000:.0f} s" if data.after_ms else ""
                screen.line(f"{indent}retrying{wait}: {data.reason or 'no reason given'}", YELLOW)
            case SessionStatus(status=("stalled" | "authenticating" | "compacting" | "stopped") as status):
                screen.line(f"{indent}{status}", DIM)
            case SessionCompacted(before=before, after=after):
                screen.line(f"{indent}context compacted: {before} to {after} tokens", DIM)
            case SessionReset():
                screen.line(f"{indent}a new conversation begins", DIM)
            case SessionResumed(how=how):
                screen.line(f"{indent}resumed ({how})", DIM)
            case SessionArchived():
                screen.line(f"{indent}archived", DIM)
            case SessionClosed() as data:
                code = f", exit {data.exit_code}" if data.exit_code is not None else ""
                screen.line(f"— session closed: {data.reason}{code}", DIM)
                if data.last_error:
                    screen.line(safe(text_of(data.last_error)), DIM)
            case AuthUpdated(error=error, methods=methods, authenticating=True):
                screen.line(f"{indent}the agent wants a sign-in: {error or ', '.join(methods)}", YELLOW)
            case ErrorRaised(code=code, message=message):
                screen.line(f"{indent}! {code}: {safe(message)}", RED)
            case CommandRejected(error=error) | CommandFailed(error=error):
                screen.line(f"{indent}! {_error(error)}", RED)
            case _:
                return


def describe(data: PermissionRequested | QuestionAsked | PlanProposed) -> list[str]:
    """What an ask wants, in lines."""
    match data:
        case PermissionRequested():
            # The input itself comes first: a title is the agent's own word for what it wants to do.
            wanted = input_line(data.input) or data.title or ""
            lines = [f"{data.name}{': ' if wanted else ''}{short(safe(wanted), 300)}"]
            for text in (data.title, data.description, data.reason):
                if text and safe(text) not in lines and text != wanted:
                    lines.append(safe(text))
        case PlanProposed():
            lines = ["plan:", *safe(text_of(data.plan)).splitlines()]
        case QuestionAsked():
            lines = [safe(data.message)] if data.message else []
            lines += [safe(question.text) for question in data.questions]
    return lines


def _reference(block: Block) -> BlobRef | None:
    return block.text if isinstance(block, TextBlock) and isinstance(block.text, BlobRef) else None


def _text(block: Block) -> str | None:
    return text_of(block.text) if isinstance(block, TextBlock) else None


def _error(error: ErrorInfo) -> str:
    return f"{error.code}: {short(safe(error.message), 300)}"
