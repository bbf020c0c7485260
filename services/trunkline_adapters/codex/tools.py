"""What an item that does something is as a tool call: its name, kind and input, and its result. Pure, without memory."""

from typing import Final

from trunkline_adapters.codex.content import blocks_of, json_block, result_blocks
from trunkline_agentkit.fields import Obj, as_obj, items, obj, objects, text, whole
from trunkline_wire.blocks import Block, DiffBlock, ImageBlock, Location, TerminalBlock, TextBlock, ToolKind
from trunkline_wire.turn import ToolCompleted, ToolStarted, ToolStatus
from trunkline_wire.work import FileChanged

KINDS: Final = frozenset(
    {
        "collabAgentToolCall",
        "commandExecution",
        "dynamicToolCall",
        "fileChange",
        "functionCallOutput",
        "imageGeneration",
        "imageView",
        "mcpToolCall",
        "sleep",
        "webSearch",
    }
)
"""Types of items that are tool calls."""

_STATUS: Final[dict[str, ToolStatus]] = {
    "completed": "completed",
    "declined": "rejected",
    "failed": "failed",
    "interrupted": "cancelled",
}
_ACTIONS: Final[dict[str, ToolKind]] = {"read": "read", "listFiles": "search", "search": "search"}
_CHANGES: Final[dict[str, ToolKind]] = {"add": "edit", "update": "edit", "delete": "delete"}
_BY_NAME: Final = {
    "apply_patch": "fileChange",
    "exec_command": "commandExecution",
    "image_generation": "imageGeneration",
    "sleep": "sleep",
    "view_image": "imageView",
    "web_search": "webSearch",
}
_TITLE: Final = 200


def started(item: Obj, native: str) -> ToolStarted:
    """The call that an item stands for. `native` is the item's id."""
    name, kind, title, tool_input = _described(item)
    return ToolStarted(
        name=name,
        kind=kind,
        title=_line(title) or name,
        input=tool_input,
        locations=_locations(item),
        native_id=native,
    )


def reopened(started: ToolStarted) -> Obj:
    """The item that a call without an end stands for, as far as its `tool.started` tells."""
    given: Obj = as_obj(started.input)
    item: Obj = {"id": started.native_id, "tool": started.name}
    _, _, rest = started.name.partition("mcp__")
    server, _, tool = rest.partition("__")
    if tool:
        return item | {"type": "mcpToolCall", "server": server, "tool": tool, "arguments": given}
    if started.name in _BY_NAME:
        return item | {"type": _BY_NAME[started.name]} | given
    if started.kind == "think":
        return item | {"type": "collabAgentToolCall"} | given
    return item | {"type": "dynamicToolCall", "arguments": given}


def _described(item: Obj) -> tuple[str, ToolKind, str | None, Obj]:
    """(name, kind, title, input)."""
    tool = text(item, "tool") or "unknown"
    match text(item, "type"):
        case "commandExecution":
            return "exec_command", _command_kind(item), command_of(item), _only(item, "command", "cwd")
        case "fileChange":
            return "apply_patch", _change_kind(item), _changed_paths(item), _only(item, "changes")
        case "mcpToolCall":
            server = text(item, "server") or "unknown"
            return f"mcp__{server}__{tool}", "other", f"{server}: {tool}", obj(item, "arguments")
        case "dynamicToolCall":
            space = text(item, "namespace")
            return f"{space}.{tool}" if space else tool, "other", None, obj(item, "arguments")
        case "collabAgentToolCall":
            return tool, "think", text(item, "prompt"), _only(item, "prompt", "model", "receiverThreadIds")
        case "webSearch":
            return "web_search", "fetch", text(item, "query"), _only(item, "query", "action")
        case "imageView":
            return "view_image", "read", text(item, "path"), _only(item, "path")
        case "imageGeneration":
            return "image_generation", "other", text(item, "revisedPrompt"), _only(item, "revisedPrompt")
        case "sleep":
            return "sleep", "other", None, _only(item, "durationMs")
        case _:
            return text(item, "name") or "unknown", "other", None, {}


def completed(item: Obj, *, denied: bool) -> ToolCompleted:
    """How the call ended, by the item as it is at its end. `denied`: we have refused it."""
    status = _STATUS.get(text(item, "status") or "completed", "completed")
    if item.get("success") is False and status == "completed":
        status = "failed"
    if denied and status == "failed":
        status = "rejected"
    content, structured = _result(item)
    return ToolCompleted(
        status=status,
        content=content,
        exit_code=whole(item, "exitCode"),
        duration_ms=whole(item, "durationMs"),
        structured=structured,
        reason=None if status == "completed" else _reason(item, status),
    )


