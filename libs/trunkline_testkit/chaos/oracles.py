"""Judges of a finished run, one a kind of evidence. Pure: evidence in, violations out, the first in the log first.

They read the log as plain JSON and share nothing with the folds, but for `check_session`, which is the judge of the log
itself, and `projections`, which replays the very views that it compares.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from trunkline_bus.cells import Cells
from trunkline_bus.views import decode_document
from trunkline_fold.check import check_session
from trunkline_testkit.chaos.evidence import Evidence, Violation
from trunkline_wire import TrunklineError
from trunkline_wire.ids import ask_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from trunkline_bus.stored import Stored
    from trunkline_bus.views import View
    from trunkline_testkit.chaos.evidence import Transcript

OUTCOMES: Final = frozenset({"command.finished", "command.failed", "command.rejected"})


def judge(evidence: Evidence, silent: Collection[str]) -> list[Violation]:
    """All that the evidence of one session shows. `silent` are types of native messages that yield only deltas."""
    found = [
        *log(evidence),
        *native(evidence, silent),
        *journal(evidence),
        *commands(evidence),
        *answers(evidence),
        *transcripts(evidence),
    ]
    return sorted(found, key=lambda violation: violation.sequence if violation.sequence is not None else 1 << 62)


def log(evidence: Evidence) -> Iterator[Violation]:
    """What the log shows by itself; and that each event is stored once."""
    readable: list[tuple[int, str, Any]] = []
    ids: Counter[str] = Counter()
    for one in evidence.stored:
        try:
            event = one.event()
        except TrunklineError as error:
            yield Violation(1, evidence.session, f"can't be read: {error}", one.sequence)
            continue
        if one.id is not None and one.id != event.id:
            yield Violation(1, evidence.session, f"the header names {one.id}, the event {event.id}", one.sequence)
        ids[event.id] += 1
        if ids[event.id] == 2:
            yield Violation(2, evidence.session, f"{event.type} {event.id} is stored twice", one.sequence)
        readable.append((one.sequence, one.subject, event))
    for violation in check_session(readable):
        yield Violation(violation.invariant, evidence.session, violation.message, violation.sequence)


def native(evidence: Evidence, silent: Collection[str]) -> Iterator[Violation]:
    """(1) What each life of the agent said, without the `silent` types, begins with what the log holds of it, in order;
    of a life whose end was recorded, and told in the log by its own owner, the log holds all.
    """
    logged, told = _logged_by_life(evidence), _told_ends(evidence)
    for life, (said, ended) in _said_by_life(evidence, silent).items():
        held = logged.pop(life, [])
        for place, (sequence, message) in enumerate(held):
            if place >= len(said) or not _same(said[place], message):
                expected = said[place][:120] if place < len(said) else "nothing more"
                text = f"native message {place + 1} of {life} is {str(message)[:120]}, the agent said {expected}"
                yield Violation(1, evidence.session, text, sequence)
                break
        else:
            if ended and life in told and len(held) < len(said):
                last = held[-1][0] if held else None
                text = f"{len(said) - len(held)} native messages of {life} are not in the log: {said[len(held)][:120]}"
                yield Violation(1, evidence.session, text, last)
    for life, held in logged.items():
        yield Violation(1, evidence.session, f"the log holds messages of {life}, which nobody recorded", held[0][0])


def _said_by_life(evidence: Evidence, silent: Collection[str]) -> dict[str, tuple[list[str], bool]]:
    """By incarnation: what the agent said as JSON texts, and whether its end was recorded."""
    lives: dict[str, tuple[list[str], bool]] = {}
    life = ""
    for speaker, text in evidence.recording:
        if speaker == "meta":
            life = json.loads(text)["incarnation"]
            lives.setdefault(life, ([], False))
        elif speaker == "exit":
            lives[life] = (lives[life][0], True)
        elif speaker == "agent":
            message = json.loads(text)
            if not (isinstance(message, dict) and message.get("type") in silent):  # pyright: ignore[reportUnknownMemberType]
                lives[life][0].append(text)
    return lives


def _logged_by_life(evidence: Evidence) -> dict[str, list[tuple[int, Any]]]:
    """By incarnation: stream sequence and message of every event that keeps one. A life begins with `session.initialized`."""
    lives: dict[str, list[tuple[int, Any]]] = {}
    life = ""
    for event in evidence.events:
        if event["type"] == "session.initialized":
            life = event["data"].get("incarnation", "")
        if "native" in event:
            lives.setdefault(life, []).append((event["sequence"], event["native"]))
    return lives


def _told_ends(evidence: Evidence) -> set[str]:
    """Incarnations whose owner has told their end. One that died before took along what it had not stored yet."""
    told: set[str] = set()
    life, epoch = "", None
    for event in evidence.events:
        if event["type"] == "session.initialized":
            life, epoch = event["data"].get("incarnation", ""), event["epoch"]
        elif event["type"] == "session.status" and event["data"].get("status") == "stopped" and event["epoch"] == epoch:
            told.add(life)
    return told


def _same(said: str, held: Any) -> bool:
    if isinstance(held, dict) and "sha256" in held:
        held_hash: str = held["sha256"]  # pyright: ignore[reportUnknownVariableType]
        compact = json.dumps(json.loads(said), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return held_hash in {hashlib.sha256(form.encode()).hexdigest() for form in (compact, said)}
    return json.dumps(held, sort_keys=True) == said


def journal(evidence: Evidence) -> Iterator[Violation]:
    """(3, 6) What the agent was told and did: each prompt once, after it was accepted; each ask one decision, the log's."""
    accepted = {e["data"]["command"]: e["sequence"] for e in evidence.events if e["type"] == "command.accepted"}
    heard: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    for note in evidence.journal:
        match note["kind"]:
            case "prompt":
                heard[note["id"]] += 1
                if note["id"] not in accepted:
                    yield Violation(6, evidence.session, f"the agent got {note['id']}, which the log never accepted")
                if heard[note["id"]] == 2:
                    text = f"the agent got {note['id']} a second time"
                    yield Violation(6, evidence.session, text, accepted.get(note["id"]))
            case "turn" | "steered":
                ran[note["id"]] += 1
                if ran[note["id"]] == 2:
                    text = f"{note['id']} took effect a second time"
                    yield Violation(6, evidence.session, text, accepted.get(note["id"]))
            case _:
                pass
    yield from _decisions(evidence)


