"""An agent's own terminal, on a session that Trunkline otherwise speaks with in the agent's protocol.

An adapter says how its agent's terminal is opened (`OpensTerminals`); another one, found by its entry point, runs it. What is said
in it stands in the agent's own history. From there it comes into the log once the terminal has ended: messages and
tool calls, without the history's turns, for those that the screen showed are in the log already.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, runtime_checkable

import msgspec

from trunkline_agentkit.history import Entry
from trunkline_agentkit.protocol import Start
from trunkline_wire import Event, Source, parse_time
from trunkline_wire.blocks import Block, join_text
from trunkline_wire.session import SessionHandedOver, SessionOptions
from trunkline_wire.turn import MessageUser, TurnCompleted, TurnStarted
from trunkline_wire.work import UsageUpdated

SOURCE: Final = Source(actor="history", via="terminal")
"""Of what was said in a terminal."""

_FRAMES: Final = (TurnStarted, TurnCompleted, UsageUpdated)
"""What a history tells that is no part of the conversation itself: the log has its own."""


class OwnTerminal(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent's terminal is opened on one of its sessions. No secret may stand in `command`."""

    profile: str
    """What the adapter `by` knows its screen by."""
    command: tuple[str, ...]
    """The program's path, and its arguments."""
    environment: dict[str, str] = {}
    """On top of the Start's."""
    by: str = "pty"
    """The adapter that runs it, by its entry point."""


@runtime_checkable
class OpensTerminals(Protocol):
    """An adapter whose agents have a terminal of their own that takes up a session."""

    async def terminal(self, start: Start) -> OwnTerminal:
        """For `start.native_session`. Raises TrunklineError `agent_not_found`, `unsupported`."""
        ...


def in_terminal(start: Start, terminal: OwnTerminal) -> Start:
    """The start of a terminal's program, in place of one of the agent that `start` is for."""
    return msgspec.structs.replace(
        start,
        agent=terminal.profile,
        environment=start.environment | terminal.environment,
        options=SessionOptions(
            hold="tmux", keep_native=start.options.keep_native, native={"command": list(terminal.command)}
        ),
        fork=False,
        fork_at=None,
    )


def missed(log: Iterable[Event], history: Iterable[Entry]) -> Iterator[Entry]:
    """What a history tells of the latest time in a terminal and the log does not.

    Prompts that were sent by command are in the log already. Read again, the same history gives the same and no more.
    """
    since, known, sent = _since_hand_over(log)
    if since is None:
        return
    began = parse_time(since)
    for entry in _in_turns(history):
        if parse_time(entry.time) <= began or isinstance(entry.data, _FRAMES) or entry.id in known:
            continue
        if isinstance(entry.data, MessageUser) and entry.lane is None:
            said = _plain(entry.data.content)
            if said in sent:
                sent.remove(said)
                continue
        yield entry


def _in_turns(history: Iterable[Entry]) -> Iterator[Entry]:
    """Each entry with a turn: a prompt stands before the turn that it begins."""
    waiting: list[Entry] = []
    turn: str | None = None
    for entry in history:
        if entry.turn is None:
            waiting.append(entry)
            continue
        turn = entry.turn
        yield from (msgspec.structs.replace(one, turn=turn) for one in waiting)
        waiting.clear()
        yield entry
    yield from (msgspec.structs.replace(one, turn=turn) for one in waiting)


def _since_hand_over(log: Iterable[Event]) -> tuple[str | None, set[str], list[str]]:
    """When the latest time in a terminal began, None where there was none; the ids of events and the prompts sent since."""
    since: str | None = None
    known: set[str] = set()
    sent: dict[str, str] = {}
    for event in log:
        match event.data:
            case SessionHandedOver(to="terminal"):
                since, known, sent = event.time, set(), {}
            case MessageUser(command=str(command), delivery="cancelled"):
                sent.pop(command, None)
            case MessageUser(command=str(command)) as data:
                sent[command] = _plain(data.content)
            case _:
                pass
        known.add(event.id)
    return since, known, [*sent.values()]


def _plain(content: list[Block]) -> str:
    return " ".join(join_text(content).split())
