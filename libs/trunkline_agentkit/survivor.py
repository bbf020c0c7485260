"""What the log tells of an agent that runs on though its worker died: what the next owner takes up. Pure.

A server that nobody of ours has started outlives every worker. The claim then names its incarnation, and what it had open
stays open: its turn, its tools, its asks.
"""

from collections.abc import Iterable, Mapping

import msgspec

from trunkline_agentkit.memory import Memory
from trunkline_fold.asks import AskRecord, AsksState
from trunkline_fold.session import SessionState
from trunkline_wire import Event, Source
from trunkline_wire.session import SessionClaimed, SessionStatus
from trunkline_wire.turn import MessageAssistant, MessageSystem, MessageUser, ToolCompleted, ToolStarted, TurnStarted
from trunkline_wire.work import FileChanged


class OpenCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call without an end, as it was told."""

    started: ToolStarted
    lane: str | None = None


class Survivor(msgspec.Struct, frozen=True, kw_only=True):
    """`session` is the folded state; everything else is by the ids of the log, which are hashes of the agent's own."""

    session: SessionState
    calls: Mapping[str, OpenCall]
    """Open tool calls by item."""
    told: frozenset[str]
    """Items of messages that were told, and of calls that were told to the end."""
    blocks: frozenset[tuple[str, int]] = frozenset()
    """(item, block) of what the agent has said to the end."""
    files: frozenset[tuple[str, str]] = frozenset()
    """(item, path) of changed files that were told."""
    before: frozenset[str] = frozenset()
    """Of `told`, what was told before the open turn began; all of it where none is open."""
    asks: Mapping[str, AskRecord]
    """What this incarnation has asked: open, or ended and perhaps not delivered yet."""
    prompts: tuple[str, ...]
    """Commands whose messages the agent was given, in order; `session.pending` are those that no turn has begun for."""
    source: Source | None = None
    """Of the open turn."""
    natives: int = 0
    """How many of the agent's messages the log has, since it was started; of the last one the first `parts` parts."""
    parts: int = 0
    behind: tuple[tuple[str, str | None], ...] = ()
    """Type and item of what stands behind them without an origin."""
    steered: frozenset[str] = frozenset()
    """Commands whose messages went into a running turn."""


def incarnation_of(session: SessionState) -> str | None:
    """The incarnation of the agent that ran when the log broke off; None where the log knows of none, or of its end."""
    ended = not session.initialized or session.closed is not None or session.condition in {"starting", "stopped"}
    return None if ended else session.incarnation


def survivor_of(memory: Memory, asks: AsksState, events: Iterable[Event]) -> Survivor:
    """From the folds of a log, and the events they were folded from."""
    session = memory.session
    calls: dict[str, OpenCall] = {}
    told: set[str] = set()
    before: set[str] = set()
    blocks: set[tuple[str, int]] = set()
    files: set[tuple[str, str]] = set()
    steered: set[str] = set()
    source: Source | None = None
    heard = _Heard()
    for event in events:
        heard.take(event)
        match event.data:
            case TurnStarted() if event.lane is None:
                source, before = event.source, {*told}
            case ToolStarted() as started if event.item is not None:
                calls[event.item] = OpenCall(started=started, lane=event.lane)
            case ToolCompleted() if event.item is not None:
                calls.pop(event.item, None)
                told.add(event.item)
            case MessageAssistant(block=block) if event.item is not None:
                told.add(event.item)
                blocks.add((event.item, block or 0))
            case FileChanged(path=path) if event.item is not None:
                files.add((event.item, path))
            case MessageSystem() | MessageUser() if event.item is not None:
                told.add(event.item)
                if isinstance(event.data, MessageUser) and event.data.delivery == "steered" and event.data.command:
                    steered.add(event.data.command)
            case _:
                pass
    return Survivor(
        session=session,
        calls={item: call for item, call in calls.items() if item in session.open_tools},
        told=frozenset(told),
        blocks=frozenset(blocks),
        files=frozenset(files),
        before=frozenset(told if session.turn is None else before),
        asks={id: ask for id, ask in asks.asks.items() if ask.incarnation == session.incarnation},
        prompts=tuple(memory.handed_over),
        source=source,
        natives=heard.natives,
        parts=heard.parts,
        behind=tuple(heard.behind),
        steered=frozenset(steered),
    )


class _Heard:
    """Counts an agent's messages over the epochs of its owners."""

    def __init__(self) -> None:
        self.natives = 0
        self.parts = 0
        self.behind: list[tuple[str, str | None]] = []
        self._before = 0
        """Parts of the last message that a former owner has told."""
        self._of = 0

    def take(self, event: Event) -> None:
        if isinstance(event.data, SessionStatus) and event.data.status == "starting":
            self.natives = self.parts = self._before = self._of = 0
            self.behind.clear()
        elif isinstance(event.data, SessionClaimed):
            self._before = self.parts if self.parts < self._of else 0
        elif event.origin is None:
            self.behind.append((event.type, event.item))
        else:
            _, part, parts = event.origin
            if part == 1 and not self._before:
                self.natives += 1
            if part == 1:
                self._of = self._before + parts
            self.parts = self._before + part
            if self.parts >= self._of:
                self._before = 0
            self.behind.clear()
