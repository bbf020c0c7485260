"""Streams and buckets as data, and the one program that makes a server match them.

`apply` creates what is missing, changes what may be changed, and refuses what would lose data. The schema version
of the log is raised last, so that readers are upgraded before writers.
"""

import contextlib
import datetime as dt
import uuid
from collections.abc import AsyncIterator
from typing import Any, Final, Literal

import msgspec
import nats.errors
from nats.js import JetStreamContext
from nats.js.errors import APIError, ServiceUnavailableError

from trunkline_bus import jsapi, layout
from trunkline_bus.capacity import STORE
from trunkline_bus.layout import Layout
from trunkline_wire import TrunklineError, parse_time, subjects

SCHEMA: Final = 1
"""Version of the events that this code writes."""

LOG_ID: Final = "trunk-log-id"
SCHEMA_KEY: Final = "trunk-schema"

EVENTS_MAX_BYTES: Final = 8 * 1024**3
"""Default limit of the log, in bytes. The server reserves it, so its store must be larger."""

GONE_AFTER: Final = 2

_S: Final = 1_000_000_000
_DAY: Final = 86_400 * _S
_MIB: Final = 1024 * 1024
DELTAS_MAX_BYTES: Final = 512 * _MIB
"""Or a quarter of what EVENTS may have, where that is less."""
_NO_STORAGE: Final = 10047


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """A stream: its configuration as the JetStream API has it, and whether losing it costs no truth."""

    name: str
    config: dict[str, Any]
    replicated: bool = True
    async_on_r1: bool = False
    """Written without waiting for the disk where there is one replica: the log can rebuild it."""

    def wanted(self, replicas: int) -> dict[str, Any]:
        """The configuration for a cluster of `replicas`."""
        count = replicas if self.replicated else 1
        config = {"name": self.name, "storage": "file", "num_replicas": count, **self.config}
        if self.async_on_r1 and count == 1:
            config["persist_mode"] = "async"
        return config


def _limits(subject: str | list[str], **more: Any) -> dict[str, Any]:
    every = [subject] if isinstance(subject, str) else subject
    return {"subjects": every, "retention": "limits", "allow_direct": True, **more}


def _bucket(name: str, *, projection: bool = False, ttl_s: int = 0) -> Stream:
    config = _limits(
        f"$KV.{name}.>", max_msgs_per_subject=1, discard="new", allow_rollup_hdrs=True, deny_delete=True, max_age=0
    )
    if ttl_s:
        # The marker is how watchers learn of an expiry.
        config |= {"max_age": ttl_s * _S, "allow_msg_ttl": True, "subject_delete_marker_ttl": ttl_s * _S}
    return Stream(name=f"KV_{name}", config=config, async_on_r1=projection or ttl_s > 0)


LEASE_TTL_S: Final = 30

STREAMS: Final[tuple[Stream, ...]] = (
    Stream(
        name=subjects.EVENTS,
        config=_limits(
            subjects.ALL_EVENTS,
            discard="new",
            deny_delete=True,
            # Nothing here has a message id, so nothing may ever be taken for a duplicate.
            duplicate_window=_S // 10,
        ),
    ),
    Stream(
        name=subjects.DELTAS,
        config=_limits(
            subjects.ALL_DELTAS, discard="old", max_age=3600 * _S, max_bytes=DELTAS_MAX_BYTES, persist_mode="async"
        ),
        replicated=False,
    ),
    Stream(
        name=subjects.COMMANDS,
        config=_limits([subjects.ALL_COMMANDS, subjects.ALL_ANSWERS], max_age=7 * _DAY, deny_delete=True),
    ),
    Stream(
        name=subjects.SPAWN,
        config={"subjects": [subjects.ALL_SPAWNS], "retention": "workqueue", "max_age": 60 * _S, "allow_direct": True},
    ),
    Stream(name=subjects.OBSERVED, config=_limits(subjects.ALL_OBSERVED, max_age=7 * _DAY)),
    Stream(name=subjects.SYSTEM, config=_limits(subjects.ALL_SYSTEM, deny_delete=True)),
    Stream(name=subjects.DEADLETTER, config=_limits(subjects.ALL_DEAD_LETTERS, max_age=30 * _DAY)),
    _bucket(subjects.KV_TOKENS),
    _bucket(subjects.KV_DEVICES),
    _bucket(subjects.KV_SESSIONS, projection=True),
    _bucket(subjects.KV_PAGES, projection=True),
    _bucket(subjects.KV_ASKS, projection=True),
    _bucket(subjects.KV_TEAMS, projection=True),
    _bucket(subjects.KV_WORKSPACES, projection=True),
    _bucket(subjects.KV_POSITIONS, projection=True),
    _bucket(subjects.KV_LEASES, ttl_s=LEASE_TTL_S),
    _bucket(subjects.KV_WORKERS, ttl_s=LEASE_TTL_S),
    _bucket(subjects.KV_PRESENCE, ttl_s=LEASE_TTL_S),
    Stream(
        name=f"OBJ_{subjects.BLOBS}",
        config=_limits([f"$O.{subjects.BLOBS}.C.>", f"$O.{subjects.BLOBS}.M.>"], discard="new", allow_rollup_hdrs=True),
    ),
)

