"""What a scripted model can say, in the words of no API: a message of blocks, or a failure. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
    input: dict[str, Any] | str
    """Free text for a tool that takes no JSON."""
    namespace: str | None = None
    """Where the tool was offered inside of one."""


Block = Text | Thinking | ToolUse


@dataclass(frozen=True, slots=True)
class Message:
    """What the model says next."""

    blocks: tuple[Block, ...]

    @property
    def calls_tools(self) -> bool:
        return any(isinstance(block, ToolUse) for block in self.blocks)

    @property
    def tokens(self) -> int:
        """What it costs, by a rule of our own: one for each piece and call."""
        return sum(1 if isinstance(block, ToolUse) else len(block.pieces) for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error instead of a message."""

    status: int

    @property
    def text(self) -> str:
        return f"Scripted error {self.status}."
