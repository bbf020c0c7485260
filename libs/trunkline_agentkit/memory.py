"""What an owner knows of its session: the folds of its log, and the little that no fold keeps. Pure.

The owner's own events are folded the moment they are written, with a running number in place of the stream's sequence, which
only grows; asks are folded apart from what the stream holds, because their end is decided by its order.
"""

from typing import Any, Final

from trunkline_fold.commands import CommandsState, fold_commands
from trunkline_fold.session import SessionState, fold_session, initial
from trunkline_wire import Event
from trunkline_wire.session import (
    SessionClaimed,
    SessionInitialized,
    SessionOptions,
    SessionResumed,
    SessionStatus,
    SessionUpdated,
)
from trunkline_wire.turn import MessageUser, TurnStarted
from trunkline_wire.work import ErrorRaised

MAX_STARTS: Final = 3
"""Starts of an agent in a row that may end without `session.initialized`."""

NO_START: Final = frozenset({"agent_not_found", "bad_directory", "unsupported"})
"""Errors with which no agent was started at all: they are no crash."""

_KEPT: Final = 10_000
_CHOSEN: Final = ("model", "mode", "thinking")


class Memory:
    """`session` and `commands` are the folds. `starts` counts starts since the agent was last ready, without those that
    ended because their owner did.
    """

    def __init__(self, session: str) -> None:
        self.session: SessionState = initial(session)
        self.commands = CommandsState()
        self.starts = 0
        self._starting = False
        self.handed_over: dict[str, str] = {}
        """Item ids of the user messages, by command id."""
        self.queued: dict[str, str] = {}
        """Items of prompts that wait in the agent's own queue, by command id: no turn has begun for them or taken them in."""
        self.caused: set[str] = set()
        """Ids of commands that a turn has begun for."""
        self.native_since: str | None = None
        """When an agent last began the present native session, or took it up."""
        self._prompts: dict[str, str] = {}
        self._chosen: dict[str, Any] = {}

    def fold(self, event: Event, sequence: int | None = None) -> None:
        """Takes an event in; without `sequence` as the next one."""
        if sequence is None:
            sequence = max(self.session.sequence, self.commands.sequence) + 1
        self.session = fold_session(self.session, event, sequence)
        self.commands = fold_commands(self.commands, event, sequence)
        match event.data:
            case SessionStatus(status="starting"):
                self.starts += 1
                self._starting = True
            case SessionStatus(status="stopped"):
                self._starting = False
            case SessionInitialized() | SessionResumed():
                self.starts = 0
                self._starting = False
                self.native_since = event.time
            case ErrorRaised(code=code) if code in NO_START and self.starts:
                self.starts -= 1
                self._starting = False
            case SessionClaimed() if self._starting:
                # Its owner died over it, which says nothing about the agent.
                self.starts -= 1
                self._starting = False
            case MessageUser(command=str(command)) as data if event.item is not None:
                self._remember(command, event.item)
                self.queued.pop(command, None)
                if data.delivery == "queued":
                    self.queued[command] = event.item
            case TurnStarted() if event.cause is not None:
                self.caused.add(event.cause)
                self.queued.pop(event.cause, None)
            case SessionUpdated() as data if event.cause in self.commands.commands:
                self._chosen |= {name: value for name in _CHOSEN if (value := getattr(data, name)) is not None}
            case _:
                pass

    def _remember(self, command: str, item: str) -> None:
        self.handed_over[command] = item
        self._prompts[item] = command
        if len(self._prompts) > _KEPT:
            oldest = next(iter(self._prompts))
            self.handed_over.pop(self._prompts.pop(oldest), None)

    def prompt_of(self, target: str) -> str | None:
        """The command id of a prompt that is named by its item or by its command."""
        return target if target in self.handed_over else self._prompts.get(target)

    @property
    def options(self) -> SessionOptions:
        """The options to start an agent with: those of the creation, and what was chosen since."""
        options = self.session.options
        fields = {name: getattr(options, name) for name in options.__struct_fields__}
        return SessionOptions(**(fields | self._chosen))
