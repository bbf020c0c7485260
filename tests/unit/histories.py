"""Reads histories for tests, and compares them with what was derived by hand."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.unit.claude.recorded import whole

from trunkline_agentkit.history import Entry, HistoryFile, KeepsHistories, Line, Reading, Summary, context
from trunkline_fold.check import Violation, check_session
from trunkline_wire import Event, make_event
from trunkline_wire.ids import item_id
from trunkline_wire.session import SessionClosed

RECORDINGS = Path(__file__).parents[1] / "recordings" / "history"
SESSION = "ses_" + "5" * 32


class Told:
    """What a reading made of lines, each event with the place of its line."""

    def __init__(self, adapter: KeepsHistories, lines: Iterable[Line], native: str = "native") -> None:
        self.native = native
        self.reading = Reading(SESSION, native, adapter.history_translator(context(SESSION, native)))
        self.entries: list[tuple[str, Entry]] = []
        self._place = ""
        for entry in self.reading.entries(self._watched(lines)):
            self.entries.append((self._place, entry))

    def _watched(self, lines: Iterable[Line]) -> Iterator[Line]:
        for line in lines:
            self._place = line.place
            yield line
        self._place = "end"

    @property
    def summary(self) -> Summary:
        return self.reading.summary(HistoryFile(native=self.native, path=Path("x")))

    def types(self) -> list[str]:
        return [entry.data.TYPE for _, entry in self.entries]

    def data(self, kind: str) -> list[Any]:
        return [whole(entry.data) for _, entry in self.entries if kind == entry.data.TYPE]

    def violations(self) -> list[Violation]:
        """What is wrong with the session that it becomes."""
        events: list[tuple[int, str, Event]] = []
        for seq, (_, one) in enumerate(self.entries, 1):
            envelope = {"turn": one.turn, "item": one.item, "lane": one.lane, "seq": seq, "epoch": 1}
            event = make_event(one.data, id=one.id, session=SESSION, time=one.time, **envelope)
            events.append((seq, "agent.fact", event))
        last = len(events) + 1
        closed = make_event(SessionClosed(reason="imported"), session=SESSION, time="", seq=last, epoch=1)
        return check_session([*events, (last, "agent.fact", closed)])


def file_of(case: Path) -> HistoryFile:
    """The history of a case: the session's own file, or the first of those that one keeps in its directory of chats."""
    if chats := sorted((case / "chats").glob("*.jsonl")):
        return HistoryFile(native=json.loads(chats[0].read_text().splitlines()[0])["sessionId"], path=chats[0])
    (path,) = [path for path in case.glob("*.jsonl") if path.name != "expected.jsonl"]
    return HistoryFile(native=path.stem, path=path)


def read(adapter: KeepsHistories, case: Path) -> Told:
    file = file_of(case)
    return Told(adapter, adapter.history_lines(file), file.native)


def tell(adapter: KeepsHistories, *lines: dict[str, Any] | bytes) -> Told:
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return Told(adapter, [Line(number, line) for number, line in enumerate(raw, 1)])


def compare(adapter: KeepsHistories, case: Path) -> None:
    """Fails unless the file of a case gives exactly the expected events, in order, with the expected fields."""
    compare_told(read(adapter, case), case)


def compare_told(told: Told, case: Path) -> None:
    expected = [json.loads(line) for line in (case / "expected.jsonl").read_text().splitlines()]
    assert [(place, entry.data.TYPE) for place, entry in told.entries] == [(e["place"], e["type"]) for e in expected]
    for want, (_, entry) in zip(expected, told.entries, strict=True):
        where = f"{case.name} {want['place']} {want['type']}"
        assert entry.time[11:23] == want["time"], where
        for field in ("item", "lane"):
            native = want.get(field)
            assert getattr(entry, field) == (native and item_id(SESSION, told.native, native)), f"{where} {field}"
        _matches(want["data"], whole(entry.data), told.native, where)


def _matches(expected: Any, found: Any, native: str, where: str) -> None:
    """Every expected field is there with that value; `$item` is a native id."""
    if isinstance(expected, dict) and "$item" in expected:
        expected = item_id(SESSION, native, expected["$item"])
    if isinstance(expected, dict):
        assert isinstance(found, dict), where
        for key, value in expected.items():
            _matches(value, found.get(key), native, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, value in enumerate(expected):
            _matches(value, found[number], native, f"{where}[{number}]")
    else:
        assert found == expected, where
