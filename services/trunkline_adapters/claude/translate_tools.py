"""Tool calls: begun by a `tool_use` block, ended by a `tool_result` in a user message."""

import re
from typing import Final, cast

from trunkline_adapters.claude.content import block_of, result_text
from trunkline_adapters.claude.native import AGENT_TOOLS, TOOL_KINDS
from trunkline_adapters.claude.state import State, Tool, fact
from trunkline_agentkit.fields import Obj, as_obj, items, number, obj, objects, text, truth, whole
from trunkline_agentkit.protocol import Out, Progress
from trunkline_wire.blocks import Block, DiffBlock, Location, TerminalBlock, TextBlock, ToolKind
from trunkline_wire.turn import ToolCompleted, ToolProgress, ToolStarted, ToolStatus
from trunkline_wire.work import PlanEntry, PlanUpdated

_HEARTBEAT: Final = re.compile(r"-heartbeat-\d+$")
_EXIT_CODE: Final = re.compile(r"^(?:Error: )?Exit code (\d+)\b")
_REJECTED: Final = "The user doesn't want to proceed with this tool use"
_ABORTED: Final = "Tool permission request failed: AbortError"
"""What 2.1.101 says of a call whose turn was interrupted while it asked."""
_SHELLS: Final = frozenset({"Bash", "PowerShell"})


def kind_of_tool(name: str) -> ToolKind:
    return cast("ToolKind", TOOL_KINDS.get(name, "other"))


def title_of(name: str, tool_input: Obj) -> str:
    """A line for people: what the call does, in the agent's own words where it has some."""
    for key in ("description", "file_path", "notebook_path", "command", "pattern", "path", "url", "query", "subject"):
        if said := text(tool_input, key):
            first = said.splitlines()[0][:200] if said.splitlines() else said
            return first if key == "description" else f"{name} {first}"
    return name


def started(state: State, block: Obj, lane: str | None) -> list[Out]:
    """A tool call begins. A call that is told twice begins once."""
    native = text(block, "id")
    if native is None or native in state.tools or native in state.finished:
        return []
    name = text(block, "name") or "unknown"
    tool_input = obj(block, "input")
    tool = Tool(native=native, item=state.item(native), name=name, input=tool_input, lane=lane)
    state.tools[native] = tool
    data = ToolStarted(
        name=name,
        kind=kind_of_tool(name),
        title=title_of(name, tool_input),
        input=block.get("input"),
        locations=_locations(tool_input),
        native_id=native,
    )
    out = [fact(data, item=tool.item, lane=lane)]
    if name == "TodoWrite":
        out.append(fact(PlanUpdated(entries=_todos(tool_input)), item=tool.item, lane=lane))
    return out


def _locations(tool_input: Obj) -> list[Location]:
    path = text(tool_input, "file_path") or text(tool_input, "notebook_path") or text(tool_input, "path")
    return [Location(path=path, line=whole(tool_input, "offset"))] if path else []


def _todos(tool_input: Obj) -> list[PlanEntry]:
    entries: list[PlanEntry] = []
    for todo in objects(tool_input, "todos"):
        status = text(todo, "status")
        known = status if status in ("pending", "in_progress", "completed") else "pending"
        entries.append(PlanEntry(content=text(todo, "content") or "", status=known))
    return entries


def progressed(state: State, message: Obj) -> list[Out]:
    """`tool_progress`: its id has a suffix, and its parent is the tool call itself, not a subagent."""
    native = _HEARTBEAT.sub("", text(message, "tool_use_id") or "")
    if not native:
        return []
    tool = state.tools.get(native)
    data = ToolProgress(elapsed_s=number(message, "elapsed_time_seconds"))
    return [Progress(data=data, item=state.item(native), lane=tool.lane if tool else None)]


