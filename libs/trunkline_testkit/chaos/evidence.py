"""What a finished run left behind, session by session: the log, the recording, the journal, the transcripts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from trunkline_bus.stored import Stored


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant of one session, by its number in the architecture; `sequence` is where in the log it shows."""

    invariant: int
    session: str
    message: str
    sequence: int | None = None


@dataclass(slots=True)
class Transcript:
    """What one client saw of a session over all of its connections, in the order it came.

    `facts` are event ids; `texts` what the client had of an item's text when its finished message came, with that message;
    `gaps` are reasons. After a gap the facts begin anew: what follows the snapshot.
    """

    client: str
    facts: list[str] = field(default_factory=list[str])
    texts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    gaps: list[str] = field(default_factory=list[str])
    resumes: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """What a client was told of an answer of its own: `decided`, `voted`, or the code of the error."""

    answer: str
    ask: str
    outcome: str


@dataclass
class Evidence:
    """One session. `recording` are the lines of the native recorder as (speaker, JSON text), `journal` the agent's notes;
    `acked` the ids of commands that a gateway acknowledged.
    """

    session: str
    stored: list[Stored]
    recording: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    journal: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    transcripts: list[Transcript] = field(default_factory=list[Transcript])
    told: list[Told] = field(default_factory=list[Told])
    acked: set[str] = field(default_factory=set[str])

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The log's events as plain JSON, each with its stream sequence as `sequence`; what is none has the type `unreadable`."""
        return [_plain(one) for one in self.stored]

    def sequence_of(self, event: str) -> int | None:
        """Where an event stands."""
        return next((e["sequence"] for e in self.events if e["id"] == event), None)


def _plain(stored: Stored) -> dict[str, Any]:
    try:
        event: dict[str, Any] = json.loads(stored.raw)
    except ValueError:
        event = {"type": "unreadable", "id": stored.id, "data": {}}
    return event | {"sequence": stored.sequence}


def read_recording(path: Path) -> list[tuple[str, str]]:
    """The lines of a native recording; [] where none was made. A last line that a kill cut off is left out."""
    if not path.exists():
        return []
    lines: list[tuple[str, str]] = []
    for line in path.read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        lines.append((entry["from"], json.dumps(entry["msg"], sort_keys=True)))
    return lines


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The notes of an agent, over all of its lives."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def around(evidence: Evidence, violation: Violation, before: int = 10, after: int = 5) -> str:
    """The violation in words, with the events around the place where it shows."""
    events = evidence.events
    at = violation.sequence if violation.sequence is not None else (events[-1]["sequence"] if events else 0)
    place = next((n for n, event in enumerate(events) if event["sequence"] >= at), len(events) - 1)
    lines = [f"invariant {violation.invariant}, {violation.session}, at {violation.sequence}: {violation.message}"]
    for event in events[max(0, place - before) : place + after + 1]:
        mark = ">" if event["sequence"] == violation.sequence else " "
        data = json.dumps(event.get("data"), sort_keys=True)[:110]
        lines.append(
            f" {mark} {event['sequence']:>7} seq {event.get('seq', '-')!s:>4} epoch {event.get('epoch', '-')!s:>3} "
            f"{event['type']:<22} {data}"
        )
    return "\n".join(lines)