_FIXED: Final = ("retention", "storage", "persist_mode")
"""Settings that the server can't change without making the stream anew."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be done to a stream: `verb` with `config`. `lines` say it to people; `refused` is why it is not done."""

    stream: str
    verb: Literal["create", "update", "none"]
    lines: tuple[str, ...]
    config: dict[str, Any] = {}
    refused: TrunklineError | None = None


async def plan(
    js: JetStreamContext, replicas: int | None = None, max_bytes: int | None = None, *, events: int | None = None
) -> list[Change]:
    """What `apply` would do, in its order, what it would refuse among it; [] where nothing is to be done.

    Arguments as those of `apply`. Raises `log_unavailable` where nobody answers.
    """
    try:
        wanted = await _wanted_layout(js, events)
        changes = [change async for change in _plan(js, replicas, max_bytes, wanted)]
        return [*changes, *await _unknown(js, {stream.name for stream in _streams(wanted)})]
    except nats.errors.Error as error:
        raise _unreachable(error) from error


async def apply(
    js: JetStreamContext,
    replicas: int | None = 1,
    max_bytes: int | None = None,
    *,
    store: int | None = None,
    restored: bool = False,
    events: int | None = None,
) -> list[str]:
    """Make the server's streams and buckets match STREAMS; return what changed, one line each, [] where nothing did.

    `replicas` are copies of each stream, None for as many as EVENTS has (1 for a new log).
    `max_bytes` is the limit of EVENTS in bytes: EVENTS_MAX_BYTES for a new log, unchanged for one that exists.
    `events` is in how many streams a new log keeps its events, each a range of the partitions: 1 where it is None. One that
    exists keeps what it has: a session can't change its stream.
    `store` is what the server may store in all, in bytes; it is noted, so that writers know how full it is.
    `restored` says that the log was put back from a backup: it gets a new id, which ends every cursor in a gap.
    Raises TrunklineError `topology_conflict` before it changes a stream in a way that loses data,
    `log_full` where the server's store is too small for `max_bytes`, `log_unavailable` where nobody answers.
    """
    try:
        wanted = await _wanted_layout(js, events)
        return await _apply(js, replicas, max_bytes, store, wanted, restored=restored)
    except nats.errors.Error as error:
        raise _unreachable(error) from error


def _unreachable(error: Exception) -> TrunklineError:
    return TrunklineError(
        "log_unavailable", f"JetStream does not answer: {error}; is it on, and may this user change streams?"
    )


async def mend(js: JetStreamContext) -> list[str]:
    """Make DELTAS anew where it is lost, which costs no truth; what changed, [] where it is there, or there is no log.

    Noticed at once where the server says so, after GONE_AFTER tries of 5 s where nobody answers. Raises like `apply`.
    """
    try:
        if await _info_or_gone(js) is not None:
            return []
        events = await jsapi.stream_info(js, subjects.EVENTS)
    except nats.errors.Error as error:
        raise TrunklineError("log_unavailable", f"JetStream does not answer: {error}") from error
    return await apply(js, events["config"]["num_replicas"]) if events is not None else []


async def _apply(
    js: JetStreamContext,
    replicas: int | None,
    max_bytes: int | None,
    store: int | None,
    wanted: Layout,
    *,
    restored: bool,
) -> list[str]:
    done: list[str] = []
    async for change in _plan(js, replicas, max_bytes, wanted, replace_deltas=True):
        if change.refused is not None:
            raise change.refused
        await _send(js, change.verb.upper(), change.stream, change.config)
        done += change.lines
    notes = {STORE: str(store)} if store is not None else {}
    if restored:
        notes[LOG_ID] = uuid.uuid4().hex
        done.append(f"{subjects.EVENTS}: {LOG_ID} is new, cursors from before end in a gap")
    return done + await _raise_schema(js, notes)


