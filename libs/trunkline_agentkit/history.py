"""Histories that agents keep of their own: what an adapter tells of them, and a history's lines as events. Pure.

A history is the agent's own record of a session that Trunkline did not run. Read twice it gives the same: ids, turns and
times follow from the lines alone, so that an import that was cut off is gone on with, and a repeated one changes nothing.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

import msgspec

from trunkline_agentkit.fields import Obj
from trunkline_agentkit.framing import decode_line
from trunkline_agentkit.intake import turn_id
from trunkline_agentkit.protocol import Context, Fact
from trunkline_wire import Data, TrunklineError, parse_time, timestamp
from trunkline_wire.blocks import join_text
from trunkline_wire.ids import imported_event_id
from trunkline_wire.turn import MessageAssistant, MessageUser, TurnCompleted, TurnStarted
from trunkline_wire.work import NativeMessage

SHOWN: Final = 200
"""Characters of a first prompt that a summary keeps."""
_EPOCH: Final = "1970-01-01T00:00:00.000000Z"


class HistoryFile(msgspec.Struct, frozen=True, kw_only=True):
    """A history on the disk. `native` is the agent's own id of the session; `agent` names the agent of an adapter of several."""

    native: str
    path: Path
    agent: str | None = None


class Line(msgspec.Struct, frozen=True):
    """A line of a history: its number from 1, the file that it stands in where that is not the history's main one, and the
    fields that the file says by its place instead of in each line.
    """

    number: int
    raw: bytes
    file: str = ""
    fields: Mapping[str, str] = {}

    @property
    def place(self) -> str:
        return f"{self.file}:{self.number}" if self.file else str(self.number)


class About(msgspec.Struct, kw_only=True):
    """What a history says of its session, as far as it was read."""

    cwd: str | None = None
    title: str | None = None
    model: str | None = None
    mode: str | None = None
    version: str | None = None


class Dated(msgspec.Struct, frozen=True):
    """A fact with the time that the agent wrote beside it (RFC 3339)."""

    fact: Fact
    time: str | None = None


class HistoryTranslator(Protocol):
    """A pure state machine from a history's lines to facts. It begins and ends the turns itself."""

    @property
    def about(self) -> About: ...

    def feed(self, line: Obj) -> list[Dated]:
        """What a line means; [] for one that tells nothing of the conversation. May raise: the line is kept untranslated."""
        ...

    def end(self) -> list[Dated]:
        """The ends of what the last line has left open."""
        ...


