"""Copies of the log's truth as files, and putting them back into an empty server, sequence by sequence.

A backup is a directory: one snapshot a stream as the server gives it (JetStream's snapshot API), and `manifest.json` with
each one's hash and configuration. The log comes first, so that all it refers to (blobs, commands) is in what follows.
Projections are not in it: they are built from the log.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec
import nats.errors
from nats.js.errors import APIError

from trunkline_bus import jsapi, topology
from trunkline_bus.client import Received
from trunkline_bus.connection import Bus
from trunkline_wire import TrunklineError, subjects, timestamp

STREAMS: Final = (
    subjects.EVENTS,
    subjects.COMMANDS,
    subjects.SYSTEM,
    f"KV_{subjects.KV_TOKENS}",
    f"KV_{subjects.KV_DEVICES}",
    subjects.OBSERVED,
    subjects.DEADLETTER,
    f"OBJ_{subjects.BLOBS}",
)
"""What can't be made anew from something else, in the order in which it is copied."""

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
CHUNK: Final = 128 * 1024
SILENT_S: Final = 30.0
"""Seconds without a chunk after which a snapshot has failed."""

Say = Callable[[str], None]


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """One stream: its snapshot's file name, size in bytes and hash, what it held, and its configuration and state."""

    stream: str
    file: str
    size: int
    sha256: str
    messages: int
    first: int
    last: int
    config: dict[str, Any]
    state: dict[str, Any]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    time: str
    version: str
    log: str
    schema: int
    streams: list[Copy]


