"""What a projection is made of: a pure fold per key, and the documents that its states are stored as.

A document's key in its bucket is `<edition>.<key>`, its attachments' are `<edition>.<key>.<name>`. An edition is
one build of a projection, `v<version>-<generation>`: a new version of the fold, or a log that turned out to be another
one, is built beside the old edition, and the key `current` names the edition that readers use.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import ClassVar, Final, Generic, TypeVar

import msgspec

from trunkline_bus.stored import Stored
from trunkline_wire.codec import encode
from trunkline_wire.errors import TrunklineError

S = TypeVar("S")

CURRENT: Final = "current"
"""The key that names the edition in use."""


class View(ABC, Generic[S]):
    """A projection's fold. States are immutable values; all methods are pure, and no other state may reach the bytes."""

    name: ClassVar[str]
    """In positions, dead letters and metrics."""
    bucket: ClassVar[str]
    version: ClassVar[int]
    """Raised whenever the same events would give other bytes."""
    filters: ClassVar[Sequence[str]]
    """Which subjects of EVENTS it reads."""

    @abstractmethod
    def key(self, stored: Stored) -> str | None:
        """The key whose state the message changes, None for none. It is one token, and depends on nothing else."""

    @abstractmethod
    def initial(self, key: str) -> S: ...

    @abstractmethod
    def fold(self, state: S, stored: Stored) -> S:
        """The state after the message. What it raises freezes the key. A `session.erased` comes with the initial state."""

    def sources(self, key: str) -> Sequence[str]:
        """Filters of EVENTS that hold every message of `key`, for folding it again."""
        del key
        return self.filters

    @abstractmethod
    def decode(self, raw: bytes) -> S: ...

    def encode(self, state: S) -> bytes:
        """JSON; equal states give equal bytes."""
        return encode(state)

    def freeze(self, state: S) -> S:
        """How the state looks once a message could not be folded."""
        return state

    def hot(self, before: S, after: S) -> bool:
        """Whether people wait to see this change: it is stored at once, others within a second."""
        del before, after
        return False

    def attachments(self, state: S) -> Sequence[tuple[str, bytes]]:
        """Parts of the state with keys of their own, as (name, bytes), to be stored before the document that counts
        on them. What stands under a name never changes.
        """
        del state
        return ()

    def without(self, state: S, names: Collection[str]) -> S:
        """The state, those of its attachments stored."""
        del names
        return state


class Frozen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The message that could not be folded: its sequence, its event id, the kind of error."""

    sequence: int
    error: str
    id: str | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A state as stored: `cursor` is the sequence of the last message in it."""

    cursor: int
    version: int
    state: msgspec.Raw
    frozen: Frozen | None = None

    @property
    def progress(self) -> int:
        """Of two documents of a key the one with more progress knows all that the other knows."""
        return self.frozen.sequence if self.frozen is not None else self.cursor


class Edition(msgspec.Struct, frozen=True, kw_only=True):
    """One build of a projection of the log `log`."""

    version: int
    generation: int
    log: str

    @property
    def prefix(self) -> str:
        return f"v{self.version}-{self.generation}"

    def key(self, *tokens: str) -> str:
        return ".".join((self.prefix, *tokens))


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """The value of the key `current`: the edition in use, and prefixes that may still hold documents of former ones."""

    edition: Edition
    former: list[str] = []


_documents: Final = msgspec.json.Decoder(Document)
_currents: Final = msgspec.json.Decoder(Current)


def decode_document(raw: bytes) -> Document:
    try:
        return _documents.decode(raw)
    except msgspec.MsgspecError as error:
        raise TrunklineError("bad_event", f"not a document of a projection: {error}") from error


def decode_current(raw: bytes) -> Current:
    try:
        return _currents.decode(raw)
    except msgspec.MsgspecError as error:
        raise TrunklineError("bad_event", f"not a projection's current edition: {error}") from error
