"""A history of an agent becomes a closed session: written whole and in order, gone on with after a death, never twice.

The session's id follows from adapter and native id, its events' ids from the history's lines. A complete import ends in
`session.closed` with the reason `imported`; where that is missing, the next import claims the session and writes what the
log does not hold yet. One that had come to the file's end is only ended: what the file has got since is left out, as it is
behind a complete import. While it writes it has the session's lock of this host, so no worker and no second import interferes.
Then the session is written down as one of this host: a `resume` wakes a worker, which takes up the native session.

Events have no `origin`: that counts what an agent said to its owner. Every one is marked by its source.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import msgspec

from trunkline_agentkit.history import HistoryFile, KeepsHistories, Line, Reading, Summary, context, millis, summarise
from trunkline_agentkit.place import Place, Record
from trunkline_bus import direct, kv, mirror
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_bus.stored import Stored
from trunkline_bus.tasks import together
from trunkline_bus.views import decode_document
from trunkline_bus.writer import SessionWriter
from trunkline_fold.state import decode_state
from trunkline_wire import AgentRef, Source, TrunklineError, subjects
from trunkline_wire.ids import imported_event_id, imported_session_id, new_worker_id, workspace_id
from trunkline_wire.session import SessionClosed, SessionCreated, SessionErased, SessionUpdated

IMPORTED: Final = "imported"
SOURCE: Final = Source(actor="history", via="import")
_EVERY: Final = 100
"""Events between two calls of `progress`."""

Progress = Callable[[int], None]
Outcome = Literal["imported", "already_imported", "empty"]


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a history: `events` are those that the log has of it now, `written` those of this import.

    `empty` is a history without a single prompt: nothing is made of it.
    """

    session: str
    outcome: Outcome
    summary: Summary
    events: int = 0
    written: int = 0


def session_of(adapter: str, summary: Summary) -> str:
    """The id of the session that a history becomes."""
    return imported_session_id(adapter, summary.native, millis(summary.began))


async def import_history(
    bus: Bus,
    home: Path,
    host: str,
    name: str,
    adapter: KeepsHistories,
    file: HistoryFile,
    *,
    progress: Progress = lambda _: None,
) -> Imported:
    """Imports one history of the adapter `name`; `progress` is told how many events were given to the log.

    Raises TrunklineError `session_exists` where the session was erased, `fenced` where another import of it runs, and
    what a SessionWriter raises; OSError where the history can't be read.
    """
    summary = await asyncio.to_thread(summarise, adapter, file)
    session = session_of(name, summary)
    if summary.turns == 0:
        return Imported(session=session, outcome="empty", summary=summary)
    place = Place(home, session)
    stored = await read_session(bus, session)
    if _is_complete(session, stored) and place.record is not None:
        return Imported(session=session, outcome="already_imported", summary=summary, events=len(stored))
    if not await asyncio.to_thread(place.lock):
        raise TrunklineError("fenced", f"{session!r} is in use: another import of it runs, or a worker owns it")
    try:
        stored = await read_session(bus, session)
        written = 0
        complete = _is_complete(session, stored)
        if not complete:
            known = {one.id for one in stored if one.id is not None}
            until = await asyncio.to_thread(_end_of, session, adapter, file, stored)
            written = await _write(bus, host, name, adapter, file, summary, known, until, progress)
        if place.record is None:
            record = Record(session=session, adapter=name, cwd=summary.cwd or "/", closed=True)
            await asyncio.to_thread(place.write, record)
    finally:
        place.unlock()
    outcome: Outcome = "already_imported" if complete else "imported"
    return Imported(session=session, outcome=outcome, summary=summary, events=len(stored) + written, written=written)


async def known_natives(bus: Bus) -> dict[str, str]:
    """The sessions of the log by native id, those included that were never imported but run by Trunkline.

    By whatever adapter: two ways of speaking with an agent leave the same history.
    """
    edition = await mirror.edition(bus, subjects.KV_SESSIONS)
    found: dict[str, str] = {}
    if edition is None:
        return found
    for entry in await kv.entries(bus, subjects.KV_SESSIONS, edition.key("*")):
        state = decode_state(bytes(decode_document(entry.value or b"").state))
        for native in state.aliases:
            found[native] = state.session
    return found


