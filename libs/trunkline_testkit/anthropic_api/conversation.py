"""What a request to the Messages API asks: the prompt that counts, its directives, and how far its turn has come.

Pure. The shapes are those of `POST /v1/messages`; anything that does not fit is ignored rather than refused.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, cast

WORDS = ("SCENARIO", "FILE", "N", "DELAY_MS", "BYTES")
"""Directives whose value is one word."""
PHRASES = ("SAY", "CMD", "CMD2", "TEXT", "CHILD")
"""Directives whose value runs to the next directive or the end of the line."""

_DIRECTIVE = re.compile(rf"(?<!\S)({'|'.join(WORDS + PHRASES)})=")
_NOT_A_PROMPT = ("<system-reminder>", "[Request interrupted by user")
_COMPACTION = "create a detailed summary of"
_NOTIFICATION = "<task-notification>"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """One tool result that the model was told."""

    id: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Conversation:
    """The state of the turn that a request continues."""

    prompt: str
    directives: dict[str, str] = field(default_factory=dict[str, str])
    kind: str = "prompt"
    """prompt, notification (a background task ended), compaction, or side (a title, a summary: no tools offered)."""
    position: int = 0
    """Index of the prompt's message: tells two equal prompts of one conversation apart."""
    used: tuple[str, ...] = ()
    """Names of the tools called since the prompt, in order."""
    results: tuple[ToolResult, ...] = ()
    """Tool results of the last message."""
    plan_file: str | None = None
    """The file that the agent wants a plan in, if it said so."""

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


def read(body: dict[str, Any]) -> Conversation:
    """The conversation in a request body."""
    messages = [message for message in _dicts(body.get("messages")) if message.get("role") in {"user", "assistant"}]
    position, prompt = _last_prompt(messages)
    kind = "prompt"
    if _COMPACTION in prompt:
        kind = "compaction"
    elif _NOTIFICATION in prompt:
        kind = "notification"
    elif not body.get("tools") and not directives_of(prompt):
        kind = "side"
    return Conversation(
        prompt=prompt,
        directives=directives_of(prompt) if kind == "prompt" else {},
        kind=kind,
        position=position,
        used=tuple(
            str(block.get("name"))
            for message in messages[position + 1 :]
            for block in blocks_of(message)
            if block.get("type") == "tool_use"
        ),
        results=results_of(messages[-1]) if messages else (),
        plan_file=_plan_file(body),
    )


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """A message's content as blocks; plain text is one text block."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else _dicts(content)


def results_of(message: dict[str, Any]) -> tuple[ToolResult, ...]:
    """The tool results in one message."""
    return tuple(
        ToolResult(str(block.get("tool_use_id")), text_of(block), bool(block.get("is_error")))
        for block in blocks_of(message)
        if block.get("type") == "tool_result"
    )


def text_of(holder: dict[str, Any]) -> str:
    """The text of something with `content`: a string, or blocks of which only text counts."""
    return "\n".join(str(block.get("text", "")) for block in blocks_of(holder) if block.get("type") == "text")


def _last_prompt(messages: list[dict[str, Any]]) -> tuple[int, str]:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") != "user":
            continue
        blocks = blocks_of(messages[index])
        texts = [str(block.get("text", "")).strip() for block in reversed(blocks) if block.get("type") == "text"]
        for text in texts:
            if text and not text.startswith(_NOT_A_PROMPT):
                return index, text
        # The agent reports the end of a background task as a reminder. Beside a tool result it is only a remark.
        reports = [text for text in texts if _NOTIFICATION in text]
        if reports and not results_of(messages[index]):
            return index, reports[0]
    return 0, ""


def _plan_file(body: dict[str, Any]) -> str | None:
    if "ExitPlanMode" not in json.dumps(body.get("tools", "")):
        return None
    match = re.search(
        r"/[^\s\"'`\\]+/\.claude/plans/[\w.-]+\.md", json.dumps([body.get("messages"), body.get("system")])
    )
    return match[0] if match else None


def _dicts(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [cast("dict[str, Any]", item) for item in cast("list[Any]", value) if isinstance(item, dict)]
