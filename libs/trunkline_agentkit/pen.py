"""The owner's pen: what it writes goes to the log and into its memory in one step, so that the two never differ."""

from collections.abc import Mapping
from typing import Any, Protocol

from trunkline_agentkit.endings import Ending
from trunkline_agentkit.memory import Memory
from trunkline_wire import Data, Event
from trunkline_wire.turn import DeltaKind, TerminalScreen, ToolProgress


class Writer(Protocol):
    """What the kit needs of a `trunkline_bus.writer.SessionWriter`."""

    def append(
        self,
        data: Data,
        *,
        turn: str | None = None,
        item: str | None = None,
        lane: str | None = None,
        cause: str | None = None,
        source: Any = None,
        origin: tuple[int, int, int] | None = None,
        native: bytes | None = None,
        time: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Event: ...

    def piece(
        self, item: str, block: int, kind: DeltaKind, text: str, *, turn: str | None = None, lane: str | None = None
    ) -> None: ...

    def progress(
        self,
        data: ToolProgress | TerminalScreen,
        *,
        item: str | None = None,
        turn: str | None = None,
        lane: str | None = None,
    ) -> None: ...

    def end_item(self, item: str) -> None: ...


class Pen:
    def __init__(self, writer: Writer, memory: Memory) -> None:
        self.writer = writer
        self.memory = memory

    def write(self, data: Data, **envelope: Any) -> Event:
        """Appends an event; `envelope` as for the writer. It is in the log after the writer's next `flush`."""
        event = self.writer.append(data, **envelope)
        self.memory.fold(event)
        return event

    def end(self, ending: Ending) -> Event:
        """Appends the end of something that an agent left open."""
        return self.write(ending.data, turn=ending.turn, item=ending.item, lane=ending.lane, cause=ending.cause)
