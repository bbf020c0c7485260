"""The invariants that a session's log can show, checked event by event. Independent of the folds, so that it can judge them.

Numbers are those of the architecture's list of invariants:
  1. every native message once and in order: `origin` lines 1, 2, 3 … in each epoch, all parts of each; an item is one thing
  2. `seq` without gap or duplicate; epochs never back, each begun by a claim; nothing of an older epoch after it
  3. an ask has one end; an agent gets the decision that won, once; no source of a derived event counts twice
  6. a command id is accepted once, has one outcome, and has it before its session closes or another owner goes on
  7. nothing is stuck: turns and tools that began have an end, at the latest when the session closes
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from trunkline_wire import Data, Event, subjects
from trunkline_wire.asks import (
    AnswerRejected,
    AskDecided,
    AskDelivered,
    AskExpired,
    AskRouted,
    AskVoted,
    AskWithdrawn,
    PermissionRequested,
    PlanProposed,
    QuestionAsked,
)
from trunkline_wire.session import SessionClaimed, SessionClosed, SessionCreated, SessionErased, SessionInitialized
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import CommandAccepted, CommandFailed, CommandFinished, CommandRejected

Invariant = Literal[1, 2, 3, 6, 7]

_READS_COMMANDS: Final = (CommandAccepted, SessionClosed)
_GOES_ON: Final = (CommandAccepted, TurnStarted, SessionInitialized, SessionClosed)
"""Facts that a new owner writes only after it has closed what the old one left open."""


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """Which invariant is broken, at which stream sequence, and how."""

    invariant: Invariant
    sequence: int
    message: str


class Entry(msgspec.Struct, frozen=True):
    """An event with its stream sequence and channel (`agent.fact`, `agent.ask`, `permission`, `team`)."""

    sequence: int
    channel: str
    event: Event


def check_session(events: Sequence[tuple[int, str, Event]]) -> list[Violation]:
    """What is wrong with one session's events, given in stream order as (stream sequence, channel or subject, event).

    A log that still grows is no violation: an open turn, an open ask, and a last native message without all its parts
    are fine. After an erasure only what follows it is judged.
    """
    entries = [Entry(sequence, _channel(subject), event) for sequence, subject, event in events]
    erased = max((n for n, entry in enumerate(entries) if isinstance(entry.event.data, SessionErased)), default=None)
    whole = erased is None
    if erased is not None:
        entries = entries[erased + 1 :]
    agent = [entry for entry in entries if entry.channel.startswith("agent.")]
    found = [
        *_order(entries),
        *_numbers(agent, whole=whole),
        *_epochs(agent),
        *_origins(agent),
        *_items(agent),
        *_asks(entries, whole=whole),
        *_sources(entries),
        *_commands(agent, whole=whole),
        *_turns(agent, whole=whole),
        *_tools(agent, whole=whole),
    ]
    return sorted(found, key=lambda violation: (violation.sequence, violation.invariant))


def _channel(subject: str) -> str:
    parsed = subjects.parse(subject)
    return parsed.rest if parsed is not None else subject


def _order(entries: list[Entry]) -> Iterator[Violation]:
    """(2) One session's events in stream order."""
    for before, entry in itertools.pairwise(entries):
        if entry.sequence <= before.sequence:
            yield _violation(2, entry, f"stands after sequence {before.sequence}")
        if entry.event.session != before.event.session:
            yield _violation(2, entry, f"is of another session, {entry.event.session!r}")


def _numbers(agent: list[Entry], *, whole: bool) -> Iterator[Violation]:
    """(2) `seq` counts 1, 2, 3 … over the owner's events."""
    expected = 1 if whole else None
    for entry in agent:
        seq = entry.event.seq
        if seq is None:
            yield _violation(2, entry, "has no seq")
            continue
        if expected is not None and seq != expected:
            yield _violation(2, entry, f"has seq {seq} where {expected} was due")
        expected = seq + 1


