"""Streaming text between two facts: what is sent when, so that a reader can always tell what it lacks. Pure, no clock.

A block's pieces are merged until they are due; each says where it begins (`at`, in Unicode code points), so applying
one twice does nothing and a hole shows. From time to time, and after any doubt, the piece is the whole block so far.
"""

from typing import Final

import msgspec

from trunkline_wire.turn import DeltaKind, MessageDelta, TerminalScreen, ToolProgress

INTERVAL_S: Final = 0.05
"""At most 20 messages a second for a session."""
WHOLE_EVERY_S: Final = 2.0
OFTEN_WHOLE: Final = 64 * 1024
"""Code points up to which a block is repeated every WHOLE_EVERY_S; a longer one only when it has grown by half."""
NEVER_WHOLE: Final = 512 * 1024
"""Code points above which only the block's end is repeated."""
PIECE: Final = 64 * 1024
"""Code points in a message that is not the whole block: far below the message limit however they are escaped."""
LIMIT_BYTES: Final = 448 * 1024
"""A whole block above this many bytes of UTF-8, or of JSON escapes, is sent as its end."""

Passing = ToolProgress | TerminalScreen
"""Payloads of which only the latest counts."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A message to send: its envelope's ids and its payload; `whole` says that it repeats the block from its start."""

    item: str | None
    turn: str | None
    lane: str | None
    data: MessageDelta | Passing
    whole: bool = False


class _Block:
    """The text of one open block; `start` code points at its front were forgotten."""

    def __init__(self, number: int, kind: DeltaKind, turn: str | None, lane: str | None) -> None:
        self.number, self.turn, self.lane = number, turn, lane
        self.kind: DeltaKind = kind
        self.told: list[str] = []
        self.fresh: list[str] = []
        """What was sent at least once, and what was not."""
        self.start = 0
        self.sent = 0
        self.length = 0
        self.repeated = 0
        """Length at which it was last repeated."""
        self.repeated_at: float | None = None
        self.doubt = False

    def add(self, text: str) -> None:
        self.fresh.append(text)
        self.length += len(text)

    def next(self, now: float) -> tuple[int, str]:
        """The next message: where it begins, its text."""
        if self._repeats(now):
            self.doubt, self.repeated, self.repeated_at = False, self.length, now
            if self.length <= NEVER_WHOLE:
                whole = "".join((*self.told, *self.fresh))
                if len(whole) <= PIECE or _bytes(whole) <= LIMIT_BYTES:
                    self.told, self.fresh, self.sent = [whole], [], self.length
                    return 0, whole
            return self._end()
        text = "".join(self.fresh)
        self.fresh = [text[PIECE:]] if len(text) > PIECE else []
        at, text = self.sent, text[:PIECE]
        self.told.append(text)
        self.sent += len(text)
        if self.sent - self.start > 2 * NEVER_WHOLE:
            self.told = ["".join(self.told)[-NEVER_WHOLE:]]
            self.start = self.sent - NEVER_WHOLE
        return at, text

    def _repeats(self, now: float) -> bool:
        if self.doubt or self.repeated_at is None:
            return True
        grown = self.length <= OFTEN_WHOLE or 2 * self.length >= 3 * self.repeated
        return grown and now - self.repeated_at >= WHOLE_EVERY_S

    def _end(self) -> tuple[int, str]:
        """PIECE code points so that all before the last PIECE was sent: a reader that lacks it sees the hole."""
        text = "".join((*self.told, *self.fresh))
        begin = max(0, min(self.sent, self.length - PIECE))
        self.sent = max(self.sent, min(begin + PIECE, self.length))
        cut = self.sent - self.start
        self.told, self.fresh = [text[:cut]], [text[cut:]]
        return begin, text[begin - self.start :][:PIECE]


class DeltaBuffer:
    """What is to be sent of a session's open blocks, and when. Times are seconds of any steady clock."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, int], _Block] = {}
        self._passing: dict[str | None, Piece] = {}
        self._waiting: dict[tuple[str, int] | str | None, None] = {}
        """What has something to send, the longest waiting first: (item, block), or the item of a passing payload."""
        self._next = 0.0

    def add(
        self, item: str, block: int, kind: DeltaKind, text: str, *, turn: str | None = None, lane: str | None = None
    ) -> None:
        """Text that the agent added to a block. Lone surrogates, which no UTF-8 can carry, become `?`."""
        if not text:
            return
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()
        key = (item, block)
        found = self._blocks.get(key)
        if found is None:
            found = self._blocks[key] = _Block(block, kind, turn, lane)
        found.add(text)
        self._waiting.setdefault(key)

    def passing(self, data: Passing, *, item: str | None, turn: str | None = None, lane: str | None = None) -> None:
        """A payload that replaces the one before it."""
        self._passing[item] = Piece(item=item, turn=turn, lane=lane, data=data)
        self._waiting.setdefault(item)

    def end(self, item: str) -> None:
        """The item is finished: its fact says it all."""
        for key in [key for key in self._blocks if key[0] == item]:
            del self._blocks[key]
            self._waiting.pop(key, None)
        self._passing.pop(item, None)
        self._waiting.pop(item, None)

    def doubt(self) -> None:
        """What was sent may be lost: every open block is sent again as a whole."""
        for key, block in self._blocks.items():
            if block.sent:
                block.doubt = True
                self._waiting.setdefault(key)

    def due(self) -> float | None:
        """When the next message may go out (a time in the past: now), None while there is nothing to send."""
        return self._next if self._waiting else None

    def take(self, now: float, after: int) -> Piece | None:
        """The next message if one is due at `now`; `after` is the seq of the session's last fact."""
        if not self._waiting or now < self._next:
            return None
        # On a grid: a message that was late by less than one interval delays none of those after it.
        late = now - self._next
        self._next = (self._next if late < INTERVAL_S else now) + INTERVAL_S
        key = next(iter(self._waiting))
        del self._waiting[key]
        if isinstance(key, tuple):
            return self._of_block(self._blocks[key], key, now, after)
        piece = self._passing.pop(key)
        return msgspec.structs.replace(piece, data=msgspec.structs.replace(piece.data, after=after))

    def _of_block(self, block: _Block, key: tuple[str, int], now: float, after: int) -> Piece:
        at, text = block.next(now)
        if block.sent < block.length:
            self._waiting.setdefault(key)
        data = MessageDelta(block=block.number, kind=block.kind, at=at, text=text, after=after)
        return Piece(item=key[0], turn=block.turn, lane=block.lane, data=data, whole=at == 0)


def _bytes(text: str) -> int:
    """Bytes of `text` as JSON."""
    return len(msgspec.json.encode(text))
