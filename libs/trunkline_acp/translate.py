"""The translator: a session's events in, the updates of an editor out. Pure, without I/O and without a clock.

What a text's deltas have told is not told again by the finished message. State comes of the log's own fold: an update is what
differs between two states.
"""

import logging
from typing import Any, Final

import msgspec

from trunkline_acp.asks import tool_title
from trunkline_acp.content import content_of, edit_of, fenced, text_content, tool_content, words, wrapped
from trunkline_acp.describe import changes, commands, plan, usage
from trunkline_acp.native import Able
from trunkline_agentkit.fields import Obj
from trunkline_fold.session import SessionState, fold_session, initial
from trunkline_wire import Event
from trunkline_wire.asks import PermissionRequested
from trunkline_wire.blocks import DiffBlock, TerminalBlock, TextBlock, ThinkingBlock, join_text
from trunkline_wire.session import SessionCompacted, SessionStatus
from trunkline_wire.turn import (
    MessageAssistant,
    MessageDelta,
    MessageSystem,
    MessageUser,
    ToolCompleted,
    ToolProgress,
    ToolStarted,
    TurnCompleted,
)
from trunkline_wire.work import ErrorRaised

log = logging.getLogger(__name__)

MAX_PROMPTS: Final = 1_000
"""Prompts remembered, so that none is shown twice."""

CHUNKS: Final = {"text": "agent_message_chunk", "thinking": "agent_thought_chunk"}


class _Tool(msgspec.Struct):
    """A tool call that the editor knows. `printed` is what its terminal shows, `output` the pieces of it that came as deltas."""

    kind: str
    printed: str = ""
    output: str = ""
    terminal: bool = False


