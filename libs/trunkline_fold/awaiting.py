"""When a prompt's work is over: the turn it started, or was folded into, has ended. Pure."""

from trunkline_wire import Event
from trunkline_wire.turn import MessageUser, TurnCompleted, TurnStarted
from trunkline_wire.work import CommandFailed, CommandRejected


class Awaited:
    """Waits for what the prompt `command` does. Feed it the session's events from before the prompt on."""

    def __init__(self, command: str | None) -> None:
        self.command = command
        self._turn: str | None = None
        self._seen = False
        self._in_turn = False

    def feed(self, event: Event) -> bool | None:
        """True or False once the work has ended, well or not; None before that."""
        if self.command is None:
            return None
        match event.data:
            case MessageUser(command=self.command, delivery=delivery):
                if delivery == "cancelled":
                    return False
                self._seen = True
                if delivery == "steered":
                    self._turn, self._in_turn = event.turn, True
            case TurnStarted() if event.cause == self.command or (self._seen and event.cause is None):
                self._turn, self._in_turn = event.turn, True
            case TurnCompleted(outcome=outcome) if self._in_turn and event.turn == self._turn:
                return outcome == "success"
            case CommandRejected(command=self.command) | CommandFailed(command=self.command):
                return False
            case _:
                pass
        return None