async def backup(bus: Bus, directory: Path, *, say: Say = lambda _: None) -> Manifest:
    """Copy STREAMS into `directory`, which is made, and is there whole or not at all.

    Raises `bad_params` where it exists, `log_unavailable` where the server stops answering, `forbidden` for a NATS user that may
    not make snapshots.
    """
    partial = await asyncio.to_thread(_begin, directory)
    log_id = await bus.read_log_id()
    copies: list[Copy] = []
    for stream in [*bus.layout.names, *STREAMS[1:]]:
        if await jsapi.stream_info(bus.js, stream) is None:
            continue
        copy = await _copy(bus, stream, partial)
        copies.append(copy)
        say(f"{stream}: {copy.messages} messages up to {copy.last}, {copy.size} bytes")
    schema = int(copies[0].config["metadata"].get(topology.SCHEMA_KEY, "0"))
    manifest = Manifest(
        format=FORMAT,
        time=timestamp(),
        version=metadata.version("trunkline"),
        log=log_id,
        schema=schema,
        streams=copies,
    )
    _write(partial / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    partial.rename(directory)
    return manifest


def check(directory: Path, *, say: Say = lambda _: None) -> Manifest:
    """The manifest, once every file is as it was written. Raises `bad_backup`."""
    try:
        manifest = msgspec.json.decode((directory / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise TrunklineError("bad_backup", f"{str(directory)!r} is no backup: {error}") from error
    if manifest.format != FORMAT or manifest.schema > topology.SCHEMA:
        raise TrunklineError(
            "bad_backup",
            f"it was made by Trunkline {manifest.version} (format {manifest.format}, schema {manifest.schema}), "
            f"this one reads format {FORMAT} and schema {topology.SCHEMA}: use that version, or a newer one",
        )
    for copy in manifest.streams:
        try:
            with (directory / copy.file).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise TrunklineError("bad_backup", f"{copy.file} can't be read: {error}") from error
        if found != copy.sha256:
            raise TrunklineError(
                "bad_backup", f"{copy.file} is not what was written: take another backup", file=copy.file
            )
        say(f"{copy.stream}: {copy.messages} messages, intact")
    return manifest


async def restore(
    bus: Bus, directory: Path, *, replicas: int | None = None, new_log: bool = False, say: Say = lambda _: None
) -> Manifest:
    """Put a checked backup into a server that has none of its streams, then apply the topology: projections build themselves.

    Sequences, times and the log's id are those of the backup, so that cursors stay valid: one from after the backup ends in a
    gap, by the id of its event. With `new_log` the log gets a new id, which ends all of them.
    Raises `bad_backup`, `topology_conflict` where a stream is there already, and what `apply` raises.
    """
    manifest = await asyncio.to_thread(check, directory)
    for copy in manifest.streams:
        if await jsapi.stream_info(bus.js, copy.stream) is not None:
            raise TrunklineError(
                "topology_conflict",
                f"the server has a stream {copy.stream} already: restore into an empty one",
                stream=copy.stream,
            )
    for copy in manifest.streams:
        config = copy.config if replicas is None else {**copy.config, "num_replicas": replicas}
        await _put_back(bus, directory / copy.file, copy, config)
        say(f"{copy.stream}: {copy.messages} messages up to {copy.last} are back")
    for line in await topology.apply(bus.js, replicas=replicas, restored=new_log):
        say(line)
    await bus.read_log_id()
    return manifest


def _begin(directory: Path) -> Path:
    if directory.exists():
        raise TrunklineError("bad_params", f"{str(directory)!r} exists already: name a new directory")
    partial = directory.with_name(f"{directory.name}.partial")
    partial.mkdir(mode=0o700, parents=True, exist_ok=True)
    return partial


async def _copy(bus: Bus, stream: str, directory: Path) -> Copy:
    name = f"{stream}.snapshot"
    digest, size = hashlib.sha256(), 0
    with (directory / name).open("wb") as file:
        os.chmod(directory / name, 0o600)  # noqa: PTH101 - by its name, before a byte is in it
        async with _snapshot(bus, stream) as (info, chunks):
            async for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
        file.flush()
        os.fsync(file.fileno())
    state = info["state"]
    return Copy(
        stream=stream,
        file=name,
        size=size,
        sha256=digest.hexdigest(),
        messages=state["messages"],
        first=state["first_seq"],
        last=state["last_seq"],
        config=info["config"],
        state=state,
    )


@asynccontextmanager
async def _snapshot(bus: Bus, stream: str) -> AsyncGenerator[tuple[dict[str, Any], AsyncGenerator[bytes]]]:
    """The server's answer, and the chunks as they come: each is acknowledged once it is taken, so none pile up."""
    queue: asyncio.Queue[Received] = asyncio.Queue()
    connection = bus.reading
    inbox = connection.new_inbox()
    subscription = await connection.subscribe_direct(inbox, queue.put_nowait)

    async def chunks() -> AsyncGenerator[bytes]:
        while True:
            try:
                message = await asyncio.wait_for(queue.get(), SILENT_S)
            except TimeoutError:
                raise TrunklineError("log_unavailable", f"the snapshot of {stream} came to a halt: try again") from None
            status = (message.headers or {}).get("Status")
            if not message.data:
                if status not in (None, "", "204"):
                    text = (message.headers or {}).get("Description", "")
                    raise TrunklineError("log_unavailable", f"the snapshot of {stream} failed: {status} {text}")
                return
            yield message.data
            if message.reply:
                await connection.publish(message.reply, b"")

    body = {"deliver_subject": inbox, "no_consumers": True, "chunk_size": CHUNK}
    try:
        info = await jsapi.request(bus.js_read, f"STREAM.SNAPSHOT.{stream}", body, wait=30.0)
        yield info, chunks()
    except nats.errors.TimeoutError as error:
        raise TrunklineError(
            "forbidden", f"no snapshot of {stream}: a backup needs the administrator's key (nats/keys/admin.nk)"
        ) from error
    finally:
        await subscription.unsubscribe()


async def _put_back(bus: Bus, path: Path, copy: Copy, config: dict[str, Any]) -> None:
    try:
        body = {"config": config, "state": copy.state}
        answer = await jsapi.request(bus.js, f"STREAM.RESTORE.{copy.stream}", body, wait=30.0)
        into: str = answer["deliver_subject"]
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                _refused(await bus.writing.request(into, chunk, timeout=SILENT_S), copy.stream)
        _refused(await bus.writing.request(into, b"", timeout=120.0), copy.stream)
    except APIError as error:
        raise TrunklineError("topology_conflict", f"the server refuses {copy.stream}: {error.description}") from error
    except nats.errors.Error as error:
        raise TrunklineError("log_unavailable", f"restoring {copy.stream} was not finished: {error}") from error


def _refused(answer: Any, stream: str) -> None:
    """Raises for an answer that is an error."""
    found: dict[str, Any] = msgspec.json.decode(answer.data) if answer.data.startswith(b"{") else {}
    if error := found.get("error"):
        raise TrunklineError("topology_conflict", f"the server refuses {stream}: {error.get('description')}")


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