@runtime_checkable
class KeepsHistories(Protocol):
    """An adapter whose agents keep histories of their own."""

    @property
    def history_agents(self) -> tuple[str, ...]:
        """The names of those agents, as `trunkline agents` has them."""
        ...

    def histories(self, agent: str | None = None) -> list[HistoryFile]:
        """All that there are, or those of one agent. Blocking. Raises TrunklineError where they can't be looked at.

        What it takes to look ends with the adapter's `close`.
        """
        ...

    def history_lines(self, file: HistoryFile) -> Iterator[Line]:
        """The lines of a history in order, as far as it is written now. Blocking. Raises OSError, TrunklineError."""
        ...

    def history_translator(self, context: Context) -> HistoryTranslator: ...

    async def close(self) -> None: ...


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An event to write. `native` is the line, on the first event made from it."""

    id: str
    data: Data
    time: str
    turn: str | None = None
    item: str | None = None
    lane: str | None = None
    native: bytes | None = None


class Reading:
    """Goes through a history once. `malformed` are the places of lines that are no JSON object: they are left out.

    `untranslated` are those of lines that the translator could not read: they are kept as native messages.
    """

    def __init__(self, session: str, native: str, translator: HistoryTranslator) -> None:
        self.translator = translator
        self.malformed: list[str] = []
        self.untranslated: list[str] = []
        self.began: str | None = None
        self.ended: str | None = None
        self.turns = 0
        self.messages = 0
        self.first_prompt = ""
        self._session = session
        self._native = native
        self._turn: str | None = None
        self._counted: set[str] = set()

    def entries(self, lines: Iterable[Line]) -> Iterator[Entry]:
        """The events of all lines, one after the other."""
        for line in lines:
            decoded = decode_line(line.raw)
            if decoded.message is None:
                self.malformed.append(line.place)
                continue
            message = {**decoded.message, **line.fields}
            yield from self._dated(line.place, self._translate(line, message), decoded.raw)
        yield from self._dated("end", self.translator.end(), None)

    def summary(self, file: HistoryFile) -> "Summary":
        """What was read, once `entries` is exhausted."""
        about = self.translator.about
        return Summary(
            native=file.native,
            agent=file.agent,
            path=str(file.path),
            cwd=about.cwd,
            title=about.title or self.first_prompt,
            model=about.model,
            mode=about.mode,
            version=about.version,
            began=self.began or _EPOCH,
            ended=self.ended or self.began or _EPOCH,
            turns=self.turns,
            messages=self.messages,
            malformed=self.malformed,
            untranslated=self.untranslated,
        )

    def _translate(self, line: Line, message: Obj) -> list[Dated]:
        try:
            return self.translator.feed(message)
        except Exception as error:  # noqa: BLE001  # whatever a version of the agent wrote, the rest is read
            self.untranslated.append(line.place)
            reason = f"translate_error: {type(error).__name__}"
            return [Dated(Fact(data=NativeMessage(known=False, kind="history", reason=reason)))]

    def _dated(self, place: str, out: list[Dated], raw: bytes | None) -> Iterator[Entry]:
        for part, one in enumerate(out, 1):
            fact = one.fact
            time = _micros(one.time) or self.ended or _EPOCH
            self.began, self.ended = self.began or _micros(one.time), time
            data = fact.data
            if isinstance(data, TurnStarted) and fact.lane is None:
                self.turns += 1
                self._turn = turn_id(self._session, self._native, self.turns)
                data = msgspec.structs.replace(data, number=self.turns)
            self._count(fact)
            yield Entry(
                id=imported_event_id(self._session, f"{place}/{part}", millis(time)),
                data=data,
                time=time,
                turn=self._turn,
                item=fact.item,
                lane=fact.lane,
                native=raw if part == 1 else None,
            )
            if isinstance(data, TurnCompleted) and fact.lane is None:
                self._turn = None

    def _count(self, fact: Fact) -> None:
        match fact.data:
            case MessageUser() | MessageAssistant() if fact.item is not None and fact.item not in self._counted:
                self._counted.add(fact.item)
                self.messages += 1
            case _:
                pass
        if isinstance(fact.data, MessageUser) and not (fact.data.synthetic or fact.lane or self.first_prompt):
            self.first_prompt = " ".join(join_text(fact.data.content).split())[:SHOWN]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A history that was read through: times are RFC 3339, `messages` counts those of user and agent, subagents included."""

    native: str
    agent: str | None
    path: str
    cwd: str | None
    title: str
    model: str | None
    mode: str | None
    version: str | None
    began: str
    ended: str
    turns: int
    messages: int
    malformed: list[str]
    untranslated: list[str]


def summarise(adapter: KeepsHistories, file: HistoryFile) -> Summary:
    """Reads a history through. Blocking. Raises OSError, TrunklineError."""
    reading = Reading(file.native, file.native, adapter.history_translator(context(file.native, file.native)))
    for _ in reading.entries(adapter.history_lines(file)):
        pass
    return reading.summary(file)


def context(session: str, native: str) -> Context:
    """The context in which a history is translated: its items are named after the native session, for ever."""
    return Context(session=session, incarnation=native, cwd="")


def lines_of(path: Path, file: str = "", fields: Mapping[str, str] | None = None) -> Iterator[Line]:
    """The lines that the file holds now, blank ones left out. A last line that was cut off is one too, and malformed."""
    with path.open("rb") as stream:
        left = path.stat().st_size
        for number, raw in enumerate(stream, 1):
            left -= len(raw)
            if raw.strip():
                yield Line(number, raw.rstrip(b"\r\n"), file, fields or {})
            if left <= 0:
                return


def millis(time: str) -> int:
    """Milliseconds since 1970 of a time in RFC 3339."""
    return int(parse_time(time).timestamp() * 1000)


def _micros(time: str | None) -> str | None:
    """The time as events have it; None for none, or for one of another form."""
    if time is None:
        return None
    try:
        moment = parse_time(time)
    except TrunklineError:
        return None
    return timestamp(moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC))
