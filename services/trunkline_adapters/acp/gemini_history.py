"""Gemini CLI's own histories: `tmp/<project>/chats/session-<minute>-<begin of the id>.jsonl` below `~/.gemini`.

A line is a message, `$set` with what has changed of the session, or its head, which stands there again when somebody took
it up. A message is written again, under its id, when something comes to it: a call with its result. `$set` may hold all
messages anew. So a message counts by its id, and a line by what it adds. What a rewind takes back stays told.

A process that takes a session up in a later minute begins another file, often with nothing but its head: files of one id
are read one after the other. Subagents have files of their own, `chats/<session id>/<agent id>.jsonl`; their call names
them. Older versions wrote one object, `.json`. Measured on 0.61.0.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from trunkline_agentkit.fields import Obj, as_obj, items, obj, objects, text, whole
from trunkline_agentkit.history import About, Dated, HistoryFile, Line, lines_of
from trunkline_agentkit.prompts import json_block
from trunkline_agentkit.protocol import Context, Fact
from trunkline_wire import Data, ErrorInfo, decode_json, encode
from trunkline_wire.blocks import (
    Block,
    DiffBlock,
    FileBlock,
    ImageBlock,
    Location,
    TerminalBlock,
    TextBlock,
    ThinkingBlock,
    ToolKind,
    Usage,
    join_text,
)
from trunkline_wire.ids import item_id
from trunkline_wire.turn import (
    MessageAssistant,
    MessageSystem,
    MessageUser,
    Outcome,
    ToolCompleted,
    ToolStarted,
    ToolStatus,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import NativeMessage

_CALL: Final = "subagent_call"
"""The field by which a subagent's lines say the call that runs it, as JSON."""
_HEAD: Final = 20
"""Lines of a file in which its session's id is looked for."""
_AGENT_ID: Final = re.compile(r"[\w-]+")
_NOT_SAID: Final = ("<session_context>", "<hook_context>")
"""How a user's message begins that the program has made for the model."""
_REFUSED: Final = re.compile(r"cancell?ed by the user|denied by", re.IGNORECASE)
_EXIT: Final = re.compile(r"^Exit Code: (\d+)$", re.MULTILINE)
_TITLE: Final = 200
_KINDS: Final[Mapping[str, ToolKind]] = {
    "glob": "search",
    "google_web_search": "fetch",
    "grep_search": "search",
    "invoke_agent": "think",
    "list_directory": "search",
    "read_file": "read",
    "read_many_files": "read",
    "replace": "edit",
    "run_shell_command": "execute",
    "search_file_content": "search",
    "web_fetch": "fetch",
    "write_file": "edit",
}
_STATUSES: Final[Mapping[str, ToolStatus]] = {"cancelled": "cancelled", "error": "failed", "success": "completed"}


def histories(source: Mapping[str, str]) -> list[HistoryFile]:
    """The sessions of the user whose environment `source` is, without subagents'. Blocking."""
    found: dict[str, HistoryFile] = {}
    for path in sorted(path for directory in chats(source) for path in directory.glob("session-*")):
        if path.suffix in {".json", ".jsonl"} and (native := session_in(path)) is not None:
            found.setdefault(native, HistoryFile(native=native, path=path))
    return list(found.values())


def chats(source: Mapping[str, str]) -> list[Path]:
    """The directories in which the files are, one a project."""
    root = Path(source.get("GEMINI_CLI_HOME") or source.get("HOME") or "~").expanduser() / ".gemini" / "tmp"
    return list(root.glob("*/chats"))


def is_said(message: Obj) -> bool:
    """Whether a user's message is one that somebody has said, and not made by the program for the model."""
    content = _blocks(_parts(message.get("displayContent")) or _parts(message.get("content")))
    return bool(content) and not join_text(content).strip().startswith(_NOT_SAID)


def history_lines(file: HistoryFile) -> Iterator[Line]:
    """The lines of all files of the session, and those of each subagent just before the line with its report. Blocking."""
    beside = file.path.parent
    root = beside.parent / ".project_root"
    fields = {"cwd": root.read_text().strip()} if root.is_file() else {}
    paths = (
        [file.path]
        if file.native == file.path.stem
        else [
            path
            for path in sorted(beside.glob(f"session-*-{file.native[:8]}.json*"))
            if path.suffix in {".json", ".jsonl"} and session_in(path) == file.native
        ]
    )
    told: set[str] = set()
    for path in paths:
        name = "" if path == file.path else path.name
        lines = lines_of(path, name, fields) if path.suffix == ".jsonl" else _lines_of_object(path, name, fields)
        for line in lines:
            yield from _subagents(line, beside / file.native, told)
            yield line


