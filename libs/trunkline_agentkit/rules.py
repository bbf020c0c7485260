"""The rules for commands, as pure functions: whether one is accepted, and what becomes of one that an owner left open."""

import datetime as dt
import re
from typing import Final, Literal

import msgspec

from trunkline_fold.commands import CommandRecord, CommandsState
from trunkline_fold.session import SessionState
from trunkline_wire import Command, ErrorInfo
from trunkline_wire.commands import CONTROL_LIFETIME_S, PROMPT_LIFETIME_S, VERBS, WAITING_VERBS
from trunkline_wire.session import Capabilities

_UUID7_ID: Final = re.compile(r"cmd_([0-9a-f]{12})7[0-9a-f]{3}[89ab][0-9a-f]{15}")

__all__ = [
    "NEEDED",
    "ONE_BY_ONE",
    "OUTCOME_UNKNOWN",
    "VERBS",
    "Accept",
    "Refuse",
    "Repeat",
    "judge",
    "minted",
    "remainder",
]

NEEDED: Final[dict[str, str]] = {
    "interrupt": "interrupt",
    "steer": "steering",
    "set_model": "model_switching",
    "set_mode": "mode_switching",
    "set_thinking": "thinking",
    "run_command": "slash_commands",
    "rewind": "rewind",
    "fork": "fork",
    "compact": "compaction",
    "archive": "archive",
    "unarchive": "archive",
    "hand_over": "terminal",
    "native": "native_protocol",
}
"""The capability that each verb needs."""

ONE_BY_ONE: Final = frozenset({"prompt", "run_command", "compact", "reset", "hand_over"})
"""Verbs that are done one after the other; all others go ahead of them."""

_REPEATABLE: Final = frozenset(
    {
        "set_model",
        "set_mode",
        "set_thinking",
        "rename",
        "archive",
        "unarchive",
        "reset",
        "hand_over",
        "resume",
        "close",
        "kill",
        "fork",
    }
)
"""Verbs that have the same effect twice as once (a fork's session id is minted by its requester)."""


_CLOSING: Final = frozenset({"close", "kill"})


class Accept(msgspec.Struct, frozen=True):
    """The command is to be done."""


class Repeat(msgspec.Struct, frozen=True):
    """The id is known: its first outcome stands, nothing is written."""


class Refuse(msgspec.Struct, frozen=True):
    """The command is refused before any effect."""

    error: ErrorInfo


Verdict = Accept | Repeat | Refuse


def judge(
    command: Command,
    stored: dt.datetime,
    now: dt.datetime,
    *,
    session: SessionState,
    commands: CommandsState,
    capabilities: Capabilities,
    busy: bool = False,
    full: bool = False,
) -> Verdict:
    """Whether a command that the server stored at `stored` is accepted.

    `busy` says that a prompt is on its way to the agent though no turn has begun: an interrupt may mean it.
    `full` says that the log takes no more than the ends of what has begun.
    """
    if command.id in commands.commands:
        return Repeat()
    if command.session != session.session:
        return _refuse("bad_params", f"the command is for {command.session!r}, but was sent to {session.session!r}")
    if (error := _expired(command, stored, now)) is not None:
        return Refuse(error)
    if session.closed is not None and command.verb != "resume":
        return _refuse("session_closed", "the session is closed: send `resume` first")
    capability = NEEDED.get(command.verb)
    if capability is not None and not getattr(capabilities, capability):
        return _refuse(
            "unsupported", f"the agent can't do {command.verb!r}: it lacks {capability!r}", capability=capability
        )
    if full and command.verb in ONE_BY_ONE:
        return _refuse("log_full", "the log is near its limit and takes no new turn: make room, then send it again")
    if command.verb in {"interrupt", "steer"} and (error := _stale(command, session, busy=busy)) is not None:
        return Refuse(error)
    return Accept()


def minted(command_id: str) -> dt.datetime | None:
    """When an id of the usual form was minted; None for any other."""
    found = _UUID7_ID.fullmatch(command_id)
    return None if found is None else dt.datetime.fromtimestamp(int(found[1], 16) / 1000, dt.UTC)


def _expired(command: Command, stored: dt.datetime, now: dt.datetime) -> ErrorInfo | None:
    lifetime = PROMPT_LIFETIME_S if command.verb in WAITING_VERBS else CONTROL_LIFETIME_S
    waited = (now - stored).total_seconds()
    if waited > lifetime:
        return ErrorInfo(
            code="expired",
            message=f"{command.verb!r} waited {waited:.0f} s for an owner and may wait {lifetime:.0f} s: send it again",
        )
    made = minted(command.id)
    if made is not None and (now - made).total_seconds() > PROMPT_LIFETIME_S:
        # Ids are remembered for a day: an older one may have been done before.
        return ErrorInfo(code="expired", message="the command's id is older than 24 h: send it again with a new one")
    return None


def _stale(command: Command, session: SessionState, *, busy: bool) -> ErrorInfo | None:
    turn = session.turn
    if turn is None:
        if command.target is None and busy and command.verb == "interrupt":
            return None
        return ErrorInfo(code="stale_target", message="no turn is running")
    if command.target is not None and command.target != turn.id:
        return ErrorInfo(
            code="stale_target",
            message=f"turn {command.target!r} is not the one that is running",
            details={"turn": turn.id},
        )
    return None


def _refuse(code: str, message: str, **details: object) -> Refuse:
    return Refuse(ErrorInfo(code=code, message=message, details=dict(details)))


Remainder = Literal["again", "done", "unknown"]


def remainder(record: CommandRecord, *, handed_over: bool, seen: bool, closed: bool = False) -> Remainder:
    """What becomes of a command that the last owner accepted and left without an outcome.

    `handed_over`: the log holds the user message that is written before a prompt is sent; without it the agent can't have
    had the prompt. `seen`: a turn that the command caused has begun. `closed`: the session is, and all commands but the one
    that closed it, or one that reopens it, had their outcomes before.
    """
    if seen or (closed and record.verb in _CLOSING):
        return "done"
    if record.verb == "prompt":
        return "unknown" if handed_over else "again"
    return "again" if record.verb in _REPEATABLE else "unknown"


OUTCOME_UNKNOWN: Final = ErrorInfo(
    code="outcome_unknown",
    message="the command was accepted, and its owner or agent ended before its effect was seen: look, then send it again",
)
