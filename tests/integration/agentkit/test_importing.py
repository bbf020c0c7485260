"""Histories become sessions on a real server: whole, once, and gone on with after a death."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agentkit import claude_history
from tests.integration.agentkit.claude_history import EVENTS_A_TURN, MESSAGES_A_TURN

from trunkline_agentkit.history import HistoryFile, KeepsHistories
from trunkline_agentkit.importing import Imported, import_history
from trunkline_agentkit.place import Place
from trunkline_agentkit.registry import load
from trunkline_bus import direct
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_bus.stored import Stored
from trunkline_bus.writer import SessionWriter
from trunkline_fold.check import check_session
from trunkline_fold.session import SessionState, fold_session, initial
from trunkline_wire import AgentRef, TrunklineError, subjects
from trunkline_wire.ids import new_host_id, new_worker_id
from trunkline_wire.session import SessionClosed, SessionErased
from trunkline_wire.turn import TurnCompleted

HOST = new_host_id()
AROUND = 3
"""Events of an import that no line stands for: the creation, what is known of the session, the end."""


class Importer:
    def __init__(self, bus: Bus, home: Path) -> None:
        adapter: Any = load("claude")
        assert isinstance(adapter, KeepsHistories)
        self.adapter: KeepsHistories = adapter
        self.bus = bus
        self.home = home

    def file(self, turns: int) -> HistoryFile:
        path = claude_history.write(self.home, turns)
        return HistoryFile(native=path.stem, path=path)

    async def run(self, file: HistoryFile, **given: Any) -> Imported:
        return await import_history(self.bus, self.home, HOST, "claude", self.adapter, file, **given)

    async def stored(self, session: str) -> list[Stored]:
        found = await read_session(self.bus, session)
        assert check_session([(one.sequence, one.subject, one.event()) for one in found]) == []
        return found


@pytest.fixture
def importer(bus: Bus, tmp_path: Path) -> Importer:
    return Importer(bus, tmp_path)


def folded(session: str, stored: list[Stored]) -> SessionState:
    state = initial(session)
    for one in stored:
        state = fold_session(state, one.event(), one.sequence)
    return state


@pytest.mark.slow
async def test_four_thousand_messages_are_whole_joined_and_there_once(importer: Importer) -> None:
    turns = 1334
    file = importer.file(turns)
    seen: list[int] = []
    done = await importer.run(file, progress=seen.append)
    assert (done.outcome, done.summary.messages) == ("imported", turns * MESSAGES_A_TURN)
    assert (done.events, done.written) == (turns * EVENTS_A_TURN + AROUND,) * 2
    assert seen == sorted(seen)
    assert seen[-1] == done.events
    stored = await importer.stored(done.session)
    events = [one.event() for one in stored]
    assert Counter(event.type for event in events) == {
        "session.created": 1,
        "session.updated": 1,
        "session.closed": 1,
        "message.user": turns,
        "message.assistant": turns * 3,
        "tool.started": turns,
        "tool.completed": turns,
        "turn.started": turns,
        "turn.completed": turns,
    }
    begun = {event.item: event.turn for event in events if event.type == "tool.started"}
    assert {event.item: event.turn for event in events if event.type == "tool.completed"} == begun
    assert len(begun) == turns
    assert {event.source.via for event in events if event.source is not None} == {"import"}
    assert all(event.source is not None for event in events)
    state = folded(done.session, stored)
    assert (state.status, state.native_session, state.turns) == ("closed", file.native, turns)
    assert (state.created, state.updated) == (done.summary.began, done.summary.ended)
    assert (state.title, state.cwd) == ("SCENARIO=write FILE=one.txt TEXT=one", "/home/dev/project")

    before = await direct.end(importer.bus, subjects.EVENTS)
    again = await importer.run(file)
    assert (again.outcome, again.session) == ("already_imported", done.session)
    assert (again.events, again.written) == (done.events, 0)
    assert await direct.end(importer.bus, subjects.EVENTS) == before


class Killed(Exception):  # noqa: N818
    pass


async def test_an_import_that_was_cut_off_is_gone_on_with(importer: Importer) -> None:
    """Cut off twice in the middle of turns: each event is there once, in the order of the file."""
    file = importer.file(60)

    def die(_: int) -> None:
        raise Killed

    for _ in range(2):
        with pytest.raises(Killed):
            await importer.run(file, progress=die)
    done = await importer.run(file)
    assert done.outcome == "imported"
    whole = await importer.stored(done.session)
    claims = [one for one in whole if one.type == "session.claimed"]
    assert len(claims) == 2
    assert len(whole) == done.events == 60 * EVENTS_A_TURN + AROUND + len(claims)

    other = Importer(importer.bus, importer.home / "other")
    fresh = other.file(60)
    undisturbed = await other.run(fresh)
    kinds = [one.type for one in await other.stored(undisturbed.session)]
    assert [one.type for one in whole if one not in claims] == kinds
    assert (
        folded(done.session, whole).counts
        == folded(undisturbed.session, await other.stored(undisturbed.session)).counts
    )
    assert (await importer.run(file)).outcome == "already_imported"


class Growing:
    """A history that an agent goes on with while its import dies."""

    def __init__(self, importer: Importer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.importer = importer
        self.file = importer.file(3)
        self.lines = self.file.path.read_text().splitlines(keepends=True)
        self._patch = monkeypatch

    def holds(self, lines: int | None) -> None:
        self.file.path.write_text("".join(self.lines[:lines]))

    async def dies_before(self, kind: type[Any], ends: int) -> None:
        """An import that dies when it is about to append the `ends`th event of that type, all before it being in the log."""
        append, seen = SessionWriter.append, 0

        def mortal(writer: SessionWriter, data: Any, **given: Any) -> Any:
            nonlocal seen
            seen += isinstance(data, kind)
            if isinstance(data, kind) and seen == ends:
                raise Killed
            return append(writer, data, **given)

        with self._patch.context() as patched:
            patched.setattr(SessionWriter, "append", mortal)
            with pytest.raises(Killed):
                await self.importer.run(self.file)


@pytest.fixture
def growing(importer: Importer, monkeypatch: pytest.MonkeyPatch) -> Growing:
    return Growing(importer, monkeypatch)


def kinds_of(stored: list[Stored]) -> Counter[str | None]:
    return Counter(one.type for one in stored)


@pytest.mark.parametrize("held", ["a turn", "a call without a result"])
async def test_a_history_that_grows_before_its_import_is_closed_has_no_turn_that_ends_twice(
    growing: Growing, held: str
) -> None:
    """Dead between the end of the last turn and `session.closed`: what the file has got since would go on with that turn."""
    results = [number for number, line in enumerate(growing.lines) if '"tool_result"' in line]
    growing.holds(results[1] if held == "a call without a result" else len(growing.lines) // 3 * 2 - 1)
    await growing.dies_before(SessionClosed, 1)
    growing.holds(None)
    done = await growing.importer.run(growing.file)
    stored = await growing.importer.stored(done.session)
    kinds = kinds_of(stored)
    assert (kinds["turn.started"], kinds["turn.completed"], kinds["session.closed"]) == (2, 2, 1)
    assert (kinds["tool.started"], kinds["tool.completed"]) == (2, 2)
    assert (await growing.importer.run(growing.file)).outcome == "already_imported"


async def test_a_history_that_grows_in_the_midst_of_its_last_turns_end_ends_it_once(growing: Growing) -> None:
    """Dead when the call without a result is told as cancelled, and the end of its turn is not."""
    results = [number for number, line in enumerate(growing.lines) if '"tool_result"' in line]
    growing.holds(results[1])
    await growing.dies_before(TurnCompleted, 2)
    growing.holds(None)
    done = await growing.importer.run(growing.file)
    kinds = kinds_of(await growing.importer.stored(done.session))
    assert (kinds["turn.started"], kinds["turn.completed"], kinds["session.closed"]) == (2, 2, 1)
    assert (kinds["tool.started"], kinds["tool.completed"]) == (2, 2)


async def test_a_history_that_grows_before_its_last_turn_has_ended_is_read_to_its_new_end(growing: Growing) -> None:
    growing.holds(len(growing.lines) // 3 * 2 - 1)
    await growing.dies_before(TurnCompleted, 2)
    growing.holds(None)
    done = await growing.importer.run(growing.file)
    kinds = kinds_of(await growing.importer.stored(done.session))
    assert (kinds["turn.started"], kinds["turn.completed"], kinds["session.closed"]) == (3, 3, 1)


async def test_two_imports_at_once_make_one_session(importer: Importer) -> None:
    file = importer.file(40)
    results = await asyncio.gather(importer.run(file), importer.run(file), return_exceptions=True)
    done = [one for one in results if isinstance(one, Imported)]
    refused = [one for one in results if isinstance(one, TrunklineError)]
    assert [one.outcome for one in done] == ["imported"]
    assert [one.code for one in refused] == ["fenced"]
    assert len(await importer.stored(done[0].session)) == 40 * EVENTS_A_TURN + AROUND


async def test_a_session_that_was_erased_stays_erased(importer: Importer) -> None:
    file = importer.file(1)
    session = (await importer.run(file)).session
    agent = AgentRef(adapter="claude")
    async with await SessionWriter.claim(
        importer.bus, session, worker=new_worker_id(), host=HOST, agent=agent
    ) as writer:
        writer.append(SessionErased(by="operator"))
    with pytest.raises(TrunklineError) as refused:
        await importer.run(file)
    assert refused.value.code == "session_exists"


async def test_malformed_lines_are_reported_and_the_rest_is_imported(importer: Importer) -> None:
    file = importer.file(2)
    kept = file.path.read_text().splitlines(keepends=True)
    file.path.write_text("".join([kept[0], "{broken\n", *kept[1:], kept[-1][:40]]))
    done = await importer.run(file)
    assert (done.outcome, done.summary.malformed) == ("imported", ["2", str(len(kept) + 2)])
    assert len(await importer.stored(done.session)) == 2 * EVENTS_A_TURN + AROUND


async def test_a_history_without_a_prompt_makes_no_session(importer: Importer) -> None:
    file = importer.file(0)
    done = await importer.run(file)
    assert done.outcome == "empty"
    assert await read_session(importer.bus, done.session) == []


async def test_an_imported_session_is_one_of_this_host(importer: Importer) -> None:
    done = await importer.run(importer.file(1))
    record = Place(importer.home, done.session).record
    assert record is not None
    assert (record.adapter, record.cwd, record.closed, record.worker) == ("claude", "/home/dev/project", True, None)