def session_in(path: Path) -> str | None:
    """The id of a file's session; its name where the file does not say it, None where it is a subagent's."""
    lines = lines_of(path) if path.suffix == ".jsonl" else _lines_of_object(path, "", {})
    try:
        for line in lines:
            head = _decoded(line.raw)
            if text(head, "kind") == "subagent":
                return None
            if (native := text(head, "sessionId")) is not None:
                return native
            if line.number >= _HEAD:
                break
    except OSError:
        pass  # it is said where the file is read
    return path.stem


def _lines_of_object(path: Path, name: str, fields: Mapping[str, str]) -> Iterator[Line]:
    """A session that is one object, as its head and a line for each message."""
    raw = path.read_bytes()
    head = _decoded(raw)
    if not head:
        yield Line(1, raw.strip(), name, fields)
        return
    rest = {key: value for key, value in head.items() if key != "messages"}
    for number, part in enumerate([rest, *objects(head, "messages")], 1):
        yield Line(number, encode(part), name, fields)


def _subagents(line: Line, directory: Path, told: set[str]) -> Iterator[Line]:
    if b'"agentId"' not in line.raw:
        return
    for call in objects(_decoded(line.raw), "toolCalls"):
        agent = text(call, "agentId") or ""
        path = directory / f"{agent}.jsonl"
        if _AGENT_ID.fullmatch(agent) and agent not in told and path.is_file():
            told.add(agent)
            begun = {key: call.get(key) for key in ("args", "description", "id", "name")}
            yield from lines_of(path, path.name, {_CALL: encode(begun).decode()})


def _decoded(raw: bytes | str) -> Obj:
    try:
        return as_obj(decode_json(raw))
    except ValueError:
        return {}


