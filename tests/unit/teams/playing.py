"""A log of facts and observations, derived and folded as a writer of team events does it."""

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from tests.unit.claude.recorded import CONTEXT, replay_file

from trunkline_fold.team import (
    Caveat,
    Input,
    Team,
    decode_deriver,
    decode_teams,
    encode_deriver,
    encode_teams,
    fold_teams,
    hear,
    initial_deriver,
    initial_teams,
    next_event,
)
from trunkline_wire import Data, Event, decode_event, encode, make_event, timestamp
from trunkline_wire.blocks import TextBlock
from trunkline_wire.ids import imported_event_id
from trunkline_wire.observed import Observation, make_observation
from trunkline_wire.session import Capabilities, SessionInitialized
from trunkline_wire.subjects import EVENTS, OBSERVED
from trunkline_wire.turn import ToolCompleted, ToolStarted

SESSION = CONTEXT.session
NATIVE = "6a3701f9-0000-4000-8000-000000000000"
HOST = "hst_" + "0" * 32
START = dt.datetime(2026, 11, 27, 21, 0, tzinfo=dt.UTC)


class Playing:
    """Feeds inputs; what is derived is in `written`, in order. With `restarts` all state is stored and read again each time."""

    def __init__(self, *, restarts: bool = False) -> None:
        self.deriver = initial_deriver(SESSION)
        self.board = initial_teams(SESSION)
        self.sequence = 0
        self.seen = 0
        self.now = START
        self.written: list[Event] = []
        self.caveats: list[Caveat] = []
        self.inputs: list[Input] = []
        self._restarts = restarts
        self._calls = 0

    def fact(self, data: Data, **fields: Any) -> list[Event]:
        self.now += dt.timedelta(seconds=1)
        about = {"session": SESSION, "time": timestamp(self.now)} | fields
        return self.event(make_event(data, **about))

    def event(self, event: Event) -> list[Event]:
        self.sequence += 1
        return self.feed(Input(stream=EVENTS, sequence=self.sequence, what=event))

    def observe(self, data: Data, **fields: Any) -> list[Event]:
        self.now += dt.timedelta(seconds=1)
        self.seen += 1
        id = imported_event_id(SESSION, f"seen/{self.seen}", self.seen)
        about = {"host": HOST, "time": timestamp(self.now), "native_session": NATIVE, "id": id} | fields
        what: Observation = make_observation(data, **about)
        return self.feed(Input(stream=OBSERVED, sequence=self.seen, what=what))

    def feed(self, what: Input) -> list[Event]:
        """The events that an input brings; they stand in the log behind it."""
        self.inputs.append(what)
        heard = hear(self.deriver, what)
        self.caveats += heard.caveats
        new: list[Event] = []
        while (derived := next_event(self.board, heard)) is not None:
            raw = encode(derived.event())
            event = decode_event(raw, strict=True)
            self.sequence += 1
            self.board = fold_teams(self.board, event, self.sequence)
            new.append(event)
        self.written += new
        if self._restarts:
            self.deriver = decode_deriver(encode_deriver(self.deriver))
            self.board = decode_teams(encode_teams(self.board))
        return new

    def begun(self) -> None:
        self.fact(SessionInitialized(native_session=NATIVE, capabilities=Capabilities()))

    def start(self, name: str, /, *, lane: str | None = None, session: str = SESSION, **given: Any) -> str:
        """A call begins; its item."""
        self._calls += 1
        item = f"itm_{self._calls:032x}"
        self.fact(ToolStarted(name=name, input=given), item=item, lane=lane, session=session)
        return item

    def end(
        self,
        item: str,
        words: str = "",
        structured: Any = None,
        *,
        lane: str | None = None,
        status: Any = "completed",
        session: str = SESSION,
    ) -> list[Event]:
        done = ToolCompleted(status=status, content=[TextBlock(text=words)], structured=structured)
        return self.fact(done, item=item, lane=lane, session=session)

    def call(
        self, name: str, words: str = "", structured: Any = None, /, *, lane: str | None = None, **given: Any
    ) -> list[Event]:
        """A call with its result."""
        return self.end(self.start(name, lane=lane, **given), words, structured, lane=lane)

    def team(self, name: str | None = None) -> Team:
        return self.board.teams[name] if name else next(iter(self.board.teams.values()))


def play_recording(path: Path) -> Playing:
    """A recording of the lead's stream through the translator, one second a fact."""
    playing = Playing()
    for step in replay_file(path):
        for fact in step.facts:
            playing.fact(fact.data, item=fact.item, lane=fact.lane)
    return playing


def told(events: Iterable[Event]) -> list[tuple[str, dict[str, Any]]]:
    """Types and payloads, as they are on the wire, without the team's name and the category."""
    found: list[tuple[str, dict[str, Any]]] = []
    for event in events:
        data = msgspec.json.decode(encode(event.data))
        data.pop("team")
        data.pop("category", None)
        found.append((event.type.removeprefix("team."), data))
    return found
