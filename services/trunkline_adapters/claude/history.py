"""The CLI's own histories: `projects/<directory>/<session id>.jsonl` below its configuration directory.

A line is what the CLI says over stdio with other names for some fields, so the translator of the live protocol does most of
it. What differs: prompts stand in the file, and turns have no result. A turn begins with its prompt and ends at the next
one, at an interruption, or with the file.

Most lines are the CLI's bookkeeping (requests to the API, snapshots, reminders to the model): they tell nothing of the
conversation and are left out. Measured on files of 2.1.332; older ones have a part of the same fields.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from trunkline_adapters.claude.content import blocks_of
from trunkline_adapters.claude.native import SYNTHETIC_MODEL
from trunkline_adapters.claude.state import State, fact
from trunkline_adapters.claude.translate_stream import assistant
from trunkline_adapters.claude.translate_system import system
from trunkline_adapters.claude.translate_tools import cancel_open, completed, started
from trunkline_adapters.claude.translate_turn import begin
from trunkline_agentkit.fields import Obj, as_obj, items, number, obj, text, truth, whole
from trunkline_agentkit.history import About, Dated, HistoryFile, Line, lines_of
from trunkline_agentkit.protocol import Context, Fact, Out
from trunkline_wire import decode_json
from trunkline_wire.blocks import join_text
from trunkline_wire.session import Capabilities
from trunkline_wire.turn import MessageSystem, MessageUser, Outcome, ToolCompleted, TurnCompleted
from trunkline_wire.work import NativeMessage, UsageUpdated

BOOKKEEPING: Final = frozenset(
    {
        "agent-name",
        "agent-setting",
        "api-request",
        "api-request-blob",
        "api-request-shape",
        "atis-latch",
        "attachment",
        "file-history-delta",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "tag",
        "tools-used",
        "worktree-state",
    }
)
"""Types of lines that tell nothing of the conversation."""
_QUIET: Final = frozenset({"api_metrics", "away_summary", "stop_hook_summary", "turn_duration"})
"""Subtypes of `system` lines likewise."""
_TITLES: Final = {"ai-title": "aiTitle", "custom-title": "customTitle", "summary": "summary"}
"""Where a line that names the session has the name."""
_INTERRUPTED: Final = "[Request interrupted by user"
_FROM_CLI: Final = ("<command-name>", "<command-message>", "<local-command-", "<bash-", "<task-notification>")
"""How a user line begins that nobody has typed so: commands of the CLI itself, their output, the end of a task."""
_RENAMED: Final = {
    "apiErrorStatus": "api_error_status",
    "apiErrorType": "api_error_type",
    "isAbortedMidStream": "aborted",
    "isApiErrorMessage": "is_api_error_message",
    "toolUseResult": "tool_use_result",
}
_COMPACTION: Final = {
    "durationMs": "duration_ms",
    "postTokens": "post_tokens",
    "preTokens": "pre_tokens",
    "trigger": "trigger",
}


def histories(source: Mapping[str, str]) -> list[HistoryFile]:
    """The sessions' files of the user whose environment `source` is. Blocking."""
    root = Path(source.get("CLAUDE_CONFIG_DIR") or Path(source.get("HOME") or "~").expanduser() / ".claude")
    found = sorted((root / "projects").glob("*/*.jsonl"))
    return [HistoryFile(native=path.stem, path=path) for path in found if not path.stem.startswith("agent-")]


def history_lines(file: HistoryFile) -> Iterator[Line]:
    """The lines of a session, and those of each subagent just before the line with its report. Blocking."""
    subagents = _subagents(file.path.with_suffix("") / "subagents")
    for line in lines_of(file.path):
        for tool in [tool for tool in subagents if f'"{tool}"'.encode() in line.raw and b'"tool_result"' in line.raw]:
            yield from _of_subagent(subagents.pop(tool), tool)
        yield line
    for tool, path in subagents.items():
        yield from _of_subagent(path, tool)


def _subagents(directory: Path) -> dict[str, Path]:
    """Files by the tool call that runs the subagent, as the file beside it says."""
    found: dict[str, Path] = {}
    for meta in sorted(directory.glob("*.meta.json")):
        try:
            tool = text(as_obj(decode_json(meta.read_bytes())), "toolUseId")
        except (OSError, ValueError):
            continue
        path = meta.with_name(meta.name.removesuffix(".meta.json") + ".jsonl")
        if tool is not None and path.is_file():
            found[tool] = path
    return found


def _of_subagent(path: Path, tool: str) -> Iterator[Line]:
    """The lines of a subagent, each with the call that runs it: its own file does not say."""
    return lines_of(path, path.name, {"parent_tool_use_id": tool})


