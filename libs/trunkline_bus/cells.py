"""A projection's states in memory: which message each one has seen, and what of them is not stored yet. No I/O."""

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from trunkline_bus.stored import Stored
from trunkline_bus.views import Document, Frozen, View, decode_document
from trunkline_wire.session import SessionErased

S = TypeVar("S")


class Cell(Generic[S]):
    """One key: its state, the sequence it is folded up to, the revision its document has in the bucket."""

    def __init__(self, key: str, state: S) -> None:
        self.key = key
        self.state = state
        self.cursor = 0
        self.frozen: Frozen | None = None
        self.revision = 0

    @property
    def progress(self) -> int:
        return self.frozen.sequence if self.frozen is not None else self.cursor


class Cells(Generic[S]):
    """All keys in use. `dirty` are those whose state is not stored, `hot` those of them that somebody waits for."""

    def __init__(self, view: View[S]) -> None:
        self._view = view
        self._cells: dict[str, Cell[S]] = {}
        self.dirty: set[str] = set()
        self.hot: set[str] = set()
        self.frozen: set[str] = set()

    def __len__(self) -> int:
        return len(self._cells)

    def __contains__(self, key: str) -> bool:
        return key in self._cells

    def __getitem__(self, key: str) -> Cell[S]:
        return self._cells[key]

    def unknown(self, batch: Iterable[Stored]) -> list[str]:
        """The keys that `batch` needs and that are not in memory."""
        wanted = {key for stored in batch if (key := self._view.key(stored)) is not None}
        return [key for key in wanted if key not in self._cells]

    def begin(self, key: str, raw: bytes | None = None, revision: int = 0) -> None:
        """Take up a key from its document, or without one."""
        cell = self._cells[key] = Cell(key, self._view.initial(key))
        cell.revision = revision
        if raw is not None:
            self._take(cell, decode_document(raw))

    def apply(self, stored: Stored) -> Exception | None:
        """Fold one message into its cell. Returns what the fold raised if the key froze just now."""
        key = self._view.key(stored)
        if key is None:
            return None
        cell = self._cells[key]
        erases = stored.type == SessionErased.TYPE
        if stored.sequence <= cell.progress or (cell.frozen is not None and not erases):
            return None
        before = cell.state
        try:
            # What came before an erasure will be gone from the log, so it must leave no trace here either.
            after = self._view.fold(self._view.initial(key) if erases else before, stored)
        except Exception as error:  # noqa: BLE001 - whatever a fold raises is poison
            cell.frozen = Frozen(sequence=stored.sequence, id=stored.id, error=type(error).__name__)
            cell.state = self._view.freeze(before)
            self.frozen.add(key)
            self.touch(key, hot=True)
            return error
        cell.state, cell.cursor, cell.frozen = after, stored.sequence, None
        self.frozen.discard(key)
        self.touch(key, hot=erases or self._view.hot(before, after))
        return None

    def settle(self, key: str) -> None:
        """What the key's document holds is what the cell holds."""
        self.dirty.discard(key)
        self.hot.discard(key)

    def touch(self, key: str, *, hot: bool) -> None:
        self.dirty.add(key)
        if hot:
            self.hot.add(key)

    def document(self, cell: Cell[S]) -> bytes:
        """The bytes of a cell's document: a function of the log up to its progress and of nothing else."""
        # The parts are put together by hand so that the state's own bytes stay as its view wrote them.
        head = b'{"cursor":%d' % cell.cursor
        if cell.frozen is not None:
            head += b',"frozen":' + msgspec.json.encode(cell.frozen, order="sorted")
        return head + b',"state":' + self._view.encode(cell.state) + b',"version":%d}' % self._view.version

    def meet(self, key: str, raw: bytes | None, revision: int) -> bool:
        """A write was lost to the document `raw`: whether what this cell has must still be stored.

        States are functions of the log, so the one with more progress knows all that the other knows.
        """
        cell = self._cells[key]
        cell.revision = revision
        if raw is None:
            return True
        document = decode_document(raw)
        if document.progress > cell.progress:
            self._take(cell, document)
            return False
        return document.progress < cell.progress or raw != self.document(cell)

    def stored(self, key: str, names: set[str]) -> None:
        """The attachments `names` of a key are stored."""
        cell = self._cells[key]
        cell.state = self._view.without(cell.state, names)

    def forget_some(self, keep: int) -> None:
        """Drop the states taken up first, those that are stored, until `keep` are left."""
        for key in list(self._cells):
            if len(self._cells) <= keep:
                return
            if key not in self.dirty:
                del self._cells[key]

    def _take(self, cell: Cell[S], document: Document) -> None:
        cell.state = self._view.decode(bytes(document.state))
        cell.cursor = document.cursor
        cell.frozen = document.frozen
        if document.frozen is not None:
            self.frozen.add(cell.key)
        else:
            self.frozen.discard(cell.key)