def _result(item: Obj) -> tuple[list[Block], object]:
    """(content for people, the tool's structured result)."""
    match text(item, "type"):
        case "commandExecution":
            ran = item.get("aggregatedOutput") is not None or item.get("exitCode") is not None
            output = text(item, "aggregatedOutput") or ""
            return [TerminalBlock(output=output, exit_code=whole(item, "exitCode"))] if ran else [], None
        case "fileChange":
            return [_diff(change) for change in objects(item, "changes")], None
        case "mcpToolCall":
            result = obj(item, "result")
            return result_blocks(result), result.get("structuredContent")
        case "dynamicToolCall":
            return blocks_of(items(item, "contentItems")), None
        case "collabAgentToolCall":
            said = [text(as_obj(state), "message") for state in obj(item, "agentsStates").values()]
            return [TextBlock(text=one) for one in said if one], obj(item, "agentsStates") or None
        case "webSearch":
            return [json_block(part) for part in items(item, "results")], item.get("action")
        case "imageGeneration":
            data = text(item, "result")
            return [ImageBlock(media_type="image/png", data=data)] if data else [], item.get("failure")
        case "functionCallOutput":
            output = item.get("output")
            return [TextBlock(text=output)] if isinstance(output, str) else blocks_of(items(item, "output")), None
        case _:
            return [], None


def _reason(item: Obj, status: ToolStatus) -> str | None:
    said = text(obj(item, "error"), "message")
    if said is None and status == "rejected":
        said = "refused"
    return said


def command_of(item: Obj) -> str | None:
    """A command as the model wrote it, without the shell around it."""
    inner = [said for action in objects(item, "commandActions") if (said := text(action, "command"))]
    return " && ".join(inner) or text(item, "command")


def _command_kind(item: Obj) -> ToolKind:
    kinds: set[ToolKind] = {
        _ACTIONS.get(text(action, "type") or "", "execute") for action in objects(item, "commandActions")
    }
    return kinds.pop() if len(kinds) == 1 else "execute"


def _change_kind(item: Obj) -> ToolKind:
    kinds: set[ToolKind] = {
        _CHANGES.get(text(obj(change, "kind"), "type") or "", "edit") for change in objects(item, "changes")
    }
    return kinds.pop() if len(kinds) == 1 else "edit"


def _changed_paths(item: Obj) -> str | None:
    names = [path.rpartition("/")[2] for change in objects(item, "changes") if (path := text(change, "path"))]
    return f"Edit {', '.join(names)}" if names else None


def _locations(item: Obj) -> list[Location]:
    found = [text(action, "path") for action in objects(item, "commandActions")]
    found += [text(change, "path") for change in objects(item, "changes")]
    if text(item, "type") == "imageView":
        found.append(text(item, "path"))
    return [Location(path=path) for path in found if path]


def _diff(change: Obj) -> DiffBlock:
    path, said = text(change, "path") or "", text(change, "diff") or ""
    match text(obj(change, "kind"), "type"):
        # For these the diff is the whole file.
        case "add":
            return DiffBlock(path=path, new=said)
        case "delete":
            return DiffBlock(path=path, old=said)
        case _:
            return DiffBlock(path=path, unified=said)


def file_changes(item: Obj) -> list[FileChanged]:
    """What a finished patch has changed, file by file."""
    found: list[FileChanged] = []
    for change in objects(item, "changes"):
        kind = obj(change, "kind")
        path, diff = text(change, "path") or "", text(change, "diff")
        match text(kind, "type"):
            case "add":
                found.append(FileChanged(path=path, kind="created", diff=diff))
            case "delete":
                found.append(FileChanged(path=path, kind="deleted", diff=diff))
            case _ if (moved := text(kind, "move_path")) is not None:
                found.append(FileChanged(path=moved, kind="renamed", diff=diff))
            case _:
                found.append(FileChanged(path=path, kind="modified", diff=diff))
    return found


def changed_lines(item: Obj) -> tuple[int, int]:
    """(lines added, lines removed) by a finished patch."""
    added = removed = 0
    for change in objects(item, "changes"):
        lines = (text(change, "diff") or "").splitlines()
        match text(obj(change, "kind"), "type"):
            case "add":
                added += len(lines)
            case "delete":
                removed += len(lines)
            case _:
                added += sum(line.startswith("+") and not line.startswith("+++") for line in lines)
                removed += sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return added, removed


def runs_on(item: Obj) -> bool:
    """Whether a command without an end may still run: it has a process of its own."""
    return text(item, "type") == "commandExecution" and text(item, "processId") is not None


def _only(item: Obj, *names: str) -> Obj:
    return {name: item[name] for name in names if item.get(name) not in (None, "", [])}


def _line(said: str | None) -> str | None:
    lines = said.splitlines() if said else []
    return lines[0][:_TITLE] if lines else None


def spawns(item: Obj) -> bool:
    """Whether a call starts a sub-agent, whose thread is known only at the call's end."""
    return text(item, "type") == "collabAgentToolCall" and text(item, "tool") == "spawnAgent"
