"""Tool calls, put together from `tool_call`, `tool_call_update` and permission requests, in whatever order they come.

A start is told once the call runs, asks, or its input is known by a later message: a call that is pending has no input yet
with many agents, and brings it with the next message.
"""

from typing import Any, Final, cast

from trunkline_adapters.acp.content import text_of_tool, tool_blocks
from trunkline_adapters.acp.native import TOOL_KINDS, at_path
from trunkline_adapters.acp.state import State, Terminal, Tool, fact, passing
from trunkline_adapters.acp.translate_message import close_segment
from trunkline_agentkit.fields import Obj, as_obj, items, obj, objects, text, whole
from trunkline_agentkit.protocol import Out, Progress
from trunkline_wire.blocks import Block, Location, TerminalBlock, TextBlock, ToolKind
from trunkline_wire.turn import ToolCompleted, ToolProgress, ToolStarted, ToolStatus

_TAIL: Final = 16_000
"""Characters of output that a progress tells."""

_ENDS: Final = frozenset({"completed", "failed", "cancelled"})


def called(state: State, update: Obj) -> list[Out]:
    """`tool_call` or `tool_call_update`."""
    native = text(update, "toolCallId")
    if native is None:
        return []
    if native in state.finished:
        return passing(state, state.item(native))
    tool = upsert(state, native, update)
    out: list[Out] = []
    if not tool.told and _is_under_way(tool, update):
        out += start(state, tool)
    if tool.status in _ENDS:
        out += start(state, tool)
        return [*out, _complete(state, tool, _status(state, tool))]
    if tool.told and (output := _output(state, tool, update)) is not None:
        return [*out, Progress(data=ToolProgress(output=output[-_TAIL:]), item=tool.item, lane=tool.lane)]
    return out or passing(state, tool.item)


def upsert(state: State, native: str, update: Obj) -> Tool:
    """What is known of a call, with what this message adds. Absent fields have not changed; lists are whole."""
    tool = _known(state, native, update)
    tool.updates += 1
    tool.name = text(update, "name") or at_path(update, state.profile.tool_name) or tool.name
    tool.title = text(update, "title") or tool.title
    tool.kind = _kind(update) or tool.kind
    tool.input = update.get("rawInput") or tool.input
    if isinstance(update.get("content"), list):
        tool.content = objects(update, "content")
    tool.locations = _locations(update) or tool.locations
    if update.get("rawOutput") is not None:
        tool.output = update["rawOutput"]
    tool.status = text(update, "status") or tool.status
    _note_terminal(state, tool, obj(update, "_meta"))
    return tool


def asked_for(state: State, native: str, call: Obj) -> Tool:
    """The call that a permission request names. What it says of the call is for the question: it only fills what is unknown."""
    tool = _known(state, native, call)
    tool.name = tool.name or text(call, "name") or at_path(call, state.profile.tool_name)
    tool.title = tool.title or text(call, "title")
    tool.kind = (_kind(call) or "other") if tool.kind == "other" else tool.kind
    tool.input = tool.input or call.get("rawInput")
    tool.locations = tool.locations or _locations(call)
    return tool


def _known(state: State, native: str, message: Obj) -> Tool:
    tool = state.tools.get(native)
    if tool is None:
        tool = Tool(native=native, item=state.item(native), lane=state.lane_of(message))
        state.tools[native] = tool
    return tool


def _kind(message: Obj) -> ToolKind | None:
    kind = text(message, "kind")
    if kind is None:
        return None
    return cast("ToolKind", kind) if kind in TOOL_KINDS else "other"


def _is_under_way(tool: Tool, update: Obj) -> bool:
    if tool.status != "pending":
        return True
    # A diff may be shown before it is written; what is printed comes of a call that runs.
    return tool.updates > 1 and bool(tool.input or text_of_tool(objects(update, "content")))


def _locations(update: Obj) -> list[Location]:
    return [
        Location(path=path, line=whole(one, "line"))
        for one in objects(update, "locations")
        if (path := text(one, "path")) is not None
    ]