class ClaudeHistory:
    """Translates the lines of one session's file, in order."""

    def __init__(self, context: Context, capabilities: Capabilities) -> None:
        self._state = State(context=context, capabilities=capabilities)
        self._about = About()
        self._told: set[str] = set()
        """uuids of lines: after a compaction or a resume some stand there again."""
        self._time: str | None = None
        """Of the last line that told something."""
        self._sides: dict[str, str] = {}
        """uuid of a subagent's line that stands in the session's own file -> the call that runs it."""
        self._cost: float | None = None
        self._said = False
        """Whether the model has said anything in this turn."""

    @property
    def about(self) -> About:
        return self._about

    def feed(self, line: Obj) -> list[Dated]:
        """What a line means, each fact with its time; a turn ends at the time of its last line."""
        self._learn(line)
        uuid = text(line, "uuid")
        if uuid is not None and uuid in self._told:
            return []
        line = self._with_lane(line, uuid)
        ended = self._dated(self._end_turn(), self._time) if self._is_behind_turn(line) else []
        time = text(line, "timestamp") or self._time
        told = self._dated(self._translate(_live(line)), time)
        if told:
            self._time = time
        if uuid is not None:
            self._told.add(uuid)
        return ended + told

    def end(self) -> list[Dated]:
        state = self._state
        out = self._end_turn()
        left = list(state.tools.values())  # of subagents that the file leaves running
        state.tools.clear()
        reason = "the history ends here"
        out += [fact(ToolCompleted(status="cancelled", reason=reason), item=one.item, lane=one.lane) for one in left]
        return self._dated(out, self._time)

    def _learn(self, line: Obj) -> None:
        about, kind = self._about, text(line, "type") or ""
        about.cwd = about.cwd or text(line, "cwd")
        about.version = text(line, "version") or about.version
        about.mode = text(line, "permissionMode") or about.mode
        if kind in _TITLES:
            about.title = text(line, _TITLES[kind]) or about.title
        model = text(obj(line, "message"), "model")
        if kind == "assistant" and model not in (None, SYNTHETIC_MODEL) and not truth(line, "isSidechain"):
            about.model = model

    def _translate(self, line: Obj) -> list[Out]:
        kind = text(line, "type") or "untyped"
        match kind:
            case "user":
                return self._user(line)
            case "assistant":
                self._said = self._said or self._state.lane_of(line) is None
                return assistant(self._state, line)
            case "system":
                return self._system(line)
            case "attachment":
                return self._attached(line)
            case "cost-state":
                return self._costs(line)
            case _ if kind in BOOKKEEPING or kind in _TITLES:
                return []
            case _:
                return [fact(NativeMessage(known=False, kind=f"history/{kind}", reason="unknown_type"))]

    def _with_lane(self, line: Obj, uuid: str | None) -> Obj:
        """Older CLIs write a subagent's lines into the session's file: the first repeats the call's prompt."""
        if uuid is None or not truth(line, "isSidechain") or "parent_tool_use_id" in line:
            return line
        tool = self._sides.get(text(line, "parentUuid") or "")
        if tool is None:
            said = _said_by(obj(line, "message").get("content"))
            calls = (one.native for one in self._state.tools.values() if one.input.get("prompt") == said)
            tool = next(calls, f"subagent {uuid}")
        self._sides[uuid] = tool
        return line | {"parent_tool_use_id": tool}

    def _is_behind_turn(self, line: Obj) -> bool:
        """Whether the turn that runs has ended before this line: at a prompt, or where somebody asked for a compaction."""
        if text(line, "subtype") == "compact_boundary":
            return text(obj(line, "compactMetadata"), "trigger") == "manual"
        if text(line, "type") != "user" or truth(line, "isMeta") or truth(line, "isCompactSummary"):
            return False
        if truth(line, "isSidechain") or text(line, "parent_tool_use_id"):
            return False
        content = obj(line, "message").get("content")
        if any(as_obj(part).get("type") == "tool_result" for part in items({"content": content}, "content")):
            return False
        return not _said_by(content).startswith(_INTERRUPTED)

    def _user(self, line: Obj) -> list[Out]:
        state, uuid = self._state, text(line, "uuid")
        if truth(line, "isMeta"):
            return []  # words of the CLI to the model
        lane = state.lane_of(line)
        content = obj(line, "message").get("content")
        out: list[Out] = []
        rest: list[Obj] = []
        for part in items({"content": content}, "content"):
            block = as_obj(part)
            if block.get("type") == "tool_result":
                out += self._result(line, block, lane)
            else:
                rest.append(block)
        said = blocks_of(content) if isinstance(content, str) else blocks_of(rest)
        if not said:
            return out
        words = join_text(said)
        if words.startswith(_INTERRUPTED):
            if state.turn is not None:
                state.turn.interrupted = True
            return [*out, fact(MessageUser(content=said, synthetic=True), item=self._item(uuid), lane=lane)]
        from_cli = words.startswith(_FROM_CLI) or obj(line, "origin").get("kind") == "task-notification"
        synthetic = from_cli or lane is not None or truth(line, "isCompactSummary") or truth(line, "isSidechain")
        out.append(fact(MessageUser(content=said, synthetic=synthetic), item=self._item(uuid), lane=lane))
        if not synthetic:
            out += begin(state, [uuid or "prompt"])
        return out

    def _result(self, line: Obj, block: Obj, lane: str | None) -> list[Out]:
        """A tool's result; where the line with its call was lost, the call is told by what is known of it."""
        native = text(block, "tool_use_id")
        if native is None or native in self._state.finished:
            return []
        call = started(self._state, {"id": native}, lane) if native not in self._state.tools else []
        return call + completed(self._state, line, block, lane)

    def _attached(self, line: Obj) -> list[Out]:
        """A message that was typed while a turn ran, and folded into it; all else here is for the model."""
        attachment = obj(line, "attachment")
        if text(attachment, "type") != "queued_command" or truth(line, "isSidechain"):
            return []
        said = blocks_of(attachment.get("prompt"))
        synthetic = text(attachment, "commandMode") == "task-notification" or join_text(said).startswith(_FROM_CLI)
        data = MessageUser(content=said, delivery="steered", synthetic=synthetic)
        return [fact(data, item=self._item(text(line, "uuid")))] if said else []

    def _system(self, line: Obj) -> list[Out]:
        subtype = text(line, "subtype") or ""
        if subtype in _QUIET or truth(line, "isMeta"):
            return []
        if subtype == "compact_boundary":
            return system(self._state, line) or []
        said = text(line, "content")
        if said is not None:
            level = text(line, "level")
            known = level if level in ("warning", "error") else "info"
            return [fact(MessageSystem(text=said, level=known, kind=subtype or None))]
        if subtype == "api_error":
            return []  # a call that was tried again: the last failure is a message of its own
        return [fact(NativeMessage(known=False, kind=f"history/system/{subtype}", reason="unknown_subtype"))]

    def _costs(self, line: Obj) -> list[Out]:
        total = number(line, "totalCostUSD")
        if total is None or total == self._cost:
            return []
        self._cost = total
        return [fact(UsageUpdated(total_cost_usd=total))]

    def _end_turn(self) -> list[Out]:
        state, turn = self._state, self._state.turn
        if turn is None:
            return []
        cut_off = any(tool.lane is None for tool in state.tools.values()) or not self._said
        outcome: Outcome = "aborted" if cut_off else "success"
        if turn.interrupted:
            outcome = "interrupted"
        elif turn.error is not None:
            outcome = "error"
        out = cancel_open(state, "the turn was interrupted" if turn.interrupted else "the turn ended without a result")
        data = TurnCompleted(
            outcome=outcome,
            trigger=turn.trigger,
            error=turn.error if outcome == "error" else None,
            lines_added=turn.lines_added,
            lines_removed=turn.lines_removed,
        )
        state.turn = None
        state.blocks.clear()
        self._said = False
        return [*out, fact(data)]

    def _item(self, uuid: str | None) -> str:
        return self._state.item(uuid or f"line {self._time}")

    def _dated(self, out: list[Out], time: str | None) -> list[Dated]:
        return [Dated(one, time) for one in out if isinstance(one, Fact)]


def _live(line: Obj) -> Obj:
    """The line with the names that the live protocol has for its fields."""
    live: dict[str, Any] = {_RENAMED.get(key, key): value for key, value in line.items()}
    if meta := obj(line, "compactMetadata"):
        live["compact_metadata"] = {name: meta.get(key) for key, name in _COMPACTION.items()}
    if "thinkingDurationMs" in line:
        live["thinking_duration_ms"] = whole(line, "thinkingDurationMs")
    decision, denial = obj(line, "permissionDecision"), text(line, "toolDenialKind")
    if decision or denial:
        blocks = [as_obj(part) for part in items(obj(line, "message"), "content")]
        results = [native for block in blocks if (native := text(block, "tool_use_id")) is not None]
        not_run = denial if denial != "permission-rule" else None
        live["tool_result_meta"] = [
            {"id": native, "permission_decision": decision, "non_execution_kind": not_run} for native in results
        ]
    return live


def _said_by(content: object) -> str:
    return join_text(blocks_of(content))
