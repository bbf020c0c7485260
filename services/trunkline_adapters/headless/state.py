"""What the translator remembers between lines, and the ids it gives."""

from dataclasses import dataclass, field
from typing import Literal

from trunkline_agentkit.protocol import Context
from trunkline_wire.blocks import TextBlock, ThinkingBlock
from trunkline_wire.ids import item_id
from trunkline_wire.session import Capabilities

BlockKind = Literal["text", "thinking"]


@dataclass
class Segment:
    """A message that is being told: `count` blocks are finished, `kind` and `parts` are the one that is being written."""

    item: str
    count: int = 0
    kind: BlockKind | None = None
    parts: list[str] = field(default_factory=list[str])
    joined: set[str] = field(default_factory=set[str])
    """Blocks that were told from their pieces, before the agent gave them whole."""

    def close(self) -> TextBlock | ThinkingBlock | None:
        """The block that was being written, as far as it came."""
        said, kind = "".join(self.parts), self.kind
        self.kind, self.parts = None, []
        if not said:
            return None
        return ThinkingBlock(text=said) if kind == "thinking" else TextBlock(text=said)


@dataclass
class Run:
    """One process of the agent: one turn. `number` makes ids unique that the agent gives anew in each."""

    number: int
    command: str | None = None
    begun: bool = False
    ended: bool = False
    interrupted: bool = False
    anew: bool = False
    """The agent knows nothing of the turns before."""
    segments: dict[str | None, Segment] = field(default_factory=dict["str | None", Segment])
    """By lane: the native id of the call whose subagent speaks, None for the agent itself."""
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Finished blocks by item."""
    messages: int = 0
    tools: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    """Native ids of the calls without an end, each with its lane."""
    retrying: bool = False
    failure: str | None = None
    """The last error that the program has told without ending the turn."""
    spoke: bool = False


@dataclass
class State:
    context: Context
    capabilities: Capabilities
    run: Run = field(default_factory=lambda: Run(number=0, ended=True))
    runs: int = 0
    turns: int = 0
    initialized: bool = False
    native_session: str | None = None
    model: str | None = None
    mode: str | None = None

    def item(self, native: str) -> str:
        """The item of something that the agent names so in the present run."""
        return item_id(self.context.session, self.context.incarnation, f"{self.run.number}:{native}")

    def lane(self, native: str | None) -> str | None:
        return None if native is None else self.item(native)
