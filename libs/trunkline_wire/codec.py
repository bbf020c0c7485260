"""Encoding and decoding: deterministic (sorted keys), tolerant in production, strict in tests, old versions upcast."""

import datetime as dt
import functools
import re
import time
from collections.abc import Callable
from typing import Any, Final, Union

import msgspec

from trunkline_wire._strict import check_strict
from trunkline_wire.commands import COMMAND_KINDS, Answer, Command, Spawn
from trunkline_wire.errors import TrunklineError
from trunkline_wire.events import CATALOGUE, NO_NATIVE, STRICT, TOLERANT, Event, UnknownData, UnknownEvent

BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not JSON of a type: invalid UTF-8 and endless nesting are not MsgspecErrors."""

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes an event of version v as a dict and returns it as version v+1. `v` is set by the codec; `native` is not part of
the dict, it stays what the agent said.
"""

UPCASTERS: Final[dict[tuple[str, int], Upcaster]] = {}
"""By (type, the version it reads)."""

_encoder: Final = msgspec.json.Encoder(order="sorted")
_tolerant: Final[msgspec.json.Decoder[Event]] = msgspec.json.Decoder(Union[tuple(TOLERANT.values())])  # type: ignore[arg-type]  # the union is made at import  # noqa: UP007
_strict: Final[msgspec.json.Decoder[Event]] = msgspec.json.Decoder(Union[tuple(STRICT.values())])  # type: ignore[arg-type]  # likewise  # noqa: UP007
_commands: Final[msgspec.json.Decoder[Command]] = msgspec.json.Decoder(Union[tuple(COMMAND_KINDS.values())])  # type: ignore[arg-type]  # likewise  # noqa: UP007
_answers: Final = msgspec.json.Decoder(Answer)
_spawns: Final = msgspec.json.Decoder(Spawn)
_any: Final = msgspec.json.Decoder()
_parts: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LONE_SURROGATE: Final = re.compile(
    rb"(?<!\\)((?:\\\\)*)(?:(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


class _Loose(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    type: str
    v: int = 1
    session: str
    time: str
    seq: int | None = None
    origin: tuple[int, int, int] | None = None
    src: tuple[str, int, int] | None = None
    epoch: int | None = None
    turn: str | None = None
    item: str | None = None
    lane: str | None = None
    cause: str | None = None
    data: Any = None


_loose: Final = msgspec.json.Decoder(_Loose)


def encode(value: Any) -> bytes:
    """JSON with sorted keys: the same value gives the same bytes."""
    return _encoder.encode(value)


def decode_json(raw: bytes | str) -> Any:
    """Any JSON value; raises one of BROKEN."""
    return _any.decode(raw)


def decode_event(raw: bytes, *, strict: bool = False) -> Event:
    """The event in `raw`, brought to the version that this code knows.

    Unknown fields and types are tolerated (UnknownEvent); with `strict` they are refused, at any depth but inside of
    the agent's own JSON. Raises TrunklineError `bad_event` when it is no event at all, when the payload of a known type
    does not fit, and when its version is newer than this code: the reader is to be upgraded, not to guess.
    """
    try:
        event = (_strict if strict else _tolerant).decode(raw)
    except BROKEN as error:
        if strict:
            raise TrunklineError("bad_event", f"not an event of the schema: {error}") from error
        return _decode_odd(raw, error)
    if event.v < event.data.VERSION:
        return _upcast(raw, event.type, event.v)
    if event.v > event.data.VERSION:
        raise _too_new(event.type, event.v)
    if strict and (unknown := check_strict(raw, event)):
        raise TrunklineError("bad_event", f"{event.type!r} has unknown fields: {', '.join(unknown)}")
    return event


def _too_new(type_: str, version: int) -> TrunklineError:
    return TrunklineError(
        "bad_event", f"{type_!r} is of version {version}, this reader knows {CATALOGUE[type_].VERSION}: upgrade it"
    )


def _decode_odd(raw: bytes, error: Exception) -> Event:
    try:
        loose = _loose.decode(raw)
    except BROKEN:
        raise TrunklineError("bad_event", f"not an event: {error}") from error
    kind = CATALOGUE.get(loose.type)
    if kind is not None:
        if loose.v < kind.VERSION:
            return _upcast(raw, loose.type, loose.v)
        if loose.v > kind.VERSION:
            raise _too_new(loose.type, loose.v)
        raise TrunklineError("bad_event", f"the payload of a {loose.type!r} does not fit: {error}") from error
    fields = {name: getattr(loose, name) for name in _Loose.__struct_fields__ if name not in ("type", "data")}
    return UnknownEvent(data=UnknownData(kind=loose.type, value=loose.data), **fields)


def _upcast(raw: bytes, type_: str, version: int) -> Event:
    parts = _parts.decode(raw)
    native = parts.pop("native", NO_NATIVE)
    value = {name: _any.decode(part) for name, part in parts.items()}
    target = CATALOGUE[type_].VERSION
    while version < target:
        upcaster = UPCASTERS.get((type_, version))
        if upcaster is None:
            raise TrunklineError("bad_event", f"nothing reads version {version} of {type_!r}: an upcaster is missing")
        value = upcaster(value)
        version += 1
    try:
        return _tolerant.decode(encode({**value, "v": target, "native": native}))
    except BROKEN as error:
        raise TrunklineError("bad_event", f"an old {type_!r} does not fit after its upcasters: {error}") from error


def decode_command(raw: bytes) -> Command:
    """The command in `raw`; TrunklineError `bad_params` for an unknown verb or arguments that do not fit."""
    try:
        return _commands.decode(raw)
    except BROKEN as error:
        raise TrunklineError("bad_params", f"not a command: {error}") from error


def decode_answer(raw: bytes) -> Answer:
    try:
        return _answers.decode(raw)
    except BROKEN as error:
        raise TrunklineError("bad_params", f"not an answer: {error}") from error


def decode_spawn(raw: bytes) -> Spawn:
    try:
        return _spawns.decode(raw)
    except BROKEN as error:
        raise TrunklineError("bad_params", f"not a spawn request: {error}") from error


def replace_lone_surrogates(line: bytes) -> bytes:
    r"""A JSON text with every `\ud800`-like escape that has no partner replaced by `\ufffd` (JavaScript writes them, JSON readers refuse them)."""
    return _LONE_SURROGATE.sub(lambda m: m[0] if m[2] else m[1] + rb"\ufffd", line)


def timestamp(moment: dt.datetime | None = None) -> str:
    """RFC 3339, UTC, microseconds: `2026-11-27T21:20:10.476123Z`."""
    if moment is None:
        second, rest = divmod(time.time_ns(), 1_000_000_000)
        return f"{_second(second)}.{rest // 1000:06d}Z"
    return moment.astimezone(dt.UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


@functools.lru_cache(maxsize=2)
def _second(since_1970: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since_1970))


def parse_time(value: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(value)
    except ValueError as error:
        raise TrunklineError("bad_params", f"{value!r} is not a time of the form 2026-11-27T21:20:10Z") from error
