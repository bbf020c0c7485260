"""The fold of a session's commands: which ids were accepted in the last 24 hours, and how each ended."""

import datetime as dt
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from trunkline_fold._bounded import clip, small_json
from trunkline_wire import ErrorInfo, Event, parse_time
from trunkline_wire.session import SessionClosed, SessionErased
from trunkline_wire.work import CommandAccepted, CommandFailed, CommandFinished, CommandRejected

CommandOutcome = Literal["finished", "failed", "rejected"]

WINDOW: Final = dt.timedelta(hours=24)
MAX_COMMANDS: Final = 10_000
"""Ended commands kept at most; a session that gets more within the window forgets the oldest."""


class CommandRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command: `outcome` absent means accepted and still open. A repeated id gets this outcome."""

    command: str
    cmd_seq: int
    time: str
    verb: str | None = None
    epoch: int | None = None
    sequence: int = 0
    outcome: CommandOutcome | None = None
    ended: str | None = None
    how: Literal["native", "emulated", "pty"] | None = None
    result: Any = None
    error: ErrorInfo | None = None


class CommandsState(msgspec.Struct, frozen=True, kw_only=True):
    """`cmd_seq` is the highest sequence in COMMANDS that the log speaks of: the next owner reads on behind it."""

    sequence: int = 0
    cmd_seq: int = 0
    commands: dict[str, CommandRecord] = {}
    order: list[str] = []
    """Ids in order of acceptance."""
    late: int = 0
    """Outcomes of unknown or already ended commands."""

    @property
    def open(self) -> list[CommandRecord]:
        """Accepted commands without an outcome, oldest first."""
        return [self.commands[command] for command in self.order if self.commands[command].outcome is None]


def fold_commands(state: CommandsState, event: Event, sequence: int) -> CommandsState:
    """The state after `event`, which stands at `sequence`; at or below `state.sequence` nothing changes."""
    if sequence <= state.sequence:
        return state
    state = replace(state, sequence=sequence)
    match event.data:
        case CommandAccepted() as data:
            record = CommandRecord(
                command=data.command,
                cmd_seq=data.cmd_seq,
                time=event.time,
                verb=data.verb,
                epoch=event.epoch,
                sequence=sequence,
            )
            return _begin(state, record)
        case CommandRejected() as data:
            record = CommandRecord(
                command=data.command,
                cmd_seq=data.cmd_seq,
                time=event.time,
                verb=data.verb,
                epoch=event.epoch,
                sequence=sequence,
                outcome="rejected",
                ended=event.time,
                error=_small_error(data.error),
            )
            return _begin(state, record)
        case CommandFinished() as data:
            return _end(state, event, data.command, outcome="finished", how=data.how, result=small_json(data.result))
        case CommandFailed() as data:
            return _end(state, event, data.command, outcome="failed", error=_small_error(data.error))
        case SessionClosed() as data:
            return replace(state, cmd_seq=max(state.cmd_seq, data.cmd_seq))
        case SessionErased():
            return CommandsState(sequence=sequence)
        case _:
            return state


def _begin(state: CommandsState, record: CommandRecord) -> CommandsState:
    state = replace(state, cmd_seq=max(state.cmd_seq, record.cmd_seq))
    if record.command in state.commands:
        return state
    commands = {**state.commands, record.command: record}
    order = [*state.order, record.command]
    oldest = parse_time(record.time) - WINDOW
    kept: list[str] = []
    for n, command in enumerate(order):
        old = commands[command]
        if old.outcome is None:
            kept.append(command)
        elif len(order) - n > MAX_COMMANDS or parse_time(old.time) < oldest:
            del commands[command]
        else:
            kept.extend(order[n:])
            break
    return replace(state, commands=commands, order=kept)


def _end(state: CommandsState, event: Event, command: str, **how: Any) -> CommandsState:
    record = state.commands.get(command)
    if record is None or record.outcome is not None:
        return replace(state, late=state.late + 1)
    return replace(state, commands={**state.commands, command: replace(record, ended=event.time, **how)})


def _small_error(error: ErrorInfo) -> ErrorInfo:
    return ErrorInfo(code=error.code, message=clip(error.message, 500), details=small_json(error.details) or {})