class Translator:
    """For one session and one editor. `mine` are the ids of prompts that this editor has sent, and shows by itself."""

    def __init__(self, session: str, able: Able) -> None:
        self.state: SessionState = initial(session)
        self.mine: set[str] = set()
        self._able = able
        self._written: dict[tuple[str, int], str] = {}
        """What was told of texts that are being written, by item and block."""
        self._tools: dict[str, _Tool] = {}
        self._prompts: dict[str, None] = {}

    def begin(self, state: SessionState, blocks: list[Obj]) -> list[Obj]:
        """Go on from a snapshot: `blocks` are the texts that are being written. What was told is not told again."""
        self.state = state
        updates: list[Obj] = []
        for item, tool in state.open_tools.items():
            if item in self._tools:
                continue
            self._tools[item] = _Tool(kind=tool.kind)
            locations = [_location(one) for one in tool.locations]
            call = {"toolCallId": item, "title": tool_title(tool.name, tool.title, None), "kind": tool.kind}
            updates.append({"sessionUpdate": "tool_call", **call, "status": "in_progress", "locations": locations})
        for block in blocks:
            if block.get("kind") in CHUNKS and not block.get("lane"):
                updates += self._piece(block["item"], block["block"], block["kind"], block.get("at", 0), block["text"])
        return updates

    def summary(self) -> list[Obj]:
        """What is so now, for an editor that has just joined."""
        state = self.state
        updates = [commands(state)] if state.commands else []
        updates += [plan(state)] if state.plan else []
        return updates + ([used] if (used := usage(state)) is not None else [])

    def feed(self, event: Event, *, past: bool = False) -> list[Obj]:
        """The updates that an event means. In the `past`, which is told once, what has changed since is left out."""
        updates = self._told(event)
        if isinstance(event.data, MessageDelta | ToolProgress):
            return updates
        before = self.state
        try:
            self.state = fold_session(before, event, before.sequence + 1)
        except Exception:
            log.exception("not_folded", extra={"session": event.session, "type": event.type})
        return updates if past else updates + changes(before, self.state)

    def _told(self, event: Event) -> list[Obj]:
        match event.data:
            case MessageDelta(kind=("text" | "thinking") as kind) as data if event.item and not event.lane:
                return self._piece(event.item, data.block, kind, data.at, data.text)
            case MessageDelta(kind="tool_output") as data if event.item in self._tools:
                tool = self._tools[event.item]
                if data.at <= len(tool.output):
                    tool.output = tool.output[: data.at] + data.text
                return self._progress(event.item, tool.output)
            case MessageAssistant() as data if not event.lane:
                return self._message(event, data)
            case MessageUser() as data:
                return self._user(event, data)
            case MessageSystem(text=said, level=level):
                return self._notice(event, words(said), level)
            case ToolStarted() as data:
                return self._started(event, data)
            case ToolProgress(output=str(output)) if event.item in self._tools:
                return self._progress(event.item, output)
            case ToolCompleted() as data:
                return self._completed(event, data)
            case PermissionRequested(tool=str(item)) as data if item not in self._tools:
                started = ToolStarted(name=data.name, kind=data.kind, title=data.title, input=data.input)
                return self._call(item, started, "pending", event.lane)
            case TurnCompleted():
                self._written.clear()
                return []
            case _:
                return self._small(event)

    def _piece(self, item: str, block: int, kind: str, at: int, text: str) -> list[Obj]:
        known = self._written.get((item, block), "")
        if at > len(known):
            return []  # a hole: the whole block, or the finished message, follows
        fresh = text[len(known) - at :]
        if not fresh:
            return []
        self._written[item, block] = known + fresh
        return [_chunk(CHUNKS[kind], text_content(fresh), item)]

    def _message(self, event: Event, data: MessageAssistant) -> list[Obj]:
        item = event.item or event.id
        updates: list[Obj] = []
        for number, block in enumerate(data.content, data.block or 0):
            known = self._written.pop((item, number), "")
            match block:
                case TextBlock() | ThinkingBlock():
                    # Of a text that is only a reference here the deltas have told as much, or the message the beginning.
                    said = words(block.text) if isinstance(block.text, str) or not known else known
                    rest = said.removeprefix(known)
                    if rest:
                        kind = "text" if isinstance(block, TextBlock) else "thinking"
                        updates.append(_chunk(CHUNKS[kind], text_content(rest), item))
                case _ if block.__struct_config__.tag in {"tool_use", "tool_result"}:
                    pass  # told as a tool call
                case _:
                    updates.append(_chunk(CHUNKS["text"], content_of(block), item))
        return updates

    def _user(self, event: Event, data: MessageUser) -> list[Obj]:
        """A prompt of anybody else. One that is folded into a turn later is told a second time in the log."""
        key = data.command or event.id
        if data.synthetic or event.lane or data.delivery == "cancelled" or key in self._prompts:
            return []
        self._prompts[key] = None
        while len(self._prompts) > MAX_PROMPTS:
            del self._prompts[next(iter(self._prompts))]
        if key in self.mine:
            return []
        meta = {"_meta": {"trunkline": {"author": data.author}}} if data.author else {}
        return [
            _chunk("user_message_chunk", content_of(block), event.item or event.id) | meta for block in data.content
        ]

    def _notice(self, event: Event, said: str, level: str) -> list[Obj]:
        """A word of the agent's program; an editor that shows no notices gets it as a message."""
        if not said.strip():
            return []
        if self._able.notices:
            title, _, rest = said.strip().partition("\n")
            more = {"description": rest.strip()} if rest.strip() else {}
            return [{"sessionUpdate": "notice", "severity": level, "title": title} | more]
        return [_chunk(CHUNKS["text"], text_content(said), event.id)]

    def _started(self, event: Event, data: ToolStarted) -> list[Obj]:
        item = event.item or event.id
        if item in self._tools:  # it was asked about before
            told = self._describe(data) | {"toolCallId": item, "status": "in_progress"}
            return [{"sessionUpdate": "tool_call_update", **told}]
        return self._call(item, data, "in_progress", event.lane)

    def _call(self, item: str, data: ToolStarted, status: str, lane: str | None) -> list[Obj]:
        tool = self._tools[item] = _Tool(kind=data.kind)
        told = self._describe(data) | {"toolCallId": item, "status": status}
        meta: Obj = {"trunkline": {"lane": lane}} if lane else {}
        if data.kind == "execute" and self._able.terminal_output:
            tool.terminal = True
            told["content"] = [{"type": "terminal", "terminalId": item}]
            meta["terminal_info"] = {"terminal_id": item, "cwd": self.state.cwd}
        return [{"sessionUpdate": "tool_call", **told} | ({"_meta": meta} if meta else {})]

    def _describe(self, data: ToolStarted) -> Obj:
        told: Obj = {"title": tool_title(data.name, data.title, data.input), "kind": data.kind}
        told |= {"locations": [_location(one) for one in data.locations]} if data.locations else {}
        told |= {} if data.input is None else {"rawInput": data.input}
        shown = edit_of(data.input, self.state.cwd) if data.kind == "edit" else None
        return told if shown is None else told | {"content": [shown]}

    def _progress(self, item: str, output: str) -> list[Obj]:
        tool = self._tools[item]
        told: Obj = {"sessionUpdate": "tool_call_update", "toolCallId": item, "status": "in_progress"}
        if tool.terminal:
            fresh = self._printed(item, tool, output)
            return [told | fresh] if fresh else []
        return [told | {"content": [wrapped(text_content(fenced(output, "console")))]}]

    def _printed(self, item: str, tool: _Tool, output: str) -> Obj:
        """What a terminal shows more; nothing where `output` is only the end of what there was."""
        if not output.startswith(tool.printed) or output == tool.printed:
            return {}
        fresh, tool.printed = output[len(tool.printed) :], output
        return {"_meta": {"terminal_output": {"terminal_id": item, "data": fresh}}}

    def _completed(self, event: Event, data: ToolCompleted) -> list[Obj]:
        item = event.item or event.id
        updates: list[Obj] = []
        if item not in self._tools:
            updates = self._call(item, ToolStarted(name="tool"), "in_progress", event.lane)
        tool = self._tools.pop(item)
        status = "completed" if data.status == "completed" else "failed"
        told: Obj = {"sessionUpdate": "tool_call_update", "toolCallId": item, "status": status}
        told |= {} if data.structured is None else {"rawOutput": data.structured}
        cwd, printed = self.state.cwd, tool.kind == "execute"
        if tool.terminal:
            shown = [one for one in data.content if not isinstance(one, TerminalBlock | TextBlock)]
            outputs = [words(one.output) for one in data.content if isinstance(one, TerminalBlock)]
            fresh = self._printed(item, tool, "\n".join(outputs) or join_text(data.content))
            exit_code = next((one.exit_code for one in data.content if isinstance(one, TerminalBlock)), data.exit_code)
            ended: dict[str, Any] = {"terminal_id": item, "exit_code": exit_code, "signal": None}
            updates += [{"sessionUpdate": "tool_call_update", "toolCallId": item, **fresh}] if fresh else []
            content = [{"type": "terminal", "terminalId": item}, *tool_content(shown, cwd)]
            return [*updates, told | {"content": content, "_meta": {"terminal_exit": ended}}]
        if data.content or data.reason:
            blocks = data.content or [TextBlock(text=data.reason or "")]
            # A change that was shown with its call stays, where it was made and its end has none of its own.
            stays = tool.kind == "edit" and status == "completed" and not any(isinstance(b, DiffBlock) for b in blocks)
            told |= {} if stays else {"content": tool_content(blocks, cwd, printed=printed)}
        return [*updates, told]

    def _small(self, event: Event) -> list[Obj]:
        """What is worth a notice and no message."""
        if not self._able.notices:
            return []
        match event.data:
            case ErrorRaised(code=code, message=message):
                return self._notice(event, f"{code}\n{message}", "error")
            case SessionStatus(status="retrying", reason=reason):
                return self._notice(event, f"The agent tries again\n{reason or ''}", "warning")
            case SessionCompacted(before=before, after=after):
                return self._notice(event, f"Context compacted\n{before} to {after} tokens", "info")
            case _:
                return []


def _chunk(kind: str, content: Obj, message: str) -> Obj:
    return {"sessionUpdate": kind, "content": content, "messageId": message}


def _location(location: Any) -> Obj:
    told = {"path": location.path}
    return told if location.line is None else told | {"line": location.line}
