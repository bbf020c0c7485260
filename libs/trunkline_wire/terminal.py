"""What passes between the owner of a session's terminal and those who hand it on: live, over core NATS, never stored.

To a gateway go frames (`trunk.term.<session>.out.<gateway>`): a byte for the kind, eight for the terminal they are of, eight for the
number of bytes that were printed before, then the content. `o`: what was printed. `p`: a painting, `Painting` as JSON, a line end, and
what a terminal has to print to look like that one; what is printed from there on follows. `s`: `TerminalState` as JSON.
From a gateway come keys (`…in`: the viewer, NUL, UTF-8) and `TerminalRequest`s (`…ctl`), which may ask for a `TerminalReply`.
"""

import struct
from typing import Final, Literal

import msgspec

from trunkline_wire.errors import ErrorInfo

WINDOW: Final = 1024 * 1024
"""Bytes that may be on their way to a gateway before it has said that it has them; then it gets a painting, later."""
ACK_EVERY: Final = 64 * 1024
"""A gateway says so at least as often."""
LARGEST_SIDE: Final = 1000
MAX_HISTORY: Final = 2000
"""Lines above the screen that a painting may bring."""
MAX_KEYS: Final = 64 * 1024
"""Bytes of keys in one message."""

_HEAD: Final = struct.Struct(">c8sQ")

Kind = Literal[b"o", b"p", b"s"]


class Writer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who types in a terminal: one viewer at a time."""

    viewer: str
    actor: str = ""


class TerminalState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`terminal` names it: it changes with its owner, and offsets count anew. Not `running`: its program has still to be started."""

    terminal: str
    running: bool = False
    columns: int = 0
    rows: int = 0
    writable: bool = True
    writer: Writer | None = None


class Painting(msgspec.Struct, frozen=True, kw_only=True):
    """For one viewer, or for all of the gateway's."""

    columns: int
    rows: int
    viewer: str | None = None


class TerminalRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`open` starts the program; `attach` begins to look, with a painting; `paint` asks for another one; `ack` has `offset`; `alive`
    names all `viewers` of the gateway; `take` and `release` are about who types, `force` takes it from whoever does; `resize` is the
    writer's.
    """

    kind: Literal["open", "attach", "paint", "ack", "alive", "take", "release", "resize"]
    gateway: str = ""
    viewer: str = ""
    actor: str = ""
    viewers: list[str] = []
    offset: int = 0
    history: int = 0
    columns: int = 0
    rows: int = 0
    force: bool = False


class TerminalReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`known`: the owner sends to that gateway already; otherwise it has to attach again."""

    state: TerminalState | None = None
    known: bool = True
    error: ErrorInfo | None = None


class Frame(msgspec.Struct, frozen=True):
    kind: bytes
    terminal: str
    offset: int
    content: bytes

    @property
    def painting(self) -> tuple[Painting, bytes]:
        """Of a frame `p`. Raises msgspec.MsgspecError for one that is none."""
        head, _, content = self.content.partition(b"\n")
        return msgspec.json.decode(head, type=Painting), content


def frame(kind: Kind, terminal: str, offset: int, content: bytes) -> bytes:
    """`terminal` is 16 hex digits."""
    return _HEAD.pack(kind, bytes.fromhex(terminal), offset) + content


def read_frame(data: bytes) -> Frame | None:
    """None for what is too short to be one."""
    if len(data) < _HEAD.size:
        return None
    kind, terminal, offset = _HEAD.unpack_from(data)
    return Frame(kind, terminal.hex(), offset, data[_HEAD.size :])


def keys_message(viewer: str, keys: bytes) -> bytes:
    return viewer.encode() + b"\0" + keys


def read_keys(data: bytes) -> tuple[str, bytes]:
    """The viewer, and what it types."""
    viewer, _, keys = data.partition(b"\0")
    return viewer.decode(errors="replace"), keys
