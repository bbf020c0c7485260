"""Codex's own histories: `sessions/<year>/<month>/<day>/rollout-<time>-<thread id>.jsonl` below CODEX_HOME.

A line is `{timestamp, type, payload}`. What the model said and called is a `response_item`, which rollouts of all versions
have; what Codex made of it (the prompt without its frame, a command's exit code, a patch's files) is an `event_msg`. A call
is joined to its result by `call_id`, and an item of the live protocol with that id says more about it. Measured on 0.171.0.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from trunkline_adapters.codex import tools
from trunkline_adapters.codex.content import blocks_of
from trunkline_adapters.codex.usage import counts, usage_of
from trunkline_agentkit.fields import Obj, as_obj, items, obj, objects, text, whole
from trunkline_agentkit.history import About, Dated, HistoryFile, Line, lines_of
from trunkline_agentkit.prompts import json_block
from trunkline_agentkit.protocol import Context, Fact
from trunkline_wire import Data, ErrorInfo, decode_json
from trunkline_wire.blocks import Block, ImageBlock, TextBlock, ThinkingBlock, ToolKind, Usage
from trunkline_wire.ids import item_id
from trunkline_wire.session import SessionCompacted
from trunkline_wire.turn import (
    MessageAssistant,
    MessageUser,
    Outcome,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import NativeMessage

_NAME: Final = re.compile(r"rollout-.*-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl")
_KNOWN_LINES: Final = frozenset({"retained_context", "world_state"})
_CALLS: Final = frozenset({"custom_tool_call", "function_call", "local_shell_call"})
_RESULTS: Final = frozenset({"custom_tool_call_output", "function_call_output"})
_KINDS: Final[dict[str, ToolKind]] = {
    "apply_patch": "edit",
    "exec_command": "execute",
    "local_shell": "execute",
    "shell": "execute",
    "view_image": "read",
    "write_stdin": "execute",
}
_EXIT: Final = re.compile(r"(?:exited with code|Exit code:?) (\d+)")
_TITLE: Final = 200


def histories(source: Mapping[str, str]) -> list[HistoryFile]:
    """The threads of the user whose environment `source` is, without those of subagents. Blocking."""
    root = Path(source.get("CODEX_HOME") or Path(source.get("HOME") or "~").expanduser() / ".codex")
    named = [(path, _NAME.fullmatch(path.name)) for path in sorted((root / "sessions").glob("*/*/*/rollout-*.jsonl"))]
    return [HistoryFile(native=name[1], path=path) for path, name in named if name and not _of_subagent(path)]


def history_lines(file: HistoryFile) -> Iterator[Line]:
    return lines_of(file.path)


def _of_subagent(path: Path) -> bool:
    """Whether another thread has started this one: then its call tells what came of it."""
    try:
        with path.open("rb") as stream:
            meta = as_obj(as_obj(decode_json(stream.readline())).get("payload"))
    except (OSError, ValueError):
        return False
    return "subagent" in obj(meta, "source")


class CodexHistory:
    """Translates the lines of one rollout, in order."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._about = About()
        self._time: str | None = None
        self._turn: str | None = None
        """Codex's id of the turn that runs."""
        self._turns = 0
        self._usage: Usage | None = None
        self._error: ErrorInfo | None = None
        self._open: dict[str, Obj] = {}
        """Calls without a result, by call id; the value is what an item has said of it."""
        self._ended: set[str] = set()
        self._items = False
        """Whether this rollout has prompts as items, and not as messages of their own."""
        self._unnamed = 0

    @property
    def about(self) -> About:
        return self._about

    def feed(self, line: Obj) -> list[Dated]:
        time = text(line, "timestamp") or self._time
        facts = [Dated(fact, time) for fact in self._translate(text(line, "type") or "untyped", obj(line, "payload"))]
        if facts:
            self._time = time
        return facts

    def end(self) -> list[Dated]:
        return [Dated(fact, self._time) for fact in self._end_turn("aborted")]

    def _translate(self, kind: str, payload: Obj) -> list[Fact]:
        match kind:
            case "session_meta":
                self._about.cwd = text(payload, "cwd") or self._about.cwd
                self._about.version = text(payload, "cli_version") or self._about.version
                return []
            case "turn_context":
                self._about.model = text(payload, "model") or self._about.model
                self._about.cwd = self._about.cwd or text(payload, "cwd")
                return []
            case "token_usage_record":
                self._usage = usage_of(counts(_camel(obj(payload, "turn_token_usage"))))
                return []
            case "compacted":
                return [Fact(data=SessionCompacted(trigger="unknown"))]
            case "event_msg":
                return self._event(payload)
            case "response_item":
                return self._response(payload)
            case _ if kind in _KNOWN_LINES:
                return []
            case _:
                return [Fact(data=NativeMessage(known=False, kind=f"history/{kind}", reason="unknown_type"))]

    def _event(self, event: Obj) -> list[Fact]:
        match text(event, "type"):
            case "task_started":
                return [*self._end_turn("aborted"), *self._begin(text(event, "turn_id"))]
            case "task_complete":
                if said := text(obj(event, "error"), "message"):
                    self._error = ErrorInfo(code="agent_failed", message=said)
                return self._end_turn("error" if self._error else "success", event)
            case "turn_aborted":
                return self._end_turn("interrupted", event)
            case "error":
                said = text(event, "message") or "the turn ended with an error"
                self._error = ErrorInfo(code="agent_failed", message=said)
                return []
            case "user_message" if not self._items:
                content: list[Block] = [TextBlock(text=text(event, "message") or "")]
                content += [ImageBlock(media_type="image/*", url=url) for url in items(event, "images") if url]
                return self._prompt(content, None)
            case "item_completed":
                return self._item(_live(obj(event, "item")))
            case "thread_name_updated":
                self._about.title = text(event, "thread_name") or self._about.title
                return []
            case _:
                return []  # what was streamed, counted or asked: the response items say what came of it

    def _item(self, item: Obj) -> list[Fact]:
        native, kind = text(item, "id"), text(item, "type") or ""
        if kind == "userMessage":
            self._items = True
            return self._prompt(blocks_of(items(item, "content")), native)
        if native is None or kind not in tools.KINDS or native in self._ended:
            return []
        if native in self._open:
            self._open[native] = item
            return []
        self._ended.add(native)
        begun, ended = tools.started(item, native), tools.completed(item, denied=False)
        return [*self._begin(None), *(Fact(data=data, item=self._id(native)) for data in (begun, ended))]

    def _prompt(self, content: list[Block], native: str | None) -> list[Fact]:
        return [*self._begin(None), Fact(data=MessageUser(content=content), item=self._id(native))]

    def _response(self, item: Obj) -> list[Fact]:
        kind = text(item, "type") or ""
        if kind == "message" and text(item, "role") == "assistant":
            said: list[Block] = [TextBlock(text=text(part, "text") or "") for part in objects(item, "content")]
            return self._said(said, text(item, "id"))
        if kind == "reasoning":
            parts = [text(part, "text") for part in [*objects(item, "summary"), *objects(item, "content")]]
            return self._said([ThinkingBlock(text=part) for part in parts if part], text(item, "id"))
        call = text(item, "call_id") or text(item, "id")
        if kind in _CALLS and call is not None:
            return [] if call in self._open or call in self._ended else [*self._begin(None), self._call(call, item)]
        if kind in _RESULTS and call is not None:
            return self._result(call, item)
        return []  # the frame around a prompt, and what the model's host did: items tell it

    def _said(self, content: list[Block], native: str | None) -> list[Fact]:
        if not content:
            return []
        data = MessageAssistant(content=content, block=0, model=self._about.model)
        return [*self._begin(None), Fact(data=data, item=self._id(native))]

    def _call(self, call: str, item: Obj) -> Fact:
        self._open[call] = {}
        name = text(item, "name") or ("local_shell" if text(item, "type") == "local_shell_call" else "unknown")
        given = item.get("arguments", item.get("input", item.get("action")))
        tool_input = _json(given) if isinstance(given, str) else given
        asked = tool_input if isinstance(tool_input, str) else _command(as_obj(tool_input))
        title = (asked or name).strip().splitlines() or [name]
        data = ToolStarted(
            name=name, kind=_KINDS.get(name, "other"), title=title[0][:_TITLE], input=tool_input, native_id=call
        )
        return Fact(data=data, item=self._id(call))

    def _result(self, call: str, item: Obj) -> list[Fact]:
        """A call's result; where the line with the call was lost, the call is told by what is known of it."""
        if call in self._ended:
            return []
        begun = [] if call in self._open else [*self._begin(None), self._call(call, {"call_id": call})]
        details = self._open.pop(call)
        self._ended.add(call)
        if details:
            return [*begun, Fact(data=tools.completed(details, denied=False), item=self._id(call))]
        output = item.get("output")
        shown = _json(output) if isinstance(output, str) else output
        wrapped = as_obj(shown)
        said = wrapped.get("output", output) if "metadata" in wrapped else output
        exit_code = whole(obj(wrapped, "metadata"), "exit_code")
        if exit_code is None and isinstance(said, str) and (found := _EXIT.search(said[:_TITLE])):
            exit_code = int(found[1])
        failed = bool(exit_code) or as_obj(output).get("success") is False
        data = ToolCompleted(
            status="failed" if failed else "completed",
            content=_blocks(said),
            exit_code=exit_code,
        )
        return [*begun, Fact(data=data, item=self._id(call))]

    def _begin(self, turn: str | None) -> list[Fact]:
        if self._turn is not None:
            return []
        self._turns += 1
        self._turn = turn or f"turn {self._turns}"
        return [Fact(data=TurnStarted(number=self._turns))]

    def _end_turn(self, outcome: Outcome, event: Obj | None = None) -> list[Fact]:
        if self._turn is None:
            return []
        reason = "the turn was interrupted" if outcome == "interrupted" else "the turn ended without a result"
        left: list[Data] = [ToolCompleted(status="cancelled", reason=reason) for _ in self._open]
        facts = [Fact(data=data, item=self._id(call)) for call, data in zip(self._open, left, strict=True)]
        self._ended.update(self._open)
        self._open.clear()
        data = TurnCompleted(
            outcome=outcome,
            error=self._error if outcome == "error" else None,
            usage=self._usage,
            duration_ms=whole(event or {}, "duration_ms"),
            result=text(event or {}, "last_agent_message"),
        )
        self._turn, self._usage, self._error = None, None, None
        return [*facts, Fact(data=data)]

    def _id(self, native: str | None) -> str:
        if native is None:
            self._unnamed += 1
            native = f"unnamed {self._unnamed}"
        return item_id(self._context.session, self._context.incarnation, native)