async def _plan(
    js: JetStreamContext,
    replicas: int | None,
    max_bytes: int | None,
    division: Layout,
    *,
    replace_deltas: bool = False,
) -> AsyncIterator[Change]:
    events_limit = EVENTS_MAX_BYTES
    share = len(division.streams)
    copies = replicas if replicas is not None else await _present_replicas(js)
    for stream in _streams(division):
        wanted = stream.wanted(copies)
        lost = replace_deltas and stream.name == subjects.DELTAS
        info = await (_info_or_gone(js) if lost else jsapi.stream_info(js, stream.name))
        if stream.name in division.names:
            if max_bytes is not None or info is None:
                wanted["max_bytes"] = (max_bytes or EVENTS_MAX_BYTES) // share
            if info is None and stream.name == subjects.EVENTS:
                wanted["metadata"] = {LOG_ID: uuid.uuid4().hex, **({layout.KEY: division.note()} if share > 1 else {})}
            events_limit = {**(info["config"] if info else {}), **wanted}["max_bytes"]
        elif stream.name == subjects.DELTAS:
            wanted["max_bytes"] = (
                min(DELTAS_MAX_BYTES, events_limit // 4) if info is None else info["config"]["max_bytes"]
            )
        if info is None:
            yield Change(stream=stream.name, verb="create", lines=(f"{stream.name}: created",), config=wanted)
        elif change := _difference(stream.name, info, wanted):
            yield change


async def _present_replicas(js: JetStreamContext) -> int:
    info = await jsapi.stream_info(js, subjects.EVENTS)
    return info["config"]["num_replicas"] if info is not None else 1


def _difference(name: str, info: dict[str, Any], wanted: dict[str, Any]) -> Change | None:
    present = info["config"]
    difference = {key: value for key, value in wanted.items() if not _same(present.get(key), value)}
    if not difference:
        return None
    lines = tuple(f"{name}: {key} {present.get(key)!r} -> {value!r}" for key, value in difference.items())
    refused = None
    try:
        _refuse_loss(name, info, wanted, difference)
    except TrunklineError as error:
        refused = error
    return Change(stream=name, verb="update", lines=lines, config=present | difference, refused=refused)


def _streams(division: Layout) -> list[Stream]:
    """STREAMS, with those of the events divided."""
    first = STREAMS[0]
    if len(division.streams) == 1:
        return list(STREAMS)
    several = [
        msgspec.structs.replace(first, name=name, config={**first.config, "subjects": list(part.filters)})
        for name, part in division.streams
    ]
    return [*several, *STREAMS[1:]]


async def _wanted_layout(js: JetStreamContext, events: int | None) -> Layout:
    """That of the log that is there, or of a new one in `events` streams. Raises `topology_conflict` where they differ."""
    info = await jsapi.stream_info(js, subjects.EVENTS)
    if info is None:
        return layout.divided(events or 1)
    present = layout.noted(info["config"].get("metadata") or {})
    if events is not None and events != len(present.streams):
        raise TrunklineError(
            "topology_conflict",
            f"the log has {len(present.streams)} streams of events, wanted are {events}: sessions can't change theirs; "
            "make a new log",
        )
    return present


async def _unknown(js: JetStreamContext, known: set[str]) -> list[Change]:
    """Streams of the server that this program knows nothing of; it leaves them as they are."""
    names: list[str] = []
    while True:
        answer = await jsapi.request(js, "STREAM.NAMES", {"offset": len(names)})
        page: list[str] = answer.get("streams") or []
        names += page
        if not page or len(names) >= answer.get("total", 0):
            break
    return [
        Change(stream=name, verb="none", lines=(f"{name}: is none of Trunkline's, and stays as it is",))
        for name in sorted(set(names) - known)
    ]


async def read_log(js: JetStreamContext) -> tuple[str, Layout]:
    """The id of the log and its streams, from its leader. Raises TrunklineError `log_unavailable` where it was never made."""
    info = await jsapi.stream_info(js, subjects.EVENTS)
    metadata: dict[str, str] = (info or {}).get("config", {}).get("metadata") or {}
    if LOG_ID not in metadata:
        raise TrunklineError("log_unavailable", "the server has no log yet: run `trunkline topology apply`")
    return metadata[LOG_ID], layout.noted(metadata)


async def _info_or_gone(js: JetStreamContext) -> dict[str, Any] | None:
    """DELTAS has one replica: where its server is gone for GONE_AFTER tries of 5 s it is deleted, to be made elsewhere."""
    for _ in range(GONE_AFTER):
        with contextlib.suppress(nats.errors.TimeoutError, ServiceUnavailableError):
            return await jsapi.stream_info(js, subjects.DELTAS)
    # Nobody who holds it can confirm; the cluster forgets it all the same.
    with contextlib.suppress(nats.errors.TimeoutError, APIError):
        await jsapi.request(js, f"STREAM.DELETE.{subjects.DELTAS}", wait=1.0)
    return None


async def _raise_schema(js: JetStreamContext, notes: dict[str, str]) -> list[str]:
    """`notes` go into the metadata with it; they are no change of the log."""
    info = await jsapi.stream_info(js, subjects.EVENTS)
    assert info is not None
    config = info["config"]
    metadata: dict[str, str] = config.get("metadata") or {}
    present = int(metadata.get(SCHEMA_KEY, "0"))
    if present > SCHEMA:
        raise TrunklineError(
            "topology_conflict",
            f"the log is written in schema {present}, this program writes {SCHEMA}: upgrade the program",
            log_schema=present,
            schema=SCHEMA,
        )
    raised = {LOG_ID: uuid.uuid4().hex, **metadata, SCHEMA_KEY: str(SCHEMA), **notes}
    if raised == metadata:
        return []
    await _send(js, "UPDATE", subjects.EVENTS, config | {"metadata": raised})
    if present == SCHEMA and LOG_ID in metadata:
        return []
    return [f"{subjects.EVENTS}: {SCHEMA_KEY} {present} -> {SCHEMA}"]


async def _send(js: JetStreamContext, verb: str, stream: str, config: dict[str, Any]) -> None:
    try:
        await jsapi.request(js, f"STREAM.{verb}.{stream}", config, wait=10.0)
    except APIError as error:
        if jsapi.error_code(error) == _NO_STORAGE:
            raise TrunklineError(
                "log_full",
                f"the server's store is too small for {stream} with max_bytes {config.get('max_bytes')}: "
                "give it more room (max_file_store) or a smaller max_bytes",
                stream=stream,
            ) from error
        raise TrunklineError(
            "topology_conflict", f"the server refuses {verb.lower()} of {stream}: {error.description}", stream=stream
        ) from error
    after = await jsapi.stream_info(js, stream)
    got = (after or {}).get("config", {})
    wrong = {key: got.get(key) for key, value in config.items() if key != "metadata" and not _same(got.get(key), value)}
    if wrong:
        raise TrunklineError(
            "topology_conflict",
            f"the server took {stream} but not {sorted(wrong)}: is it nats-server 2.12 or newer?",
            stream=stream,
            settings=wrong,
        )


def _same(present: Any, wanted: Any) -> bool:
    if isinstance(wanted, list) and isinstance(present, list):
        return sorted(present) == sorted(wanted)
    return present == wanted or (not present and not wanted)


def _refuse_loss(name: str, info: dict[str, Any], wanted: dict[str, Any], difference: dict[str, Any]) -> None:
    present, state = info["config"], info["state"]

    def refuse(setting: str, why: str) -> TrunklineError:
        return TrunklineError(
            "topology_conflict",
            f"{name} has {setting} {present.get(setting)!r}, wanted is {wanted.get(setting)!r}: {why}",
            stream=name,
            setting=setting,
        )

    for setting in _FIXED:
        if setting in difference:
            raise refuse(setting, "it can only be changed by making the stream anew; back it up first")
    gone = set(present.get("subjects") or []) - set(wanted["subjects"])
    if gone:
        raise refuse("subjects", f"{sorted(gone)} would no longer be stored")
    if present.get("sealed") or (present.get("mirror") and "subjects" in difference):
        raise refuse("sealed", "the stream takes no writes")
    limit = difference.get("max_bytes", 0)
    if 0 < limit < state["bytes"]:
        raise refuse("max_bytes", f"it holds {state['bytes']} bytes")
    age = difference.get("max_age", 0)
    if age and state["messages"] and _older_than(state["first_ts"], age):
        raise refuse("max_age", f"messages since {state['first_ts']} would be dropped")
    keep = difference.get("max_msgs_per_subject", 0)
    had = present.get("max_msgs_per_subject", -1)
    if state["messages"] and keep > 0 and (had < 1 or keep < had):
        raise refuse("max_msgs_per_subject", "older messages of a subject would be dropped")


def _older_than(stamp: str, age_ns: int) -> bool:
    return dt.datetime.now(dt.UTC) - parse_time(_micros(stamp)) > dt.timedelta(microseconds=age_ns / 1000)


def _micros(stamp: str) -> str:
    """The server writes nanoseconds without trailing zeros; Python reads three or six digits."""
    head, _, fraction = stamp.removesuffix("Z").partition(".")
    return f"{head}.{fraction[:6]:0<6}+00:00"
