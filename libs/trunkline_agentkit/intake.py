"""From what an adapter says of one native message to the log: numbering, turns, what is kept of the message itself.

One Intake serves one agent process. It asks no clock and does no I/O but write.
"""

import hashlib
from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from trunkline_agentkit.manifest import Manifest
from trunkline_agentkit.meters import AgentMeter
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.protocol import Context, Fact, ItemEnd, Native, Piece, Progress
from trunkline_agentkit.spans import TurnSpans
from trunkline_agentkit.survivor import Survivor
from trunkline_wire import Data, Event, Source
from trunkline_wire.session import SessionInitialized
from trunkline_wire.turn import ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import NativeMessage


def turn_id(session: str, incarnation: str, number: int) -> str:
    """The id of an agent process's turn `number`."""
    digest = hashlib.sha256(f"{session}\0{incarnation}\0{number}".encode()).hexdigest()
    return f"tur_{digest[:32]}"


class Lines:
    """The count of native messages that yielded an event, over all agents of one epoch."""

    def __init__(self) -> None:
        self.count = 0

    def next(self) -> int:
        self.count += 1
        return self.count


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Who started a turn: the command, its source, which comes back on every event of the turn, and the trace it belongs to."""

    command: str | None = None
    source: Source | None = None
    headers: Mapping[str, str] | None = None


class Intake:
    """`cause_of` says which command a beginning turn belongs to, given what the adapter knows of it; `on_event` sees all.

    With `survivor` it goes on with what the agent had open.
    """

    def __init__(
        self,
        pen: Pen,
        context: Context,
        manifest: Manifest,
        lines: Lines,
        *,
        cause_of: Callable[[str | None, TurnStarted], Cause],
        on_event: Callable[[Event], None],
        spans: TurnSpans | None = None,
        meter: AgentMeter | None = None,
        survivor: Survivor | None = None,
    ) -> None:
        self._pen = pen
        self._context = context
        self._manifest = manifest
        self._lines = lines
        self._cause_of = cause_of
        self._on_event = on_event
        self._spans = spans or TurnSpans(manifest.name, context.session)
        self._meter = meter or AgentMeter(manifest.name, pen.memory.session)
        self._turns = 0
        self.turn: str | None = None
        self._source: Source | None = None
        if survivor is not None:
            # Its own count may be lower: what matters is that no number comes again.
            self._turns = survivor.session.turns
            self.turn = survivor.session.turn.id if survivor.session.turn is not None else None
            self._source = survivor.source

    def take(self, native: Native) -> None:
        """Writes what one native message means. One that means nothing is kept as a known native message."""
        writer = self._pen.writer
        if native.ours:
            for one in native.out:
                if isinstance(one, Fact):
                    self._fact(one, None, None)
            return
        out = native.out or (Fact(data=NativeMessage(known=True, kind=native.kind)),)
        parts = sum(isinstance(one, Fact) for one in out)
        line = self._lines.next() if parts else 0
        part = 0
        for one in out:
            match one:
                case Fact():
                    part += 1
                    self._fact(one, (line, part, parts), native.raw if part == 1 else None)
                case Piece(text=""):
                    pass
                case Piece():
                    self._meter.spoke(self._spans.exemplar)
                    writer.piece(one.item, one.block, one.kind, one.text, turn=self.turn, lane=one.lane)
                case Progress():
                    writer.progress(one.data, item=one.item, turn=self.turn, lane=one.lane)
                case ItemEnd():
                    writer.end_item(one.item)

    def _fact(self, fact: Fact, origin: tuple[int, int, int] | None, native: bytes | None) -> None:
        data, cause, source = fact.data, fact.cause, fact.source or self._source
        ends = False
        match data:
            case TurnStarted() if fact.lane is None:
                data, cause, source = self._begin(fact, data)
            case TurnCompleted() if fact.lane is None:
                self._close_tools()
                ends = True
            case SessionInitialized(incarnation=None):
                data = replace(data, incarnation=self._context.incarnation)
            case _:
                pass
        event = self._pen.write(
            data,
            turn=self.turn,
            item=fact.item,
            lane=fact.lane,
            cause=cause,
            source=source,
            origin=origin,
            native=native if self._keeps(data) else None,
            headers=self._spans.headers,
        )
        # Before the span ends that leads to the trace.
        self._meter.take(event, self._pen.memory.session, self._spans.exemplar)
        self._trace(event)
        if ends:
            self.turn, self._source = None, None
        self._on_event(event)

    def _begin(self, fact: Fact, data: TurnStarted) -> tuple[TurnStarted, str | None, Source | None]:
        self._turns += 1
        self.turn = turn_id(self._context.session, self._context.incarnation, self._turns)
        cause = self._cause_of(fact.cause, data)
        self._source = fact.source or cause.source
        self._spans.begin(cause.headers, self._pen.memory.session.model)
        return replace(data, number=self._pen.memory.session.turns + 1), cause.command, self._source

    def _trace(self, event: Event) -> None:
        match event.data:
            case ToolStarted() as data if event.item is not None:
                self._spans.begin_tool(event.item, data)
            case ToolCompleted() as data if event.item is not None:
                self._spans.end_tool(event.item, data)
            case TurnCompleted() as data if event.lane is None:
                self._spans.end(data)
            case _:
                pass

    def _close_tools(self) -> None:
        """Some agents never say how a tool ended that an interruption cut off."""
        for item, tool in list(self._pen.memory.session.open_tools.items()):
            if tool.lane is None:
                data = ToolCompleted(status="cancelled", reason="the turn ended")
                event = self._pen.write(data, turn=tool.turn or self.turn, item=item, source=self._source)
                self._meter.take(event, self._pen.memory.session)
                self._on_event(event)

    def _keeps(self, data: Data) -> bool:
        if isinstance(data, NativeMessage) or self._context.keep_native == "all":
            return True
        return self._context.keep_native == "lossy" and data.TYPE not in self._manifest.lossless
