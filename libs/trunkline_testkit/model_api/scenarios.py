"""From a conversation to the model's next message: every scenario, as data and pure functions.

| directive | what the model does |
|---|---|
| none, `SAY=text` | says a text in several pieces |
| `SCENARIO=slow N=20 DELAY_MS=50` | N pieces with a delay between them |
| `SCENARIO=hold` | says "Holding. ", keeps the stream open until released, says "Released." |
| `SCENARIO=flood N=10000` | N pieces at full speed |
| `SCENARIO=huge BYTES=1000000` | one text of that many bytes |
| `SCENARIO=thinking` | thinks, then speaks |
| `SCENARIO=recall` | says which prompts came before this one |
| `SCENARIO=bash CMD=…` | runs a command that needs permission |
| `SCENARIO=twobash CMD=… CMD2=…` | asks for two commands in one message |
| `SCENARIO=read FILE=…`, `SCENARIO=write FILE=… TEXT=…` | reads, writes a file |
| `SCENARIO=question` | asks the user: Which colour? Red or Blue |
| `SCENARIO=plan` | proposes a plan (writes its file first where the agent names one) |
| `SCENARIO=sub CHILD=…` | a subagent in the foreground with that prompt, which may hold directives itself |
| `SCENARIO=bgtask CMD=…` | a command in the background; when the agent reports its end, the model says so |
| `SCENARIO=tool TOOL=name INPUT={…}` | calls that tool; INPUT is JSON, or text for a tool that takes no JSON |
| `SCENARIO=leave` | a member of a team agrees to the shutdown that it was asked for |
| `SCENARIO=err500` (400, 401, 429, 529 …) | this error, every time |
| `SCENARIO=once500` | this error the first time, then a text |
| `SCENARIO=drop`, `SCENARIO=oncedrop` | the stream is cut in the middle |

Tools are called by the agent's own names (`tools.py`). `INPUT={…}` beside any of them adds to the tool's input.
After a tool the model repeats what it was told: "The tool said: …".
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from trunkline_testkit.model_api import tools
from trunkline_testkit.model_api.answer import Block, Failure, Message, Text, Thinking, ToolUse

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunkline_testkit.model_api.conversation import Conversation

GREETING = "Hello from the scripted model. This answer comes in several pieces, so that streaming shows."
OPTIONS = ({"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cool"})
PLAN = "# Plan\n1. do A\n2. do B"
_SHUTDOWN = re.compile(r"shutdown-\d+@[\w.-]+")
SHOWN = 400
"""Characters of a tool result that the model repeats."""


def reply(conversation: Conversation, *, failed_before: bool = False) -> Message | Failure:
    """The answer to a request. `failed_before`: whether this prompt had its `once…` failure."""
    if conversation.kind == "compaction":
        return say("<analysis>Scripted.</analysis>\n<summary>\nA conversation with the scripted model.\n</summary>")
    if conversation.schema is not None:
        return say(json.dumps(tools.minimal(conversation.schema)))
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
    if scenario in _CALLS:
        return _with_tools(conversation)
    return Message(_blocks(scenario, conversation))


def say(text: str) -> Message:
    """A text, streamed in pieces of about three words."""
    return Message((Text(pieces_of(text)),))


def pieces_of(text: str) -> tuple[str, ...]:
    """`text` cut behind every third run of blanks; joined again it is the same."""
    return tuple(re.findall(r"(?:\s*\S+\s*){1,3}", text)) or (text,)


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
        case "recall":
            return (Text(pieces_of(f"You said before: {' | '.join(conversation.earlier) or 'nothing'}")),)
        case "thinking":
            return Thinking(pieces_of("First I look at the question. Then I answer it.")), Text(pieces_of(text))
        case _:
            return (Text(pieces_of(text)),)


def _with_tools(conversation: Conversation) -> Message:
    calls = _CALLS[conversation.scenario](conversation)
    if calls:
        more = conversation.directives.get("INPUT")
        calls = calls if more is None else tuple(_with_input(call, more) for call in calls)
        return Message((Text((f"I will use {calls[0].name}.",)), *calls))
    if conversation.scenario == "sub":
        return say("The child has reported.")
    if conversation.scenario == "bgtask":
        return say("Started in the background.")
    told = " | ".join(result.text[:SHOWN] for result in conversation.results) or "nothing"
    return say(f"The tool said: {told}")


def _with_input(call: ToolUse, more: str) -> ToolUse:
    try:
        added = json.loads(more)
    except ValueError:
        added = more
    if isinstance(added, dict) and isinstance(call.input, dict):
        return replace(call, input=call.input | cast("dict[str, Any]", added))
    return replace(call, input=more)


def _bash(conversation: Conversation) -> tuple[ToolUse, ...]:
    return _first(conversation, tools.shell(conversation.directives.get("CMD", "touch made-by-the-model")))


def _two_bash(conversation: Conversation) -> tuple[ToolUse, ...]:
    first = conversation.directives.get("CMD", "touch made-first")
    second = conversation.directives.get("CMD2", "touch made-second")
    return _first(conversation, tools.shell(first), tools.shell(second))


def _background(conversation: Conversation) -> tuple[ToolUse, ...]:
    command = conversation.directives.get("CMD", "sleep 0.2; touch made-in-background")
    return _first(conversation, tools.shell(command, background=True))


def _read(conversation: Conversation) -> tuple[ToolUse, ...]:
    return _first(conversation, tools.read(conversation.directives.get("FILE", "/etc/hostname")))


def _write(conversation: Conversation) -> tuple[ToolUse, ...]:
    path = conversation.directives.get("FILE", "written-by-the-model.txt")
    return _first(conversation, tools.write(path, conversation.directives.get("TEXT", "scripted\n")))


def _question(conversation: Conversation) -> tuple[ToolUse, ...]:
    return _first(conversation, tools.question("Which colour?", "Colour", OPTIONS))


def _plan(conversation: Conversation) -> tuple[ToolUse, ...]:
    if conversation.plan_file and not conversation.used:
        return _first(conversation, tools.write(conversation.plan_file, PLAN))
    proposal = tools.call(tools.plan(PLAN), conversation.tools)
    return () if proposal.name in conversation.used else (proposal,)


def _sub(conversation: Conversation) -> tuple[ToolUse, ...]:
    return _first(conversation, tools.delegate(conversation.directives.get("CHILD", "SAY=Everything is fine.")))


def _leave(conversation: Conversation) -> tuple[ToolUse, ...]:
    found = _SHUTDOWN.search(conversation.prompt)
    return _first(conversation, tools.agreement(found[0])) if found else ()


def _tool(conversation: Conversation) -> tuple[ToolUse, ...]:
    return _first(conversation, tools.Deed((conversation.directives.get("TOOL", "none"),), {}))


_CALLS: dict[str, Callable[[Conversation], tuple[ToolUse, ...]]] = {
    "bash": _bash,
    "twobash": _two_bash,
    "bgtask": _background,
    "read": _read,
    "write": _write,
    "question": _question,
    "plan": _plan,
    "sub": _sub,
    "leave": _leave,
    "tool": _tool,
}


def _first(conversation: Conversation, *deeds: tools.Deed) -> tuple[ToolUse, ...]:
    return () if conversation.used else tuple(tools.call(deed, conversation.tools) for deed in deeds)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"piece {number} " for number in range(1, count + 1))


def _huge(size: int) -> tuple[str, ...]:
    # No line like another: agents take a model that repeats itself for one that is caught in a loop.
    line = "{0:07} The quick brown fox jumps {0:07}\n"
    text = "".join(line.format(number) for number in range(size // len(line.format(0)) + 1))[:size]
    return tuple(text[start : start + 8192] for start in range(0, size, 8192))
