"""What a request to a model API asks: the prompt that counts, its directives, and how far its turn has come.

Pure, and in the words of no API: each API's module says what was said (`Said`) and what tools are on offer (`Tool`), and
`conversation_of` finds the turn in it. Anything that does not fit is ignored rather than refused.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS = ("SCENARIO", "FILE", "N", "DELAY_MS", "BYTES", "TOOL")
"""Directives whose value is one word."""
PHRASES = ("SAY", "CMD", "CMD2", "TEXT", "CHILD", "INPUT")
"""Directives whose value runs to the next directive or the end of the line."""

_DIRECTIVE = re.compile(rf"(?<!\S)({'|'.join(WORDS + PHRASES)})=")
_NOT_A_PROMPT = (
    "<system-reminder>",
    "[Request interrupted by user",
    "<environment_context>",
    "<environment_details>",
    "<session_context>",
)
_COMPACTION = "create a detailed summary of"
_NOTIFICATION = "<task-notification>"
_TITLE = re.compile(r"\btitle\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """One tool result that the model was told."""

    id: str
    text: str
    is_error: bool
    """Always false where the API has no word for it."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer. `schema` is the JSON schema of its input; None for a tool whose input is free text."""

    name: str
    schema: dict[str, Any] | None = field(default_factory=dict[str, Any])
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the conversation so far."""

    role: Literal["user", "assistant"]
    texts: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    """Names of the tools that the model called in it."""
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """The state of the turn that a request continues."""

    prompt: str
    directives: dict[str, str] = field(default_factory=dict[str, str])
    kind: str = "prompt"
    """prompt, notification (a background task ended), compaction, or side (a title, a summary: no tools offered)."""
    earlier: tuple[str, ...] = ()
    """The prompts before it, in order."""
    position: int = 0
    """Index of the prompt's message: tells two equal prompts of one conversation apart."""
    length: int = 0
    """Messages so far."""
    used: tuple[str, ...] = ()
    """Names of the tools called since the prompt, in order."""
    results: tuple[ToolResult, ...] = ()
    """Tool results behind the model's last message."""
    plan_file: str | None = None
    """The file that the agent wants a plan in, if it said so."""
    tools: tuple[Tool, ...] = ()
    schema: dict[str, Any] | None = None
    """The JSON schema that the answer must follow, which only side requests have."""
    model: str = "scripted"
    system: str = ""

    @property
    def scenario(self) -> str:
        return self.directives.get("SCENARIO", "text")

    def number(self, key: str, default: int) -> int:
        """A directive as a whole number; `default` where it is missing or none."""
        value = self.directives.get(key, "")
        return int(value) if value.isdecimal() else default


def directives_of(prompt: str) -> dict[str, str]:
    """`KEY=value` pairs of a prompt.

    A value is one word or a phrase, by its key; one that starts with `"` is a JSON string and may hold anything. Of a
    repeated key the first counts.
    """
    found: dict[str, str] = {}
    position = 0
    while match := _DIRECTIVE.search(prompt, position):
        key, start = match[1], match.end()
        if prompt.startswith('"', start):
            try:
                value, position = json.JSONDecoder().raw_decode(prompt, start)
            except ValueError:
                pass
            else:
                found.setdefault(key, str(value))
                continue
        if key in WORDS:
            word = re.compile(r"\S*").match(prompt, start)
            position = word.end() if word else start
        else:
            following = _DIRECTIVE.search(prompt, start)
            line_end = prompt.find("\n", start)
            ends = [following.start() if following else -1, line_end, len(prompt)]
            position = min(end for end in ends if end >= start)
        found.setdefault(key, prompt[start:position].strip())
    return found


def conversation_of(
    said: Sequence[Said],
    tools: tuple[Tool, ...] = (),
    *,
    model: object = None,
    system: str = "",
    schema: dict[str, Any] | None = None,
    plan_file: str | None = None,
) -> Conversation:
    """The turn that the last message continues."""
    position, prompt = _last_prompt(said)
    directives = directives_of(prompt)
    kind = "prompt"
    if _COMPACTION in prompt:
        kind = "compaction"
    elif _NOTIFICATION in prompt:
        kind = "notification"
    elif not tools and (not directives or _TITLE.search(f"{system}\n{prompt}")):
        kind = "side"
    return Conversation(
        prompt=prompt,
        directives=directives if kind == "prompt" else {},
        kind=kind,
        earlier=tuple(filter(None, map(_prompt_of, said[:position]))),
        position=position,
        length=len(said),
        used=tuple(name for message in said[position + 1 :] for name in message.calls),
        results=_last_results(said),
        plan_file=plan_file,
        tools=tools,
        schema=schema,
        model=str(model or "scripted"),
        system=system,
    )


def dicts(value: Any) -> list[dict[str, Any]]:
    """Those of a list that are objects; [] for what is no list."""
    if not isinstance(value, list):
        return []
    return [cast("dict[str, Any]", item) for item in cast("list[Any]", value) if isinstance(item, dict)]


def parts_of(content: Any) -> list[dict[str, Any]]:
    """A message's content as parts; plain text is one text part."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else dicts(content)


def texts_of(content: Any, *types: str) -> tuple[str, ...]:
    """The texts of those parts whose type is one of `types` (`text` if none is given)."""
    return tuple(str(part.get("text", "")) for part in parts_of(content) if part.get("type") in (types or ("text",)))


def _last_prompt(said: Sequence[Said]) -> tuple[int, str]:
    for index in range(len(said) - 1, -1, -1):
        prompt = _prompt_of(said[index])
        if prompt:
            return index, prompt
    return 0, ""


def _prompt_of(message: Said) -> str:
    """What counts as a prompt in a message; "" for remarks of the agent, results, and what the model said."""
    if message.role != "user":
        return ""
    texts = [text.strip() for text in reversed(message.texts)]
    for text in texts:
        if text and not text.startswith(_NOT_A_PROMPT):
            return text
    # The agent reports the end of a background task as a reminder. Beside a tool result it is only a remark.
    reports = [text for text in texts if _NOTIFICATION in text]
    return reports[0] if reports and not message.results else ""


def _last_results(said: Sequence[Said]) -> tuple[ToolResult, ...]:
    """Some APIs tell each result in a message of its own: all that stand at the end count."""
    found: list[ToolResult] = []
    for message in reversed(said):
        if message.role != "user" or (not message.results and _prompt_of(message)):
            break
        found[:0] = message.results
    return tuple(found)
