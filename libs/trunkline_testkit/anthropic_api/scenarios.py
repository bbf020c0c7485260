"""From a conversation to the model's next message: every scenario, as data and pure functions.

| directive | what the model does |
|---|---|
| none, `SAY=text` | says a text in several pieces |
| `SCENARIO=slow N=20 DELAY_MS=50` | N pieces with a delay between them |
| `SCENARIO=hold` | says "Holding. ", keeps the stream open until released, says "Released." |
| `SCENARIO=flood N=10000` | N pieces at full speed |
| `SCENARIO=huge BYTES=1000000` | one text of that many bytes |
| `SCENARIO=thinking` | thinks, then speaks |
| `SCENARIO=bash CMD=…` | runs a command that needs permission |
| `SCENARIO=twobash CMD=… CMD2=…` | asks for two commands in one message |
| `SCENARIO=read FILE=…`, `SCENARIO=write FILE=… TEXT=…` | reads, writes a file |
| `SCENARIO=question` | asks the user: Which colour? Red or Blue |
| `SCENARIO=plan` | proposes a plan (writes its file first where the agent names one) |
| `SCENARIO=sub CHILD=…` | a subagent in the foreground with that prompt, which may hold directives itself |
| `SCENARIO=bgtask CMD=…` | a command in the background; when the agent reports its end, the model says so |
| `SCENARIO=err500` (400, 401, 429, 529 …) | this error, every time |
| `SCENARIO=once500` | this error the first time, then a text |
| `SCENARIO=drop`, `SCENARIO=oncedrop` | the stream is cut in the middle |

After a tool the model repeats what it was told: "The tool said: …".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trunkline_testkit.anthropic_api.conversation import Conversation

GREETING = "Hello from the scripted model. This answer comes in several pieces, so that streaming shows."
QUESTION = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cool"}],
}
PLAN = "# Plan\n1. do A\n2. do B"
SHOWN = 400
"""Characters of a tool result that the model repeats."""

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True)
class Text:
    """Streamed text. `hold_after` pieces the stream waits for a release; `cut_after` pieces it breaks off."""

    pieces: tuple[str, ...]
    delay: float = 0.0
    """Seconds between two pieces."""
    hold_after: int | None = None
    cut_after: int | None = None


@dataclass(frozen=True, slots=True)
class Thinking:
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolUse:
    name: str
    input: dict[str, Any]


Block = Text | Thinking | ToolUse


@dataclass(frozen=True, slots=True)
class Message:
    """What the model says next."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error instead of a message."""

    status: int

    @property
    def type(self) -> str:
        return _ERROR_TYPES.get(self.status, "api_error")


def reply(
    conversation: Conversation, *, failed_before: bool = False, schema: dict[str, Any] | None = None
) -> Message | Failure:
    """The answer to a request. `failed_before`: whether this prompt had its `once…` failure; `schema`: of the output."""
    if conversation.kind == "compaction":
        return say("<analysis>Scripted.</analysis>\n<summary>\nA conversation with the scripted model.\n</summary>")
    if schema is not None:
        return say(json.dumps(minimal(schema)))
    if conversation.kind == "side":
        return say("Scripted answer")
    if conversation.kind == "notification":
        return say("The background task has finished.")
    scenario = conversation.scenario
    if scenario.startswith("once"):
        failing = scenario.removeprefix("once")
        scenario = "text" if failed_before else f"err{failing}" if failing.isdecimal() else failing
    if re.fullmatch(r"err\d{3}", scenario):
        return Failure(int(scenario[3:]))
    if scenario == "drop":
        return Message((Text(("This sentence will ", "not be ", "finished."), cut_after=2),))
    if scenario in _TOOLS:
        return _with_tools(conversation)
    return Message(_blocks(scenario, conversation))


def say(text: str) -> Message:
    """A text, streamed in pieces of about three words."""
    return Message((Text(pieces_of(text)),))


def pieces_of(text: str) -> tuple[str, ...]:
    """`text` cut behind every third run of blanks; joined again it is the same."""
    return tuple(re.findall(r"(?:\s*\S+\s*){1,3}", text)) or (text,)