def _epochs(agent: list[Entry]) -> Iterator[Violation]:
    """(2) Epochs go up by one with each claim, and never back."""
    current: int | None = None
    for entry in agent:
        epoch = entry.event.epoch
        if epoch is None:
            yield _violation(2, entry, "has no epoch")
            continue
        match entry.event.data:
            case SessionCreated():
                if epoch != 1 or current is not None:
                    yield _violation(2, entry, f"creates the session in epoch {epoch}, after {current}")
            case SessionClaimed():
                if current is not None and epoch != current + 1:
                    yield _violation(2, entry, f"claims epoch {epoch} after {current}")
            case _:
                if current is not None and epoch < current:
                    yield _violation(2, entry, f"is of the fenced epoch {epoch}, after the claim of {current}")
                if current is not None and epoch > current:
                    yield _violation(2, entry, f"is of epoch {epoch}, which nobody claimed")
        current = epoch if current is None else max(current, epoch)


def _origins(agent: list[Entry]) -> Iterator[Violation]:
    """(1) In each epoch native messages 1, 2, 3 …, each with its parts 1 to n; the last of an epoch may be cut off."""
    epoch: int | None = None
    line, part, parts = 0, 0, 0
    for entry in agent:
        if entry.event.epoch != epoch:
            epoch = entry.event.epoch
            line, part, parts = 0, 0, 0
        if entry.event.origin is None:
            continue
        due = (line, part + 1, parts) if part < parts else (line + 1, 1, None)
        at = entry.event.origin
        if at[:2] != due[:2] or (due[2] is not None and at[2] != due[2]):
            text = f"part {due[1]} of native message {due[0]}"
            yield _violation(1, entry, f"is part {at[1]} of {at[2]} of native message {at[0]} where {text} was due")
        elif at[1] > at[2]:
            yield _violation(1, entry, f"is part {at[1]} of only {at[2]}")
        line, part, parts = at


def _items(agent: list[Entry]) -> Iterator[Violation]:
    """(1) An item is a message of the user, a message of the agent, or a tool call, in one lane, for ever."""
    known: dict[str, tuple[str, str | None]] = {}
    for entry in agent:
        item = entry.event.item
        match entry.event.data:
            case MessageUser():
                nature = "a message of the user"
            case MessageAssistant():
                nature = "a message of the agent"
            case ToolStarted() | ToolCompleted():
                nature = "a tool call"
            case _:
                continue
        if item is None:
            yield _violation(1, entry, f"is {nature} without an item")
            continue
        before = known.setdefault(item, (nature, entry.event.lane))
        if before != (nature, entry.event.lane):
            yield _violation(
                1, entry, f"is {nature} in lane {entry.event.lane}, item {item} was {before[0]} in {before[1]}"
            )


class _Ask(msgspec.Struct):
    """What the log said of an ask so far."""

    incarnation: str
    end: str | None = None
    """Id of the event that ended it."""
    binding: bool = False
    """Whether that end is one the agent gets."""
    answered: int = 0
    """Decisions and expiries, effective or not."""
    expires: bool = False
    delivered: int = 0
    gone: bool = False
    """Whether the agent that asked is no more."""


def _asks(entries: list[Entry], *, whole: bool) -> Iterator[Violation]:
    """(3) One end per ask; the agent gets the one that won, once."""
    asks: dict[str, _Ask] = {}
    for entry in entries:
        data = entry.event.data
        match data:
            case PermissionRequested() | QuestionAsked() | PlanProposed():
                if data.ask in asks:
                    yield _violation(3, entry, f"asks {data.ask} a second time")
                else:
                    asks[data.ask] = _Ask(incarnation=data.incarnation)
            case SessionClaimed():
                for ask in asks.values():
                    if ask.incarnation != data.incarnation:
                        ask.gone = True
                        ask.end = ask.end or entry.event.id
            case (
                AskRouted()
                | AskVoted()
                | AnswerRejected()
                | AskDecided()
                | AskExpired()
                | AskWithdrawn()
                | AskDelivered()
            ):
                ask = asks.get(data.ask)
                if ask is None:
                    if whole:
                        yield _violation(3, entry, f"is about {data.ask}, which nobody asked")
                    continue
                yield from _end(entry, ask, data)
            case _:
                continue


