"""What a tool part is as a tool call: its name, kind and input, and its result. Pure, without memory."""

from typing import Any, Final

from trunkline_adapters.opencode.content import file_block
from trunkline_agentkit.fields import Obj, items, obj, objects, strings, text, whole
from trunkline_wire.blocks import Block, DiffBlock, Location, TerminalBlock, TextBlock, ToolKind
from trunkline_wire.turn import ToolCompleted, ToolStarted, ToolStatus
from trunkline_wire.work import FileChanged

_KINDS: Final[dict[str, ToolKind]] = {
    "apply_patch": "edit",
    "bash": "execute",
    "codesearch": "search",
    "edit": "edit",
    "glob": "search",
    "grep": "search",
    "list": "search",
    "lsp": "search",
    "multiedit": "edit",
    "plan_enter": "switch_mode",
    "plan_exit": "switch_mode",
    "read": "read",
    "skill": "read",
    "task": "think",
    "todoread": "read",
    "todowrite": "think",
    "webfetch": "fetch",
    "websearch": "fetch",
    "write": "edit",
}
_REJECTED: Final = ("The user rejected permission", "The user dismissed this question")
_ABORTED: Final = "Tool execution aborted"
_TITLE: Final = 200
_CREATED: Final = {"add": "created", "added": "created", "delete": "deleted", "deleted": "deleted", "move": "renamed"}


def kind_of(name: str) -> ToolKind:
    return _KINDS.get(name, "other")


def started(part: Obj) -> ToolStarted:
    """The call that a tool part stands for."""
    name, state = text(part, "tool") or "unknown", obj(part, "state")
    given = obj(state, "input")
    return ToolStarted(
        name=name,
        kind=kind_of(name),
        title=_line(text(state, "title") or _title(name, given)) or name,
        input=given,
        locations=[Location(path=path) for path in strings([given.get("filePath"), given.get("path")])],
        native_id=text(part, "callID"),
    )


def _title(name: str, given: Obj) -> str | None:
    match name:
        case "bash":
            return text(given, "command")
        case "task":
            return text(given, "description")
        case "question":
            return next((text(one, "question") for one in objects(given, "questions")), None)
        case _:
            found = ("filePath", "pattern", "query", "url", "path", "name")
            return next((said for key in found if (said := text(given, key))), None)


def completed(part: Obj, *, asked_diff: str | None = None) -> ToolCompleted:
    """How the call ended. `asked_diff` is the change that permission was asked for."""
    state = obj(part, "state")
    meta = obj(state, "metadata")
    failed = text(state, "status") == "error"
    error = text(state, "error")
    return ToolCompleted(
        status=_status(error, meta) if failed else "completed",
        content=_failed(error, meta) if failed else _content(part, asked_diff),
        exit_code=whole(meta, "exit"),
        duration_ms=_duration(state),
        structured=_structured(meta),
        reason=error,
    )


def _status(error: str | None, meta: Obj) -> ToolStatus:
    if error is not None and error.startswith(_REJECTED):
        return "rejected"
    if error == _ABORTED or meta.get("interrupted") is True:
        return "cancelled"
    return "failed"


def _failed(error: str | None, meta: Obj) -> list[Block]:
    output = text(meta, "output")
    found: list[Block] = [TerminalBlock(output=output)] if output else []
    return found + ([TextBlock(text=error)] if error else [])


def _content(part: Obj, asked_diff: str | None) -> list[Block]:
    state = obj(part, "state")
    meta, given = obj(state, "metadata"), obj(state, "input")
    output = text(state, "output")
    attached = [file_block(one) for one in objects(state, "attachments")]
    match text(part, "tool"):
        case "bash":
            printed = text(meta, "output") if meta.get("truncated") is not True else output
            return [TerminalBlock(output=printed or output or "", exit_code=whole(meta, "exit")), *attached]
        case "write":
            return [DiffBlock(path=text(given, "filePath") or "", new=text(given, "content"), unified=asked_diff)]
        case "edit" | "multiedit" | "apply_patch":
            if diffs := [_diff(one) for one in _changed(meta)]:
                return [*diffs]
            if (diff := text(meta, "diff")) is not None:
                return [DiffBlock(path=text(given, "filePath") or "", unified=diff)]
        case _:
            pass
    said: list[Block] = [TextBlock(text=output)] if output else []
    return said + attached


def _changed(meta: Obj) -> list[Obj]:
    """The files that a tool says it has changed, each with its `patch`."""
    return [one for one in (obj(meta, "filediff"), *objects(meta, "files")) if one]


def _diff(change: Obj) -> Block:
    return DiffBlock(path=_path(change), unified=text(change, "patch") or text(change, "diff"))


def _path(change: Obj) -> str:
    return text(change, "file") or text(change, "filePath") or text(change, "relativePath") or ""


def _structured(meta: Obj) -> Any:
    """What the tool says of its result beside the text, without what is said elsewhere."""
    told = {"output", "exit", "truncated", "diff", "filediff", "files", "diagnostics", "approval", "preview", "display"}
    rest = {name: value for name, value in meta.items() if name not in told and value not in (None, {}, [])}
    return rest or None


def file_changes(part: Obj, asked_diff: str | None = None) -> list[FileChanged]:
    """What a finished call has changed, file by file."""
    state = obj(part, "state")
    meta, given = obj(state, "metadata"), obj(state, "input")
    if text(part, "tool") == "write":
        path = text(meta, "filepath") or text(given, "filePath") or ""
        kind = "created" if meta.get("exists") is False else "modified"
        return [FileChanged(path=path, kind=kind, diff=asked_diff)]
    found: list[FileChanged] = []
    for change in _changed(meta):
        word = _CREATED.get(text(change, "status") or text(change, "type") or "")
        kind = word if word in ("created", "deleted", "renamed") else "modified"
        path = text(change, "movePath") or _path(change)
        found.append(FileChanged(path=path, kind=kind, diff=text(change, "patch") or text(change, "diff")))
    return found


def changed_lines(part: Obj) -> tuple[int, int]:
    """(lines added, lines removed) by a finished call."""
    state = obj(part, "state")
    changed = _changed(obj(state, "metadata"))
    if text(part, "tool") == "write" and not changed:
        return len((text(obj(state, "input"), "content") or "").splitlines()), 0
    return sum(whole(one, "additions") or 0 for one in changed), sum(whole(one, "deletions") or 0 for one in changed)


def child_of(part: Obj) -> str | None:
    """The session of the sub-agent that a call has started."""
    return text(obj(obj(part, "state"), "metadata"), "sessionId")


def output_of(part: Obj) -> str | None:
    """What a running call has printed so far."""
    return text(obj(obj(part, "state"), "metadata"), "output")


def _duration(state: Obj) -> int | None:
    begun, ended = whole(obj(state, "time"), "start"), whole(obj(state, "time"), "end")
    return max(0, ended - begun) if begun is not None and ended is not None else None


def _line(said: str | None) -> str | None:
    lines = said.splitlines() if said else []
    return lines[0][:_TITLE] if lines else None


def patched_files(part: Obj) -> list[str]:
    """The files that a step has changed, by whatever means: a `patch` part."""
    return strings(items(part, "files"))