def _decisions(evidence: Evidence) -> Iterator[Violation]:
    ends = first_ends(evidence.events)
    got: Counter[str] = Counter()
    for note in evidence.journal:
        if note["kind"] != "answer":
            continue
        ask = ask_id(evidence.session, note["incarnation"], note["ask"])
        got[ask] += 1
        end = ends.get(ask)
        place = end["sequence"] if end is not None else None
        if got[ask] == 2:
            yield Violation(3, evidence.session, f"the agent got a second decision of {ask}", place)
        if end is None or end["type"] not in {"ask.decided", "ask.expired"}:
            what = "nothing" if end is None else end["type"]
            yield Violation(3, evidence.session, f"the agent got a decision of {ask}, which {what} ended", place)
            continue
        decided = end["data"]
        if note["allow"] != (decided["behaviour"] != "deny"):
            text = f"the agent got allow={note['allow']} for {ask}, decided was {decided['behaviour']}"
            yield Violation(3, evidence.session, text, place)
        for field, key in (("input", "updated_input"), ("answers", "answers")):
            if note.get(field) != decided.get(key):
                text = f"the agent got {field} {note.get(field)} for {ask}, decided was {decided.get(key)}"
                yield Violation(3, evidence.session, text, place)


def first_ends(events: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Of each ask the event that ended it: the first in stream order of decided, expired, withdrawn, or a claim without its
    incarnation.
    """
    asked: dict[str, str] = {}
    ends: dict[str, Mapping[str, Any]] = {}
    for event in events:
        data = event["data"]
        match event["type"]:
            case "permission.requested" | "question.asked" | "plan.proposed":
                asked.setdefault(data["ask"], data.get("incarnation", ""))
            case "ask.decided" | "ask.expired" | "ask.withdrawn":
                ends.setdefault(data["ask"], event)
            case "session.claimed":
                for ask, incarnation in asked.items():
                    if incarnation != data.get("incarnation"):
                        ends.setdefault(ask, event)
            case _:
                pass
    return ends


def commands(evidence: Evidence) -> Iterator[Violation]:
    """(6) Every command that a gateway acknowledged has one outcome, or the session is closed."""
    outcomes: Counter[str] = Counter(e["data"]["command"] for e in evidence.events if e["type"] in OUTCOMES)
    closed = any(e["type"] == "session.closed" for e in evidence.events)
    for command in sorted(evidence.acked):
        if outcomes[command] > 1 or (outcomes[command] == 0 and not closed):
            yield Violation(6, evidence.session, f"{command}, which was acknowledged, has {outcomes[command]} outcomes")


def answers(evidence: Evidence) -> Iterator[Violation]:
    """(3) Every approver was told what the log says of its answer."""
    ends = first_ends(evidence.events)
    for told in evidence.told:
        end = ends.get(told.ask)
        won = end is not None and end["type"] == "ask.decided" and end["data"].get("answer") == told.answer
        expected = {
            "decided": won,
            "already_decided": end is not None and end["type"] == "ask.decided" and not won,
            "withdrawn": end is not None and end["type"] in {"ask.withdrawn", "session.claimed"},
            "expired": end is not None and end["type"] == "ask.expired",
        }
        if not expected.get(told.outcome, True):
            what = "nothing" if end is None else f"{end['type']} {end['data'].get('answer', '')}"
            text = f"{told.answer} was told {told.outcome} of {told.ask}, which {what} ended"
            yield Violation(3, evidence.session, text, end["sequence"] if end is not None else None)


def transcripts(evidence: Evidence, *, complete: bool = True) -> Iterator[Violation]:
    """(5) Every client has every event of the log once, in order; and the text it put together is that of the message."""
    for transcript in evidence.transcripts:
        yield from _facts(evidence, transcript, complete=complete)
        for had, final in transcript.texts:
            if not final.startswith(had):
                text = f"{transcript.client} had the text {had[-60:]!r} of what became {final[:60]!r}"
                yield Violation(5, evidence.session, text)
                break


def _facts(evidence: Evidence, transcript: Transcript, *, complete: bool) -> Iterator[Violation]:
    wanted = [event["id"] for event in evidence.events]
    if transcript.gaps:
        first = transcript.facts[0] if transcript.facts else None
        wanted = wanted[wanted.index(first) :] if first in wanted else []
    for place, fact in enumerate(transcript.facts):
        if place >= len(wanted) or fact != wanted[place]:
            kind = "a second time" if fact in transcript.facts[:place] else "out of order, or what the log lacks"
            due = wanted[place] if place < len(wanted) else "nothing"
            text = f"{transcript.client} saw {fact} {kind} as number {place + 1}, where {due} was due"
            yield Violation(5, evidence.session, text, evidence.sequence_of(fact))
            return
    if complete and len(transcript.facts) < len(wanted):
        missing = wanted[len(transcript.facts)]
        text = f"{transcript.client} lacks {len(wanted) - len(transcript.facts)} events, the first is {missing}"
        yield Violation(5, evidence.session, text, evidence.sequence_of(missing))


def projections(
    session: str, stored: Sequence[Stored], view: View[Any], documents: Mapping[str, bytes]
) -> Iterator[Violation]:
    """(4) The live document of a session, and its attachments, against a replay from zero up to its cursor, byte for byte.

    `documents` are the session's, by key without the edition.
    """
    live = documents.get(session)
    of_view = [one for one in stored if view.key(one) == session]
    if live is None:
        if of_view:
            yield Violation(4, session, f"there is no document of {view.name}", of_view[0].sequence)
        return
    document = decode_document(live)
    cells = Cells(view)
    cells.begin(session)
    for one in of_view:
        if one.sequence <= document.progress:
            cells.apply(one)
    cell = cells[session]
    rebuilt = cells.document(cell)
    if rebuilt != live:
        place = next((n for n, (a, b) in enumerate(zip(rebuilt, live, strict=False)) if a != b), 0)
        part = slice(max(0, place - 40), place + 80)
        text = f"{view.name}: live {live[part]!r}, replayed {rebuilt[part]!r}"
        yield Violation(4, session, text, document.progress)
    for name, value in view.attachments(cell.state):
        if documents.get(f"{session}.{name}") != value:
            yield Violation(4, session, f"{view.name}: attachment {name} is not what a replay gives", document.progress)