def _note_terminal(state: State, tool: Tool, meta: Obj) -> None:
    """Output of a terminal that the agent runs itself and tells piece by piece."""
    piece, ended = obj(meta, "terminal_output_delta") or obj(meta, "terminal_output"), obj(meta, "terminal_exit")
    for said in (piece, ended):
        name = text(said, "terminal_id") or tool.native
        if said:
            terminal = state.terminals.setdefault(name, Terminal())
            data = text(said, "data")
            terminal.output += data or ""
            terminal.exit_code = whole(said, "exit_code") if said is ended else terminal.exit_code


def start_known(state: State) -> list[Out]:
    """Another message follows: the calls whose input is known have begun."""
    return [one for tool in list(state.tools.values()) if not tool.told and tool.input for one in start(state, tool)]


def start(state: State, tool: Tool) -> list[Out]:
    """Tells a call's start, if it was not told."""
    if tool.told:
        return []
    tool.told = True
    data = ToolStarted(
        name=tool.name or tool.kind,
        kind=tool.kind,
        title=tool.title,
        input=tool.input,
        locations=tool.locations,
        native_id=tool.native,
    )
    return [*close_segment(state), fact(data, item=tool.item, lane=tool.lane)]


def _output(state: State, tool: Tool, update: Obj) -> str | None:
    """What a running call has printed so far, where this message tells it."""
    meta = obj(update, "_meta")
    if obj(meta, "terminal_output_delta") or obj(meta, "terminal_output"):
        shown = [one for block in tool_blocks(tool.content, state.terminals) for one in [_shown(block)] if one]
        return "".join(shown) or state.terminals[_terminal_of(tool, meta)].output
    if text(update, "sessionUpdate") == "tool_call_update" and items(update, "content"):
        return text_of_tool(tool.content) or None
    return None


def _terminal_of(tool: Tool, meta: Obj) -> str:
    piece = obj(meta, "terminal_output_delta") or obj(meta, "terminal_output")
    return text(piece, "terminal_id") or tool.native


def _shown(block: Block) -> str:
    return block.output if isinstance(block, TerminalBlock) and isinstance(block.output, str) else ""


def _status(state: State, tool: Tool) -> ToolStatus:
    if tool.status == "completed":
        return "completed"
    if tool.refused:
        return "rejected"
    interrupted = state.turn is not None and state.turn.interrupted
    return "cancelled" if interrupted or tool.status == "cancelled" else "failed"


def _complete(state: State, tool: Tool, status: ToolStatus, reason: str | None = None) -> Out:
    state.tools.pop(tool.native, None)
    state.finished.add(tool.native)
    blocks = tool_blocks(tool.content, state.terminals)
    # Some agents describe a call in its content, and tell its output only here.
    shows_text = all(isinstance(block, TextBlock) for block in blocks)
    if isinstance(tool.output, str) and shows_text and tool.output not in text_of_tool(tool.content):
        blocks.append(TextBlock(text=tool.output))
    shown = state.terminals.get(tool.native)
    exits = [block.exit_code for block in blocks if isinstance(block, TerminalBlock)]
    exit_code = exits[0] if exits else shown.exit_code if shown is not None else None
    for one in tool.content:
        state.terminals.pop(text(one, "terminalId") or "", None)
    state.terminals.pop(tool.native, None)
    if reason is None and status != "completed":
        reason = text_of_tool(tool.content) or _words(tool.output)
    data = ToolCompleted(
        status=status,
        content=blocks,
        exit_code=exit_code,
        structured=tool.output if isinstance(tool.output, dict | list) else None,
        reason=reason,
    )
    return fact(data, item=tool.item, lane=tool.lane)


def _words(output: Any) -> str | None:
    if isinstance(output, str):
        return output or None
    details = as_obj(output)
    return text(details, "message") or text(details, "error")


def cancel_open(state: State, reason: str) -> list[Out]:
    """Ends the calls that a finished turn has left without a result: some agents never say how a refused one ended."""
    out: list[Out] = []
    for tool in list(state.tools.values()):
        out += start(state, tool)
        if tool.refused:
            out.append(_complete(state, tool, "rejected", "the user refused it"))
        else:
            out.append(_complete(state, tool, "cancelled", reason))
    return out