def minimal(schema: dict[str, Any]) -> Any:
    """The smallest value that a JSON schema of simple types takes."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            properties: dict[str, dict[str, Any]] = schema.get("properties", {})
            required: list[str] = schema.get("required", list(properties))
            return {name: minimal(properties.get(name, {})) for name in required}
        case "array":
            return []
        case "boolean":
            return False
        case "integer" | "number":
            return 0
        case _:
            return "Scripted answer"


def _blocks(scenario: str, conversation: Conversation) -> tuple[Block, ...]:
    text = conversation.directives.get("SAY", GREETING)
    match scenario:
        case "slow":
            count = conversation.number("N", 20)
            return (Text(_numbered(count), delay=conversation.number("DELAY_MS", 50) / 1000),)
        case "flood":
            return (Text(_numbered(conversation.number("N", 10_000))),)
        case "hold":
            return (Text(("Holding. ", "Released."), hold_after=1),)
        case "huge":
            return (Text(_huge(conversation.number("BYTES", 1_000_000))),)
        case "thinking":
            return Thinking(pieces_of("First I look at the question. Then I answer it.")), Text(pieces_of(text))
        case _:
            return (Text(pieces_of(text)),)


def _with_tools(conversation: Conversation) -> Message:
    calls = _TOOLS[conversation.scenario](conversation)
    if calls:
        return Message((Text((f"I will use {calls[0].name}.",)), *calls))
    if conversation.scenario == "sub":
        return say("The child has reported.")
    if conversation.scenario == "bgtask":
        return say("Started in the background.")
    told = " | ".join(result.text[:SHOWN] for result in conversation.results) or "nothing"
    return say(f"The tool said: {told}")


def _bash(conversation: Conversation) -> tuple[ToolUse, ...]:
    command = conversation.directives.get("CMD", "touch made-by-the-model")
    return _first(conversation, _command(command))


def _two_bash(conversation: Conversation) -> tuple[ToolUse, ...]:
    first = conversation.directives.get("CMD", "touch made-first")
    second = conversation.directives.get("CMD2", "touch made-second")
    return _first(conversation, _command(first), _command(second))


def _background(conversation: Conversation) -> tuple[ToolUse, ...]:
    command = conversation.directives.get("CMD", "sleep 0.2; touch made-in-background")
    return _first(conversation, _command(command, run_in_background=True))


def _read(conversation: Conversation) -> tuple[ToolUse, ...]:
    return _first(conversation, ToolUse("Read", {"file_path": conversation.directives.get("FILE", "/etc/hostname")}))


def _write(conversation: Conversation) -> tuple[ToolUse, ...]:
    path = conversation.directives.get("FILE", "written-by-the-model.txt")
    text = conversation.directives.get("TEXT", "scripted\n")
    return _first(conversation, ToolUse("Write", {"file_path": path, "content": text}))


def _question(conversation: Conversation) -> tuple[ToolUse, ...]:
    return _first(conversation, ToolUse("AskUserQuestion", {"questions": [QUESTION]}))


def _plan(conversation: Conversation) -> tuple[ToolUse, ...]:
    if conversation.plan_file and not conversation.used:
        return (ToolUse("Write", {"file_path": conversation.plan_file, "content": PLAN}),)
    if "ExitPlanMode" not in conversation.used:
        return (ToolUse("ExitPlanMode", {"plan": PLAN}),)
    return ()


def _sub(conversation: Conversation) -> tuple[ToolUse, ...]:
    prompt = conversation.directives.get("CHILD", "SAY=Everything is fine.")
    return _first(
        conversation,
        ToolUse(
            "Agent",
            {
                "description": "child job",
                "prompt": prompt,
                "subagent_type": "general-purpose",
                "run_in_background": False,
            },
        ),
    )


_TOOLS = {
    "bash": _bash,
    "twobash": _two_bash,
    "bgtask": _background,
    "read": _read,
    "write": _write,
    "question": _question,
    "plan": _plan,
    "sub": _sub,
}


def _first(conversation: Conversation, *calls: ToolUse) -> tuple[ToolUse, ...]:
    return () if conversation.used else calls


def _command(command: str, **more: Any) -> ToolUse:
    return ToolUse("Bash", {"command": command, "description": "Run a scripted command", **more})


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"piece {number} " for number in range(1, count + 1))


def _huge(size: int) -> tuple[str, ...]:
    line = "The quick brown fox jumps over the lazy dog, again and again. \n"
    text = (line * (size // len(line) + 1))[:size]
    return tuple(text[start : start + 8192] for start in range(0, size, 8192))