def completed(state: State, message: Obj, block: Obj, lane: str | None) -> list[Out]:
    """A tool call ends with the result in `block`, a content block of the user message `message`."""
    native = text(block, "tool_use_id")
    if native is None:
        return []
    state.finished.add(native)
    tool = state.tools.pop(native, None)
    name = tool.name if tool else ""
    structured = message.get("tool_use_result")
    details = as_obj(structured)
    said = result_text(block.get("content"))
    if text(details, "status") == "teammate_spawned" and (mate := text(details, "teammate_id")) is not None:
        state.lanes[mate] = native
    status = _status(state, message, block, native, said)
    exit_code = _exit_code(name, details, said, status)
    if status == "completed":
        _count_lines(state, details)
    data = ToolCompleted(
        status=status,
        content=_content(name, block, details, said, exit_code, ran=status in ("completed", "failed")),
        exit_code=exit_code,
        duration_ms=whole(details, "totalDurationMs") or whole(details, "durationMs"),
        structured=structured if isinstance(structured, dict | list) else None,
        reason=None if status == "completed" else said or None,
    )
    return [fact(data, item=state.item(native), lane=tool.lane if tool else lane)]


def cancel_open(state: State, reason: str) -> list[Out]:
    """Ends the calls of the main lane that a finished turn has left without a result."""
    left = [tool for tool in state.tools.values() if tool.lane is None]
    for tool in left:
        del state.tools[tool.native]
        state.finished.add(tool.native)
    return [fact(ToolCompleted(status="cancelled", reason=reason), item=tool.item) for tool in left]


def _status(state: State, message: Obj, block: Obj, native: str, said: str) -> ToolStatus:
    interrupted = state.turn is not None and state.turn.interrupted
    meta = next((one for one in objects(message, "tool_result_meta") if text(one, "id") == native), {})
    decision = text(obj(meta, "permission_decision"), "decision")
    if truth(obj(message, "tool_use_result"), "interrupted"):
        return "cancelled"
    if not truth(block, "is_error"):
        return "completed"
    if native in state.denied or decision == "reject":
        return "rejected"
    if said == _ABORTED:
        return "cancelled"
    if text(meta, "non_execution_kind") or said.startswith(_REJECTED):
        # Nobody refused it: the turn was interrupted while it ran or waited.
        return "rejected" if decision or not (meta or interrupted) else "cancelled"
    return "failed"


def _exit_code(name: str, details: Obj, said: str, status: ToolStatus) -> int | None:
    if name not in _SHELLS:
        return None
    if match := _EXIT_CODE.match(said):
        return int(match[1])
    finished = status == "completed" and "stdout" in details and "backgroundTaskId" not in details
    return 0 if finished else None


def _content(name: str, block: Obj, details: Obj, said: str, exit_code: int | None, *, ran: bool) -> list[Block]:
    if (diff := _diff(details)) is not None:
        return [diff]
    if name in _SHELLS and ran and not truth(details, "isImage"):
        return [TerminalBlock(output=said, exit_code=exit_code)]
    if name in AGENT_TOOLS and details.get("content"):
        # The report itself; the text for the model wraps it in a frame of instructions.
        return [block_of(part) for part in objects(details, "content")]
    content = block.get("content")
    if isinstance(content, str):
        return [TextBlock(text=content)] if content else []
    return [block_of(as_obj(part)) for part in items(block, "content")]


def _diff(details: Obj) -> DiffBlock | None:
    path = text(details, "filePath")
    if path is None or "structuredPatch" not in details:
        return None
    written = isinstance(details.get("content"), str)
    old = details.get("originalFile") if written else details.get("oldString")
    new = details.get("content") if written else details.get("newString")
    return DiffBlock(
        path=path,
        old=old if isinstance(old, str) else None,
        new=new if isinstance(new, str) else None,
        unified=_unified(details),
    )


def _unified(details: Obj) -> str | None:
    lines: list[str] = []
    for hunk in objects(details, "structuredPatch"):
        places = [whole(hunk, key) or 0 for key in ("oldStart", "oldLines", "newStart", "newLines")]
        lines.append("@@ -{},{} +{},{} @@".format(*places))
        lines += [line for line in items(hunk, "lines") if isinstance(line, str)]
    return "\n".join(lines) + "\n" if lines else None


def _count_lines(state: State, details: Obj) -> None:
    if state.turn is None or "structuredPatch" not in details:
        return
    for hunk in objects(details, "structuredPatch"):
        changed = [line for line in items(hunk, "lines") if isinstance(line, str)]
        state.turn.lines_added += sum(line.startswith("+") for line in changed)
        state.turn.lines_removed += sum(line.startswith("-") for line in changed)
    if text(details, "type") == "create":
        state.turn.lines_added += len((text(details, "content") or "").splitlines())
