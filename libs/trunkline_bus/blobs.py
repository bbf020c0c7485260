"""Large values, content-addressed: an object of the bucket `trunk_blobs` is named by the sha256 (hex) of its bytes.

The layout is that of NATS object stores (ADR-20), so that any NATS client can read one. Writing the same value again
stores nothing.
"""

import asyncio
import base64
import hashlib
import uuid
from typing import Any, Final

import msgspec
import nats.errors

from trunkline_bus import leader, metrics
from trunkline_bus.connection import Bus
from trunkline_bus.mux import Lost, NoAnswer
from trunkline_bus.obstacles import Condition, Obstacles
from trunkline_bus.shrink import LIMIT, Fits, reference, shrink
from trunkline_wire import Event, TrunklineError, decode_event, encode, make_event, subjects, timestamp
from trunkline_wire.blocks import BlobRef
from trunkline_wire.work import NativeMessage

STREAM: Final = f"OBJ_{subjects.BLOBS}"
CHUNK: Final = 128 * 1024
_READ_WITHIN_S: Final = 5.0


class _Meta(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    nuid: str
    size: int
    chunks: int
    digest: str
    bucket: str = subjects.BLOBS
    mtime: str = ""
    deleted: bool = False
    headers: dict[str, list[str]] | None = None
    options: dict[str, Any] | None = None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a blob of `size` bytes; `next` asks for the following one, None where this was the last."""

    size: int
    data: bytes
    next: str | None = None


class Blobs:
    """The blob store of a bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def put(
        self, data: bytes, media_type: str = "text/plain", *, condition: Condition = lambda _: None
    ) -> BlobRef:
        """Store `data` unless it is there; the reference has a preview if it is text.

        `condition` and the errors are those of `append.store`: it waits for a server that can't be reached.
        """
        found = reference(data, media_type)
        obstacles, tries = Obstacles(condition), 0
        while not await self._has(found.sha256):
            try:
                await self._upload(found.sha256, data)
                metrics.BLOB_BYTES.inc(len(data))
                break
            except Lost:
                pass
            except NoAnswer:
                obstacles.stands("log_unwritable", "the blob store does not answer", already=leader.ACK_WITHIN_S)
            except _RefusedError as refusal:
                code = "log_full" if refusal.full else "log_unwritable"
                obstacles.stands(code, f"the blob store refuses {len(data)} bytes: {refusal}")
            await leader.pause(self._bus.mux, tries)
            tries += 1
        obstacles.gone()
        return found

    async def shrink(self, event: Event, *, condition: Condition = lambda _: None) -> Event:
        """The event itself if it fits a message, else one whose largest fields are references; `native` goes first.

        What can't be made to fit becomes a `native.message` (`known` False, reason `too_large`) with the whole event
        as a reference in `native`: its place in the log is kept, and so is its content.
        """
        raw = encode(event)
        return event if len(raw) <= LIMIT else decode_event(await self.shrink_encoded(event, raw, condition=condition))

    async def shrink_encoded(self, event: Event, raw: bytes, *, condition: Condition = lambda _: None) -> bytes:
        """`shrink` for an event that is encoded already as `raw`; returns the encoded event."""
        try:
            return await self.shrink_value(raw, decode_event, first=("native",), condition=condition)
        except TrunklineError as error:
            if error.code != "too_large":
                raise
        whole = await self.put(raw, "application/json", condition=condition)
        data = NativeMessage(known=False, kind=event.type, reason="too_large")
        fields = {name: getattr(event, name) for name in event.__struct_fields__ if name not in ("v", "data", "native")}
        return encode(make_event(data, native=msgspec.Raw(encode(whole)), **fields))

    async def shrink_value(
        self,
        raw: bytes,
        fits: Fits,
        *,
        limit: int = LIMIT,
        first: tuple[str, ...] = (),
        condition: Condition = lambda _: None,
    ) -> bytes:
        """The JSON object `raw` in at most `limit` bytes, for KV values too; `fits`, `first` and errors as in `shrink.shrink`."""
        if len(raw) <= limit:
            return raw
        # A message of megabytes takes longer than the loop may stand still.
        shrunk = await asyncio.to_thread(shrink, raw, fits, limit=limit, first=first)
        for data, media_type in shrunk.taken:
            await self.put(data, media_type, condition=condition)
        return shrunk.raw

    async def get(self, sha256: str) -> bytes:
        """The bytes. Raises TrunklineError `blob_missing` where they are not there, or not as they were written."""
        part = await self.part(sha256)
        parts = [part.data]
        while part.next is not None:
            part = await self.part(sha256, part.next)
            parts.append(part.data)
        whole = b"".join(parts)
        if hashlib.sha256(whole).hexdigest() != sha256:
            raise TrunklineError("blob_missing", f"the blob {sha256} is not what was written", sha256=sha256)
        return whole

    async def part(self, sha256: str, after: str | None = None) -> Part:
        """The first part, or the one after that with this `next`. Whoever has them all checks the hash.

        Raises TrunklineError `blob_missing`, and `bad_params` for an `after` that is none.
        """
        found = await leader.last_of(self._bus.mux, STREAM, _meta_subject(sha256))
        meta = msgspec.json.decode(found.raw, type=_Meta) if found is not None and found.raw else None
        if meta is None or meta.deleted:
            raise TrunklineError("blob_missing", f"there is no blob {sha256}", sha256=sha256)
        number, sequence = _place(after)
        if number >= meta.chunks:
            return Part(size=meta.size, data=b"")
        chunk = await self._chunk(meta.nuid, sequence + 1)
        if chunk is None:
            raise TrunklineError("blob_missing", f"the blob {sha256} lacks a part", sha256=sha256)
        sequence, data = chunk
        number += 1
        return Part(size=meta.size, data=data, next=f"{number}-{sequence}" if number < meta.chunks else None)

    async def _has(self, name: str) -> bool:
        found = await leader.last_of(self._bus.mux, STREAM, _meta_subject(name))
        return found is not None and bool(found.raw) and not msgspec.json.decode(found.raw, type=_Meta).deleted

    async def _upload(self, name: str, data: bytes) -> None:
        nuid = uuid.uuid4().hex
        chunks = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
        for chunk in chunks:
            await self._publish(f"$O.{subjects.BLOBS}.C.{nuid}", chunk)
        meta = _Meta(
            name=name,
            nuid=nuid,
            size=len(data),
            chunks=len(chunks),
            digest="SHA-256=" + base64.urlsafe_b64encode(bytes.fromhex(name)).decode(),
            mtime=timestamp(),
            options={"max_chunk_size": CHUNK},
        )
        await self._publish(_meta_subject(name), msgspec.json.encode(meta), {"Nats-Rollup": "sub"})

    async def _publish(self, subject: str, payload: bytes, headers: dict[str, str] | None = None) -> None:
        answer = await leader.publish(self._bus.mux, subject, payload, headers)
        if not isinstance(answer, int):
            raise _RefusedError(answer)

    async def _chunk(self, nuid: str, sequence: int) -> tuple[int, bytes] | None:
        """The next chunk at or after `sequence`: from any replica, from the leader where that one lacks it."""
        request = {"seq": sequence, "next_by_subj": f"$O.{subjects.BLOBS}.C.{nuid}"}
        try:
            answer = await self._bus.reading.request(
                f"$JS.API.DIRECT.GET.{STREAM}", msgspec.json.encode(request), timeout=_READ_WITHIN_S
            )
            headers = answer.headers or {}
            if "Nats-Sequence" in headers:
                return int(headers["Nats-Sequence"]), answer.data
        except nats.errors.Error:
            pass  # the leader is asked for as long as it takes
        found = await leader.get(self._bus.mux, STREAM, request)
        return (found.sequence, found.raw) if found is not None else None


def _place(after: str | None) -> tuple[int, int]:
    """(parts so far, the stream sequence of the last one)."""
    number, _, sequence = ("0-0" if after is None else after).partition("-")
    if not (number.isdecimal() and sequence.isdecimal() and len(sequence) < 20):
        raise TrunklineError("bad_params", f"{after!r} is no `next` of a part", field="after")
    return int(number), int(sequence)


class _RefusedError(Exception):
    def __init__(self, answer: leader.Refusal) -> None:
        super().__init__(str(answer))
        self.full = answer.err_code in leader.FULL


def _meta_subject(name: str) -> str:
    return f"$O.{subjects.BLOBS}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"


async def subjects_of(bus: Bus, sha256: str) -> list[str]:
    """The subjects that hold a blob, for whoever deletes it; [] where there is none."""
    found = await leader.last_of(bus.mux, STREAM, _meta_subject(sha256))
    if found is None or not found.raw:
        return []
    meta = msgspec.json.decode(found.raw, type=_Meta)
    return [f"$O.{subjects.BLOBS}.C.{meta.nuid}", _meta_subject(sha256)]