def _end(
    entry: Entry,
    ask: _Ask,
    data: AskRouted | AskVoted | AnswerRejected | AskDecided | AskExpired | AskWithdrawn | AskDelivered,
) -> Iterator[Violation]:
    match data:
        case AskRouted():
            ask.expires = data.expires_at is not None
        case AskDecided() | AskExpired():
            ask.answered += 1
            if ask.answered > 1:
                yield _violation(3, entry, f"decides {data.ask} a second time")
            if isinstance(data, AskExpired) and not ask.expires:
                yield _violation(3, entry, f"lets {data.ask} expire, which no policy says")
            if ask.end is None:
                ask.end, ask.binding = entry.event.id, True
        case AskWithdrawn():
            ask.end = ask.end or entry.event.id
        case AskDelivered():
            ask.delivered += 1
            cause = entry.event.cause
            if not ask.binding:
                yield _violation(3, entry, f"delivers {data.ask}, which no decision ended first")
            elif cause is not None and cause != ask.end:
                yield _violation(3, entry, f"delivers {cause} for {data.ask}, but {ask.end} won")
            elif ask.gone:
                yield _violation(3, entry, f"delivers {data.ask} to an agent that is gone")
            if ask.delivered > 1:
                yield _violation(3, entry, f"delivers {data.ask} a second time")
        case AskVoted() | AnswerRejected():
            return


def _sources(entries: list[Entry]) -> Iterator[Violation]:
    """(3) A derived event's source counts once in its channel, and sources only go forward; but asks end in any order."""
    seen: set[tuple[str, tuple[str, int, int]]] = set()
    marks: dict[tuple[str, str], tuple[int, int]] = {}
    for entry in entries:
        source = entry.event.src
        if source is None:
            continue
        stream, sequence, part = source
        mark = marks.get((entry.channel, stream), (0, -1))
        if (entry.channel, source) in seen:
            yield _violation(3, entry, f"is a second result {part} of {stream} {sequence}")
        elif (sequence, part) < mark and (entry.channel, stream) != ("permission", subjects.EVENTS):
            yield _violation(3, entry, f"comes from {stream} {sequence}, behind {mark[0]} which was done")
        seen.add((entry.channel, source))
        marks[entry.channel, stream] = max(mark, (sequence, part))


class _Command(msgspec.Struct):
    entry: Entry
    outcomes: int = 0


def _commands(agent: list[Entry], *, whole: bool) -> Iterator[Violation]:
    """(6) Accepted before it ends, one outcome, none left open."""
    commands: dict[str, _Command] = {}
    for entry in agent:
        data = entry.event.data
        match data:
            case CommandAccepted() | CommandRejected():
                if data.command in commands:
                    yield _violation(6, entry, f"takes up {data.command} a second time")
                else:
                    commands[data.command] = _Command(entry, outcomes=int(isinstance(data, CommandRejected)))
            case CommandFinished() | CommandFailed():
                command = commands.get(data.command)
                if command is None:
                    if whole:
                        yield _violation(6, entry, f"ends {data.command}, which was never accepted")
                    continue
                command.outcomes += 1
                if command.outcomes > 1:
                    yield _violation(6, entry, f"gives {data.command} a second outcome")
            case _:
                continue
    closed = _closed_at_end(agent)
    went_on = _went_on(agent, _READS_COMMANDS)
    for name, command in commands.items():
        if command.outcomes:
            continue
        if closed:
            yield _violation(6, command.entry, f"accepts {name}, which has no outcome though the session is closed")
        elif (command.entry.event.epoch or 0) < went_on:
            yield _violation(6, command.entry, f"accepts {name}, which has no outcome though epoch {went_on} goes on")


