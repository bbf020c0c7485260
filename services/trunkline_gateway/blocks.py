"""The text of blocks that are still being written: deltas joined, dropped once the finished item is in the log. Pure.

A client that attaches or resumes gets each open block as one whole-block message; the deltas of finished items are
never replayed.
"""

from collections import OrderedDict
from typing import Final

import msgspec
from msgspec.structs import replace

from trunkline_wire import Event
from trunkline_wire.session import SessionClaimed, SessionClosed, SessionErased
from trunkline_wire.turn import (
    DeltaKind,
    MessageAssistant,
    MessageDelta,
    TerminalClosed,
    TerminalScreen,
    ToolCompleted,
    ToolProgress,
    TurnCompleted,
)

MAX_FINISHED: Final = 5_000
"""Finished items remembered, so that their late deltas are known as such."""

MAX_OPEN: Final = 1_000

_WHOLE: Final = -1


class OpenBlock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a snapshot says of an open block. `at` is above 0 where only the end of the text is known."""

    session: str
    item: str
    block: int
    kind: DeltaKind
    text: str
    at: int = 0
    turn: str | None = None
    lane: str | None = None


class _Writing:
    """A block under way: pieces from the offset `start`, in code points."""

    __slots__ = ("event", "length", "pieces", "start")

    def __init__(self, event: Event, start: int, text: str) -> None:
        self.event = event
        self.start = start
        self.pieces = [text]
        self.length = len(text)

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def since(self, at: int) -> Event:
        """What is known from `at` on, as one delta."""
        at = max(at, self.start)
        return replace(self.event, data=replace(_delta(self.event), at=at, text=self.text[at - self.start :]))

    def apply(self, event: Event, at: int, text: str) -> None:
        self.event = event
        end = self.start + self.length
        if at == end:
            self.pieces.append(text)
            self.length += len(text)
        elif at > end or at < self.start or (at == 0 and len(text) >= self.length):
            # A hole, or the whole block so far: what is known starts anew.
            if at < self.start and at + len(text) < end:
                return
            self.start, self.pieces, self.length = at, [text], len(text)
        else:
            known, offset = self.text, at - self.start
            merged = known[:offset] + text + known[offset + len(text) :]
            self.pieces, self.length = [merged], len(merged)


class Blocks:
    """The open blocks of one session or of many. Feed it every fact and every delta; the order between the two streams
    does not matter.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, str, int], _Writing] = {}
        self._latest: dict[tuple[str, str, str], Event] = {}
        self._finished: OrderedDict[tuple[str, str, int], None] = OrderedDict()
        self._epochs: dict[str, int] = {}

    def delta(self, event: Event) -> bool:
        """Apply a delta. False when it is of a finished item or of an earlier owner: then nobody wants it."""
        if event.epoch is not None and event.epoch < self._epochs.get(event.session, 0):
            return False
        data, session, item = event.data, event.session, event.item or ""
        match data:
            case MessageDelta():
                if self._is_finished(session, item, data.block):
                    return False
                key = (session, item, data.block)
                writing = self._open.get(key)
                if writing is not None:
                    writing.apply(event, data.at, data.text)
                else:
                    while len(self._open) >= MAX_OPEN:
                        del self._open[next(iter(self._open))]
                    self._open[key] = _Writing(event, data.at, data.text)
                return True
            case ToolProgress() | TerminalScreen():
                if self._is_finished(session, item, 0):
                    return False
                while len(self._latest) >= MAX_OPEN:
                    del self._latest[next(iter(self._latest))]
                self._latest[session, item, event.type] = event
                return True
            case _:
                return True

    def fact(self, event: Event) -> None:
        """Note what a fact finishes."""
        session, item = event.session, event.item
        if event.epoch is not None and event.epoch > self._epochs.get(session, 0):
            self._epochs[session] = event.epoch
        match event.data:
            case MessageAssistant(block=None) | ToolCompleted() if item is not None:
                self._finish(session, item, _WHOLE)
            case MessageAssistant(block=first, content=content) if item is not None and first is not None:
                for block in range(first, first + max(1, len(content))):
                    self._finish(session, item, block)
            case TurnCompleted() if event.lane is None:
                self._finish_all(session)
            case SessionClaimed() | SessionClosed() | SessionErased() | TerminalClosed():
                self._finish_all(session)
            case _:
                pass

    def open(self, session: str | None = None) -> list[OpenBlock]:
        """The open blocks with their text so far, in the order in which they began."""
        return [
            OpenBlock(
                session=key[0],
                item=key[1],
                block=key[2],
                kind=_delta(writing.event).kind,
                text=writing.text,
                at=writing.start,
                turn=writing.event.turn,
                lane=writing.event.lane,
            )
            for key, writing in self._open.items()
            if session is None or key[0] == session
        ]

    def latest(self) -> list[Event]:
        """The latest progress of each open tool and terminal."""
        return list(self._latest.values())

    def whole(self) -> list[Event]:
        """One whole-block delta for each open block."""
        return [writing.since(0) for writing in self._open.values()]

    def since(self, key: tuple[str, str, int], at: int) -> Event | None:
        """One delta of what is known of the block from the offset `at` on; None once it is finished."""
        writing = self._open.get(key)
        return None if writing is None else writing.since(at)

    def last(self, key: tuple[str, str, str]) -> Event | None:
        """The latest progress of a tool or a terminal by (session, item, type); None once it has ended."""
        return self._latest.get(key)

    def _is_finished(self, session: str, item: str, block: int) -> bool:
        return (session, item, block) in self._finished or (session, item, _WHOLE) in self._finished

    def _finish(self, session: str, item: str, block: int) -> None:
        self._finished[session, item, block] = None
        while len(self._finished) > MAX_FINISHED:
            self._finished.popitem(last=False)
        if block != _WHOLE:
            self._open.pop((session, item, block), None)
            return
        for key in [key for key in self._open if key[:2] == (session, item)]:
            del self._open[key]
        for latest in [key for key in self._latest if key[:2] == (session, item)]:
            del self._latest[latest]

    def _finish_all(self, session: str) -> None:
        for _, item, block in [key for key in self._open if key[0] == session]:
            self._finish(session, item, block)
        for latest in [key for key in self._latest if key[0] == session]:
            del self._latest[latest]


def _delta(event: Event) -> MessageDelta:
    assert isinstance(event.data, MessageDelta)
    return event.data