def _json(value: str) -> Any:
    """What the text holds if it is JSON, else the text."""
    try:
        return decode_json(value)
    except ValueError:
        return value


def _command(tool_input: Obj) -> str | None:
    for key in ("cmd", "command", "path", "query"):
        value = tool_input.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list):
            return " ".join(str(word) for word in items(tool_input, key))
    return None


def _blocks(said: object) -> list[Block]:
    if isinstance(said, str):
        return [TextBlock(text=said)] if said else []
    return [json_block(said)] if said is not None else []


def _live(item: Obj) -> Obj:
    """An item as the live protocol tells it."""
    live = _camel(item)
    kind = text(item, "type") or ""
    live["type"] = kind[:1].lower() + kind[1:]
    if isinstance(live.get("command"), list):
        *_, live["command"] = ["", *(str(word) for word in items(live, "command"))]
    if duration := obj(item, "duration"):
        live["durationMs"] = (whole(duration, "secs") or 0) * 1000 + (whole(duration, "nanos") or 0) // 1_000_000
    if changes := obj(item, "changes"):
        live["changes"] = [_change(path, as_obj(change)) for path, change in changes.items()]
    return live


def _change(path: str, change: Obj) -> Obj:
    kind = {"type": text(change, "type"), "move_path": text(change, "move_path")}
    return {"path": path, "kind": kind, "diff": text(change, "unified_diff") or text(change, "content") or ""}


def _camel(native: Obj) -> Obj:
    """The names of the live protocol, one level deep and in lists of objects: rollouts write them with underscores."""
    return {_camel_name(key): _inner(value) for key, value in native.items()}


def _inner(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(part) if isinstance(part, dict) else part for part in items({"value": value}, "value")]
    return value


def _camel_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)