def _turns(agent: list[Entry], *, whole: bool) -> Iterator[Violation]:
    """(7) In a lane one turn after the other, each with its end."""
    open_turns: dict[str | None, Entry] = {}
    ids: set[str] = set()
    for entry in agent:
        event = entry.event
        match event.data:
            case TurnStarted():
                if event.turn is None:
                    yield _violation(7, entry, "starts a turn without an id")
                elif event.turn in ids:
                    yield _violation(7, entry, f"starts {event.turn} a second time")
                else:
                    ids.add(event.turn)
                if event.lane in open_turns:
                    yield _violation(7, entry, f"starts a turn while {open_turns[event.lane].event.turn} is open")
                open_turns[event.lane] = entry
            case TurnCompleted():
                started = open_turns.pop(event.lane, None)
                if started is None:
                    if whole:
                        yield _violation(7, entry, "completes a turn where none is open")
                elif started.event.turn != event.turn:
                    yield _violation(7, entry, f"completes {event.turn} while {started.event.turn} is open")
            case _:
                continue
    yield from _left_open(agent, list(open_turns.values()), "starts a turn")


def _tools(agent: list[Entry], *, whole: bool) -> Iterator[Violation]:
    """(7) A tool call ends once; outside of a subagent's lane it ends with its turn."""
    open_tools: dict[str, Entry] = {}
    ended: set[str] = set()
    for entry in agent:
        event = entry.event
        item = event.item or event.id
        match event.data:
            case ToolStarted():
                if item in open_tools or item in ended:
                    yield _violation(7, entry, f"starts tool {item} a second time")
                open_tools[item] = entry
            case ToolCompleted():
                if item in ended:
                    yield _violation(7, entry, f"completes tool {item} a second time")
                elif item not in open_tools and whole:
                    yield _violation(7, entry, f"completes tool {item}, which was never started")
                open_tools.pop(item, None)
                ended.add(item)
            case TurnCompleted() if event.lane is None:
                for tool, started in list(open_tools.items()):
                    if started.event.lane is None:
                        yield _violation(7, entry, f"completes a turn that leaves tool {tool} open")
                        del open_tools[tool]
            case _:
                continue
    yield from _left_open(agent, list(open_tools.values()), "starts a tool")


def _left_open(agent: list[Entry], left: list[Entry], what: str) -> Iterator[Violation]:
    closed = _closed_at_end(agent)
    went_on = _went_on(agent, _GOES_ON)
    adopted = {
        entry.event.epoch
        for entry in agent
        if isinstance(entry.event.data, SessionClaimed) and entry.event.data.incarnation is not None
    }
    for entry in left:
        epoch = entry.event.epoch or 0
        while epoch + 1 in adopted:  # the agent survived, and with it what it had open
            epoch += 1
        if closed:
            yield _violation(7, entry, f"{what} that has no end though the session is closed")
        elif epoch < went_on:
            yield _violation(7, entry, f"{what} that has no end though epoch {went_on} goes on")


def _closed_at_end(agent: list[Entry]) -> bool:
    """Whether the log ends in a closed session: nothing but outcomes after the last `session.closed`."""
    for entry in reversed(agent):
        match entry.event.data:
            case SessionClosed():
                return True
            case CommandFinished() | CommandFailed() | CommandRejected():
                continue
            case _:
                return False
    return False


def _went_on(agent: list[Entry], signs: tuple[type[Data], ...]) -> int:
    """The newest epoch in which one of the `signs` shows that its owner is past its clearing up; 0 if there is none."""
    return max((entry.event.epoch or 0 for entry in agent if isinstance(entry.event.data, signs)), default=0)


def _violation(invariant: Invariant, entry: Entry, message: str) -> Violation:
    return Violation(
        invariant=invariant, sequence=entry.sequence, message=f"{entry.event.type} {entry.event.id} {message}"
    )
