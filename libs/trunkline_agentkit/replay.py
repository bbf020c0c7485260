"""Translates a recording as a running session would be: the same translator, the same numbering, no agent, no log.

For golden cases and for people who want to see what an adapter makes of a recording. The result is the same every
time: ids are counted and times come from the recording.
"""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from trunkline_agentkit.framing import Decoded, kind_of
from trunkline_agentkit.intake import Cause, Intake, Lines
from trunkline_agentkit.memory import Memory
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.protocol import BackendAdapter, Context, Fact, KeepsRecordings, Native
from trunkline_agentkit.recorder import Recorded, read_recording
from trunkline_agentkit.translation import translate as translate_message
from trunkline_wire import NO_NATIVE, AgentRef, Data, Event, decode_json, make_event, timestamp
from trunkline_wire.turn import DeltaKind, MessageDelta, TerminalScreen, ToolProgress
from trunkline_wire.work import NativeMessage

SESSION: Final = "ses_" + "0" * 32
INCARNATION: Final = "0" * 32
_BEGIN: Final = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a recording that was not understood: it raised, is no JSON object, or is of an unknown type."""

    line: int
    what: Literal["untranslated", "unreadable"]
    kind: str
    reason: str | None


class Replay:
    """Iterate it once for the events; `problems` then says which lines of the recording were not understood.

    `agent` names the speaker to translate (`agent[2]` where a recording holds several processes); with `deltas` the
    streaming pieces are among the events. Raises ValueError for a file that is no recording.
    """

    def __init__(self, adapter: BackendAdapter, recording: Path, *, agent: str = "agent", deltas: bool = False) -> None:
        self.problems: list[Problem] = []
        self._lines = adapter.recorded(recording) if isinstance(adapter, KeepsRecordings) else read_recording(recording)
        self._agent = agent
        self._writer = _Writer(adapter.name, deltas=deltas)
        context = Context(session=SESSION, incarnation=INCARNATION, cwd="/")
        self._translator = adapter.translator(context)
        self._intake = Intake(
            Pen(self._writer, Memory(SESSION)),
            context,
            adapter.manifest,
            Lines(),
            cause_of=lambda cause, _: Cause(command=cause),
            on_event=lambda _: None,
        )

    def __iter__(self) -> Iterator[Event]:
        for line in self._lines:
            self._writer.now = line.t
            if line.speaker == self._agent:
                native = self._translate(line)
                self._note(line, native)
                self._intake.take(native)
            elif line.speaker == "host":
                self._sent(line)
            yield from self._writer.take()

    def _translate(self, line: Recorded) -> Native:
        message = decode_json(line.raw)
        decoded = Decoded(
            raw=line.raw,
            message=message if isinstance(message, dict) else None,
            reason=None if isinstance(message, dict) else "not_an_object",
        )
        return translate_message(self._translator, decoded, kind_of(decoded.message))

    def _sent(self, line: Recorded) -> None:
        message = decode_json(line.raw)
        if isinstance(message, dict):
            out = self._translator.sent(message)
            if out:
                self._intake.take(Native(raw=b"", out=out, kind=kind_of(message), ours=True))

    def _note(self, line: Recorded, native: Native) -> None:
        for out in native.out:
            if isinstance(out, Fact) and isinstance(out.data, NativeMessage) and not out.data.known:
                unreadable = (out.data.reason or "").startswith("not_")
                self.problems.append(
                    Problem(
                        line=line.number,
                        what="unreadable" if unreadable else "untranslated",
                        kind=out.data.kind,
                        reason=out.data.reason,
                    )
                )


def translate(
    adapter: BackendAdapter, recording: Path, *, agent: str = "agent", deltas: bool = False
) -> tuple[list[Event], list[Problem]]:
    """All events of a recording, and the lines that were not understood. See `Replay`."""
    replay = Replay(adapter, recording, agent=agent, deltas=deltas)
    return list(replay), replay.problems


class _Writer:
    """Makes events as a SessionWriter does, for nobody's log."""

    def __init__(self, adapter: str, *, deltas: bool) -> None:
        self.now = 0.0
        self._agent = AgentRef(adapter=adapter)
        self._deltas = deltas
        self._made: list[Event] = []
        self._count = 0
        self._seq = 0
        self._lengths: dict[tuple[str, int], int] = {}

    def take(self) -> list[Event]:
        made, self._made = self._made, []
        return made

    def append(
        self, data: Data, *, native: bytes | None = None, time: str | None = None, headers: Any = None, **fields: Any
    ) -> Event:
        del headers  # no part of the event
        self._seq += 1
        raw = NO_NATIVE if native is None else msgspec.Raw(native)
        return self._make(data, time, seq=self._seq, agent=self._agent, native=raw, **fields)

    def piece(
        self, item: str, block: int, kind: DeltaKind, text: str, *, turn: str | None = None, lane: str | None = None
    ) -> None:
        at = self._lengths.get((item, block), 0)
        self._lengths[item, block] = at + len(text)
        if self._deltas:
            data = MessageDelta(block=block, kind=kind, at=at, text=text, after=self._seq)
            self._make(data, None, item=item, turn=turn, lane=lane)

    def progress(
        self,
        data: ToolProgress | TerminalScreen,
        *,
        item: str | None = None,
        turn: str | None = None,
        lane: str | None = None,
    ) -> None:
        if self._deltas:
            self._make(msgspec.structs.replace(data, after=self._seq), None, item=item, turn=turn, lane=lane)

    def end_item(self, item: str) -> None:
        self._lengths = {key: length for key, length in self._lengths.items() if key[0] != item}

    def _make(self, data: Data, time: str | None, **fields: Any) -> Event:
        moment = _BEGIN + dt.timedelta(seconds=self.now)
        self._count += 1
        millis = int(moment.timestamp() * 1000)
        id = f"{millis >> 16:08x}-{millis & 0xFFFF:04x}-7000-8000-{self._count:012x}"
        event = make_event(data, id=id, session=SESSION, time=time or timestamp(moment), epoch=1, **fields)
        self._made.append(event)
        return event