async def imported_natives(bus: Bus, found: Iterable[tuple[str, Summary]]) -> dict[str, str]:
    """Those of the histories `found`, each with its adapter, that the log has as imports: no projector has to have seen it."""
    sessions = {session_of(name, summary): summary.native for name, summary in found}
    facts = (direct.last(bus, bus.layout.of(one), subjects.event(one, "agent.fact")) for one in sessions)
    lasts = await together(facts)
    return {
        native: session
        for (session, native), last in zip(sessions.items(), lasts, strict=True)
        if last is not None and last.type != SessionErased.TYPE
    }


def _is_complete(session: str, stored: list[Stored]) -> bool:
    """Whether the log holds all of an import. Raises `session_exists` for a session that was erased."""
    if any(one.type == SessionErased.TYPE for one in stored):
        raise TrunklineError("session_exists", f"{session!r} was erased: it is not imported again", session=session)
    ends = [one.event().data for one in stored if one.type == SessionClosed.TYPE]
    return any(isinstance(end, SessionClosed) and end.reason == IMPORTED for end in ends)


def _end_of(session: str, adapter: KeepsHistories, file: HistoryFile, stored: list[Stored]) -> int | None:
    """How many lines the history had when an import came to its end; None where none has, as far as the log tells.

    What an import writes behind the last line stands for no line: it ends what was open there. Blocking.
    """
    left = {one.id for one in stored if not (one.type or "").startswith("session.")}
    read = last = 0
    ended = not left

    def lines() -> Iterator[Line]:
        nonlocal read, ended
        for line in adapter.history_lines(file):
            read += 1
            yield line
        ended = True

    reading = Reading(session, file.native, adapter.history_translator(context(session, file.native)))
    for entry in () if ended else reading.entries(lines()):
        if not ended and entry.id in left:
            left.discard(entry.id)
            last = read
    return last if left else None


async def _write(
    bus: Bus,
    host: str,
    name: str,
    adapter: KeepsHistories,
    file: HistoryFile,
    summary: Summary,
    known: set[str],
    until: int | None,
    progress: Progress,
) -> int:
    """Everything of the history's first `until` lines that is not among the `known` ids; returns how many events that were."""
    session = session_of(name, summary)
    cwd = summary.cwd or "/"
    created = SessionCreated(
        adapter=name,
        agent=summary.agent,
        cwd=cwd,
        host=host,
        workspace=workspace_id(host, await asyncio.to_thread(os.path.realpath, cwd)),
        title=summary.title or None,
        spawn=f"cmd_{session.removeprefix('ses_')}",
    )
    agent = AgentRef(adapter=name, agent=summary.agent, version=summary.version)
    writer = await SessionWriter.create(
        bus, created, session=session, worker=new_worker_id(), agent=agent, time=summary.began, source=SOURCE
    )
    before = writer.seq
    async with writer:
        updated = SessionUpdated(native_session=summary.native, model=summary.model, mode=summary.mode)
        _append(writer, updated, "begin", summary.began, known)
        reading = Reading(session, summary.native, adapter.history_translator(context(session, summary.native)))
        for entry in reading.entries(islice(adapter.history_lines(file), until)):
            if entry.id in known:
                continue
            await writer.room()
            writer.append(
                entry.data,
                id=entry.id,
                turn=entry.turn,
                item=entry.item,
                lane=entry.lane,
                native=entry.native,
                time=entry.time,
                source=SOURCE,
            )
            if writer.seq % _EVERY == 0:
                _refuse_full(writer)
                progress(writer.seq - writer.queued)
                await asyncio.sleep(0)
        _append(writer, SessionClosed(reason=IMPORTED), "closed", reading.ended or summary.ended, known)
        await writer.flush()
        progress(writer.seq)
        # Its own first event is in the log already: the creation, or the claim of an import that goes on.
        return writer.seq - before + 1


def _refuse_full(writer: SessionWriter) -> None:
    """The rest of a log that is nearly full is for what runs."""
    condition = writer.condition
    if condition is not None and condition.code == "log_full":
        raise condition


def _append(
    writer: SessionWriter, data: SessionUpdated | SessionClosed, place: str, time: str, known: set[str]
) -> None:
    id = imported_event_id(writer.session, place, millis(time))
    if id not in known:
        writer.append(data, id=id, time=time, source=SOURCE)