class GeminiHistory:
    """Translates the lines of one session, in order."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._about = About()
        self._time: str | None = None
        self._turns = 0
        self._running = False
        self._answered = False
        """Whether the model has said or done anything in the turn."""
        self._error: ErrorInfo | None = None
        self._tokens: dict[str, Obj] = {}
        """Of the turn's messages, by their ids."""
        self._counted: set[str] = set()
        """Ids of messages whose tokens an earlier turn has."""
        self._told: set[str] = set()
        """Ids of messages whose content was told."""
        self._open: dict[str, str | None] = {}
        """Calls without a result, and the lanes in which they are made."""
        self._ended: set[str] = set()

    @property
    def about(self) -> About:
        return self._about

    def feed(self, line: Obj) -> list[Dated]:
        self._about.cwd = self._about.cwd or text(line, "cwd")
        lane, out = None, list[Dated]()
        if (said := text(line, _CALL)) is not None:
            call = _decoded(said)
            lane = self._item(text(call, "id") or said)
            out = self._dated(self._begun(call, None), text(line, "startTime") or text(line, "timestamp"))
        changed = obj(line, "$set")
        if lane is None:
            self._about.title = text(changed or line, "summary") or self._about.title
        if text(line, "$rewindTo") is not None:
            note = MessageSystem(
                text="The conversation was taken back to an earlier message", level="info", kind="rewind"
            )
            return self._dated([Fact(data=note)], None)
        messages = objects(changed or line, "messages")
        if text(line, "id") is not None:
            messages = [line]
        elif not (changed or text(line, "sessionId")):
            unknown = NativeMessage(known=False, kind="history/untyped", reason="unknown_type")
            return [*out, *self._dated([Fact(data=unknown)], None)]
        return out + [dated for message in messages for dated in self._message(message, lane)]

    def end(self) -> list[Dated]:
        return self._dated(self._end_turn(), None)

    def _message(self, message: Obj, lane: str | None) -> list[Dated]:
        native, time = text(message, "id"), text(message, "timestamp")
        if native is None:
            return []
        match text(message, "type"):
            case "user":
                return self._user(message, native, time, lane)
            case "gemini":
                return self._dated(self._model(message, native, lane), time)
            case "info" | "warning" | "error" as level:
                return self._dated(self._notice(message, native, level, lane), time)
            case other:
                unknown = NativeMessage(known=False, kind=f"history/{other}", reason="unknown_type")
                return self._dated([] if native in self._told else [Fact(data=unknown)], time)

    def _user(self, message: Obj, native: str, time: str | None, lane: str | None) -> list[Dated]:
        if native in self._told:
            return []
        self._told.add(native)
        parts = _parts(message.get("content"))
        facts = [fact for part in parts for fact in self._response(obj(part, "functionResponse"), lane)]
        content = _blocks(_parts(message.get("displayContent")) or parts)
        words = join_text(content).strip()
        if not content or words.startswith(_NOT_SAID):
            return self._dated(facts, time)
        of_program = lane is not None or words.startswith(("/", "?"))
        said = Fact(data=MessageUser(content=content, synthetic=of_program), item=self._item(native), lane=lane)
        if of_program:
            return self._dated([*facts, said], time)
        ended = self._dated(self._end_turn(), None)
        return ended + self._dated([*facts, *self._begin(), said], time)

    def _model(self, message: Obj, native: str, lane: str | None) -> list[Fact]:
        parts = _parts(message.get("content"))
        content: list[Block] = [
            ThinkingBlock(text=said) for one in objects(message, "thoughts") if (said := _thought(one))
        ]
        content += _blocks(parts)
        facts: list[Fact] = []
        model = text(message, "model")
        if lane is None:
            self._about.model = model or self._about.model
        if content and native not in self._told:
            self._told.add(native)
            data = MessageAssistant(content=content, block=0, model=model)
            facts.append(Fact(data=data, item=self._item(native), lane=lane))
        for part in parts:
            facts += self._begun(obj(part, "functionCall"), lane)
        for call in objects(message, "toolCalls"):
            facts += self._begun(call, lane)
            if (status := _STATUSES.get(text(call, "status") or "")) is not None:
                facts += self._completed(call, status)
        if facts and lane is None:
            self._answered, self._error = True, None
            facts = [*self._begin(), *facts]
        if lane is None and self._running and native not in self._counted and (tokens := obj(message, "tokens")):
            self._tokens[native] = tokens
        return facts

    def _notice(self, message: Obj, native: str, level: str, lane: str | None) -> list[Fact]:
        said = join_text(_blocks(_parts(message.get("content"))))
        if native in self._told or not said:
            return []
        self._told.add(native)
        if level == "error" and self._running and lane is None:
            self._error = ErrorInfo(code="agent_failed", message=said)
        known = "error" if level == "error" else "warning" if level == "warning" else "info"
        return [Fact(data=MessageSystem(text=said, level=known), lane=lane)]

    def _begun(self, call: Obj, lane: str | None) -> list[Fact]:
        id = text(call, "id")
        if id is None or id in self._open or id in self._ended:
            return []
        self._open[id] = lane
        name = text(call, "name") or "unknown"
        given = obj(call, "args")
        path = text(given, "file_path") or text(given, "absolute_path") or text(given, "path")
        title = text(call, "description") or text(given, "command") or path or name
        data = ToolStarted(
            name=name,
            kind=_KINDS.get(name, "other"),
            title=(title.strip().splitlines() or [name])[0][:_TITLE],
            input=call.get("args"),
            locations=[Location(path=path)] if path else [],
            native_id=id,
        )
        return [Fact(data=data, item=self._item(id), lane=lane)]

    def _completed(self, call: Obj, status: ToolStatus) -> list[Fact]:
        id = text(call, "id")
        if id is None or id not in self._open:
            return []
        lane = self._open.pop(id)
        self._ended.add(id)
        answer = obj(obj(next(iter(objects(call, "result")), {}), "functionResponse"), "response")
        failure = text(answer, "error")
        said = failure if failure is not None else text(answer, "output")
        if status == "failed" and failure is not None and _REFUSED.search(failure):
            status = "rejected"
        exit_code = int(found[1]) if said is not None and (found := _EXIT.search(said)) else None
        data = ToolCompleted(
            status="failed" if exit_code and status == "completed" else status,
            content=_shown(call, said, exit_code),
            exit_code=exit_code,
            reason=failure,
        )
        return [Fact(data=data, item=self._item(id), lane=lane)]

    def _response(self, response: Obj, lane: str | None) -> list[Fact]:
        """A result that stands only in what the model is told: of a call that was refused, or that no line tells."""
        if text(response, "id") in self._ended:
            return []
        status: ToolStatus = "failed" if "error" in obj(response, "response") else "completed"
        call = {**response, "result": [{"functionResponse": response}]}
        return [*self._begun(response, lane), *self._completed(call, status)]

    def _begin(self) -> list[Fact]:
        if self._running:
            return []
        self._running = True
        self._turns += 1
        return [Fact(data=TurnStarted(number=self._turns))]

    def _end_turn(self) -> list[Fact]:
        reason = "the turn ended without a result"
        left = [
            Fact(data=ToolCompleted(status="cancelled", reason=reason), item=self._item(id), lane=lane)
            for id, lane in self._open.items()
        ]
        self._ended.update(self._open)
        self._open.clear()
        if not self._running:
            return left
        outcome: Outcome = "error" if self._error else "success" if self._answered and not left else "aborted"
        ended: Data = TurnCompleted(outcome=outcome, error=self._error, usage=_usage(self._tokens.values()))
        self._running, self._answered, self._error = False, False, None
        self._counted.update(self._tokens)
        self._tokens.clear()
        return [*left, Fact(data=ended)]

    def _item(self, native: str) -> str:
        return item_id(self._context.session, self._context.incarnation, native)

    def _dated(self, facts: list[Fact], time: str | None) -> list[Dated]:
        if facts and time is not None:
            self._time = time
        return [Dated(fact, self._time) for fact in facts]


def _parts(content: object) -> list[Obj]:
    if isinstance(content, str):
        return [{"text": content}] if content else []
    if isinstance(content, dict):
        return [as_obj(content)]
    return [{"text": part} if isinstance(part, str) else as_obj(part) for part in items({"parts": content}, "parts")]


def _blocks(parts: list[Obj]) -> list[Block]:
    blocks: list[Block] = []
    for part in parts:
        if "functionCall" in part or "functionResponse" in part:
            continue
        if (said := text(part, "text")) is not None:
            blocks += [ThinkingBlock(text=said) if part.get("thought") else TextBlock(text=said)] if said else []
        elif data := obj(part, "inlineData"):
            kind = text(data, "mimeType") or ""
            made = ImageBlock if kind.startswith("image/") else FileBlock
            blocks.append(made(media_type=kind, data=text(data, "data")))
        elif file := obj(part, "fileData"):
            blocks.append(FileBlock(path=text(file, "fileUri"), media_type=text(file, "mimeType")))
        elif part:
            blocks.append(json_block(part))
    return blocks


def _thought(native: Obj) -> str:
    subject, said = text(native, "subject"), text(native, "description") or ""
    return f"**{subject}** {said}".rstrip() if subject else said


def _shown(call: Obj, said: str | None, exit_code: int | None) -> list[Block]:
    """A result as the program shows it; else as the model is told it."""
    display = call.get("resultDisplay")
    changed = as_obj(display)
    if unified := text(changed, "fileDiff"):
        path = text(changed, "filePath") or text(obj(call, "args"), "file_path") or text(changed, "fileName") or ""
        return [DiffBlock(path=path, unified=unified)]
    if display is not None and text(call, "name") == "run_shell_command":
        output = display if isinstance(display, str) else _screen(items(call, "resultDisplay"))
        return [TerminalBlock(output=output, exit_code=exit_code)]
    shown = said if said is not None else display
    if isinstance(shown, str):
        return [TextBlock(text=shown)] if shown else []
    return [json_block(shown)] if shown is not None else []


def _screen(rows: Iterable[object]) -> str:
    """The text of a terminal's screen, which is told cell by cell."""
    lines = ["".join(text(as_obj(cell), "text") or "" for cell in items({"row": row}, "row")).rstrip() for row in rows]
    return "\n".join(lines).rstrip()


def _usage(messages: Iterable[Obj]) -> Usage | None:
    """Of all calls of the model in a turn; what it thought is counted beside the output, the cache within the input."""
    counted = [tokens for tokens in messages if tokens]
    if not counted:
        return None

    def total(name: str) -> int:
        return sum(whole(tokens, name) or 0 for tokens in counted)

    cached, thoughts = total("cached"), total("thoughts")
    return Usage(
        input=max(total("input") - cached, 0),
        output=total("output") + thoughts,
        cache_read=cached,
        reasoning=thoughts,
    )
