"""The translator: what a terminal has shown, with times in; events out. A pure state machine over `screen` and `infer`.

A turn begins with Enter behind a prompt, or where the program is seen to work unasked; it ends where the screen shows that the
program waits. Its answer is what was printed in between.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from trunkline_adapters.pty.answer import answer, ends_with, plain
from trunkline_adapters.pty.ask import Ask, is_of
from trunkline_adapters.pty.infer import Asking, Watch
from trunkline_adapters.pty.native import kind_of, time_of
from trunkline_adapters.pty.profiles import Profile, profile_of
from trunkline_adapters.pty.screen import Screen
from trunkline_adapters.pty.view import RECORDING_LIMIT, View, paced
from trunkline_agentkit.fields import Obj, strings, text, truth, whole
from trunkline_agentkit.protocol import Context, Fact, Out, Piece
from trunkline_agentkit.survivor import Survivor
from trunkline_wire import Data, TrunklineError
from trunkline_wire.asks import AskDecided, AskWithdrawn
from trunkline_wire.blocks import TextBlock
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.ids import ask_id, item_id
from trunkline_wire.session import Capabilities, SessionInitialized, SessionResumed
from trunkline_wire.turn import (
    MessageAssistant,
    TerminalClosed,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import NativeMessage

LOOKING: Final = Capabilities(terminal=True, heuristic=("turns",), options=("native",))
"""Of a terminal in which nothing may be typed."""
LOOK_EVERY_S: Final = 0.05
"""Seconds between two looks at what the screen says."""
_LAST_LINES: Final = 40
_LARGEST_SIDE: Final = 1000


@dataclass
class Turn:
    line: int
    """The number of the cursor's line when it began."""
    top: int
    """The number of the screen's first line then: some write above the line that is typed at."""
    said: str
    """What was typed, to tell its echo from an answer."""
    interrupted: bool = False
    logged: int = 0
    """Messages of it that the program's own log had."""


class PtyTranslator:
    """Translates one terminal. Without a profile it takes that of the command that was started."""

    def __init__(
        self,
        context: Context,
        known: Profile | None = None,
        source: Mapping[str, str] | None = None,
        *,
        attach: str | None = None,
        writable: bool = True,
        native: str | None = None,
    ) -> None:
        self._context = context
        self._source = source
        self._attach = attach
        """The command with which people see this terminal."""
        self._native = native
        """The session of an agent whose own terminal this is: what it says comes from its own history."""
        self._writable = writable
        self._given = known
        self._use(known or profile_of([], source))
        self._view = View(records=context.keep_native == "all")
        self._at = 0.0
        self._looked_at = -LOOK_EVERY_S
        self._unseen = 0
        """Characters that were printed since."""
        self._typed = ""
        self._turn: Turn | None = None
        self._turns = 0
        self._ask: Ask | None = None
        self._asks = 0
        self._generation = ""
        self._initialized = False
        self._leaving = False
        """It was told to end: what it does on its way out is no turn."""
        self._survivor: Survivor | None = None

    def _use(self, known: Profile) -> None:
        self._profile = known
        self._watch = Watch(known)

    @property
    def screen(self) -> Screen:
        return self._view.screen

    @property
    def profile(self) -> Profile:
        return self._profile

    @property
    def at(self) -> float:
        """The time of what was translated last."""
        return self._at

    @property
    def ready(self) -> bool:
        """Whether the program waits for a prompt."""
        return self._watch.settled == "prompt" and self._turn is None and self._ask is None

    @property
    def open(self) -> bool:
        """Whether a turn runs."""
        return self._turn is not None

    @property
    def pastes(self) -> bool:
        return self.screen.pastes

    @property
    def due(self) -> float | None:
        """When something follows though the program prints nothing: then a `tick` has to be told."""
        times = (
            self._looked_at + paced(LOOK_EVERY_S, self._unseen) if self._unseen else self._watch.due,
            self._view.due,
        )
        return min((time for time in times if time is not None), default=None)

    @property
    def pending(self) -> set[str]:
        return {self._ask.id} if self._ask is not None and not self._ask.answered else set()

    @property
    def last_words(self) -> str:
        """The end of what the terminal shows."""
        return self._view.last_words

    def shows(self, said: str) -> bool:
        """Whether the end of a text stands on the screen, however its lines are broken."""
        return ends_with(said, self.screen.text)

    def take_answers(self) -> str:
        """What the program waits to read from its terminal, once."""
        return self.screen.take_answers()

    def keys_for(self, ask: str, decision: AskDecided) -> tuple[str, ...]:
        """The keys to be typed for a decision. Raises TrunklineError `unknown_ask`, `bad_answer`."""
        if self._ask is None or self._ask.id != ask or self._ask.answered:
            raise TrunklineError("unknown_ask", f"the program does not show {ask!r} any more")
        return self._ask.keys(decision)

    def adopt(self, survivor: Survivor) -> None:
        """What follows is of a program that another worker has left with this in the log."""
        self._survivor = survivor
        self._initialized = True
        # Its ids must be none that were given before.
        self._generation = f"{survivor.session.sequence}:"
        self._turns = survivor.session.turns
        if survivor.session.turn is not None:
            self._turn = Turn(line=0, top=0, said="")

    def feed(self, message: Obj) -> list[Out]:
        """What a message of the terminal means."""
        out = self._advance(message)
        match kind_of(message):
            case "opened":
                out += self._opened(message)
            case "output":
                out += self._printed(text(message, "data") or "")
            case "exit":
                out += self._exit(message)
            case kind:
                out.append(_fact(NativeMessage(known=False, kind=kind, reason="unknown_type")))
        # Something, so that what only changes the screen is not kept as a message without a meaning.
        return out or [Piece(item="", block=0, kind="text", text="")]

    def sent(self, message: Obj) -> list[Out]:
        """What follows from what we say: keys, a size, that time has passed."""
        out = self._advance(message)
        match kind_of(message):
            case "input":
                out += self._input(message)
            case "logged":
                out += self._logged(text(message, "text") or "")
            case "resize":
                out += self._resize(message)
            case _:
                pass
        return out

    def _advance(self, message: Obj) -> list[Out]:
        """What follows from the time that has passed."""
        at = max(self._at, time_of(message) or 0.0)
        out: list[Out] = []
        while (due := self.due) is not None and due <= at:
            self._at = max(self._at, due)
            self._look()
            out += [*self._settle(), *self._view.show(self._at)]
        self._at = at
        return out

    def _opened(self, message: Obj) -> list[Out]:
        if self._given is None:
            self._use(profile_of(strings(message.get("command") or []), self._source))
        opened = self._view.open(*_size(message))
        if self._turn is not None:
            self._turn.line = self._turn.top = 0
        return [opened]

    def _printed(self, data: str) -> list[Out]:
        out: list[Out] = []
        if not self._initialized:
            self._initialized = True
            able = self._profile.capabilities if self._writable else LOOKING
            if self._native is not None:
                able = replace(able, terminal=True)
            native = self._native or self._attach
            out.append(_fact(SessionInitialized(capabilities=able, native_session=native, attach=self._attach)))
        self._view.printed(self._at, data)
        self._unseen += max(1, len(data))
        self._look()
        if self._survivor is not None:
            out += self._take_up(self._survivor)
        out += self._settle()
        out += self._view.show(self._at)
        if self._view.recorded > RECORDING_LIMIT:
            out.append(self._view.snapshot())
        return out

    def _look(self) -> None:
        """What the screen says now, if it is time to see that, or time has passed that makes a difference."""
        if self._unseen and self._at >= self._looked_at + paced(LOOK_EVERY_S, self._unseen):
            self._unseen, self._looked_at = 0, self._at
            self._watch.see(self._at, self.screen.text, self.screen.title)
        elif not self._unseen:
            self._watch.pass_time(self._at)

    def _take_up(self, survivor: Survivor) -> list[Out]:
        """The screen as it is now, and what became of the dialog that was open."""
        self._survivor = None
        out = [self._view.snapshot()]
        shown = self._watch.stands(self._at)
        for record in survivor.asks.values():
            if record.status != "open" and not record.deliverable:
                continue
            if isinstance(shown, Asking) and is_of(record.requested, shown):
                self._ask = Ask(id=record.ask, dialog=shown)
            elif record.status == "open":
                out.append(_fact(AskWithdrawn(ask=record.ask, why="answered_elsewhere")))
        return [*out, _fact(SessionResumed(how="adopted", native_session=self._native or self._attach))]

    def _input(self, message: Obj) -> list[Out]:
        data = text(message, "data") or ""
        if truth(message, "person"):
            # Not recorded: it may be a secret, and what is none shows as its echo.
            return self._interrupt() if data == self._profile.interrupt else []
        self._view.typed(self._at, data)
        self._leaving = self._leaving or truth(message, "leaves")
        if truth(message, "reports"):
            return []
        if data == self._profile.interrupt:
            return self._interrupt()
        self._typed = (self._typed + data)[-RECORDING_LIMIT:]
        if self._ask is not None:
            # In a recording nobody says which keys are an answer.
            if self._ask.id == text(message, "answers") or truth(message, "begins"):
                self._ask.answered = True
                self._typed = ""
                self._watch.restart(self._at)
        elif truth(message, "begins") and self._turn is None:
            return self._begin(text(message, "command"))
        return []

    def _interrupt(self) -> list[Out]:
        out: list[Out] = []
        if self._turn is not None:
            self._turn.interrupted = True
            self._watch.restart(self._at)
            out += self._close_ask()
        return out

    def _resize(self, message: Obj) -> list[Out]:
        return [self._view.resize(self._at, *_size(message))]

    def _begin(self, command: str | None) -> list[Out]:
        self._turns += 1
        self._turn = Turn(line=self.screen.here, top=self.screen.top, said=plain(self._typed))
        self._typed = ""
        self._watch.restart(self._at)
        return [_fact(TurnStarted(number=self._turns), cause=command)]

    def _settle(self) -> list[Out]:
        """What follows from what the program is known to do."""
        settled, out = self._watch.settled, list[Out]()
        if self._ask is not None and not (isinstance(settled, Asking) and settled.key == self._ask.dialog.key):
            out += self._close_ask()
        if isinstance(settled, Asking) and self._ask is None:
            out.append(self._asked(settled))
        elif settled == "busy" and self._turn is None and not self._leaving:
            self._turns += 1
            self._turn = Turn(line=self.screen.here, top=self.screen.top, said="")
            out.append(_fact(TurnStarted(number=self._turns, trigger="other")))
        elif settled == "prompt" and self._turn is not None:
            out += self._end(self._turn)
        return out

    def _asked(self, dialog: Asking) -> Out:
        self._asks += 1
        name = f"dialog:{self._generation}{self._asks}"
        self._ask = Ask(id=ask_id(self._context.session, self._context.incarnation, name), dialog=dialog)
        return _fact(self._ask.requested(self._context.incarnation))

    def _close_ask(self) -> list[Out]:
        ask, self._ask = self._ask, None
        if ask is None or ask.answered:
            return []
        interrupted = self._turn is not None and self._turn.interrupted
        return [_fact(AskWithdrawn(ask=ask.id, why="interrupted" if interrupted else "answered_elsewhere"))]

    def _end(self, turn: Turn) -> list[Out]:
        self._turn = None
        said = self._said(turn)
        error = None if turn.interrupted else self._failure(said)
        data = TurnCompleted(
            outcome="interrupted" if turn.interrupted else "success" if error is None else "error", error=error
        )
        return [*self._shown(turn, said, aborted=turn.interrupted), self._view.snapshot(), _fact(data)]

    def _exit(self, message: Obj) -> list[Out]:
        code = whole(message, "code")
        out = self._close_ask() if code == 0 else []
        if self._turn is not None and code == 0:
            out += self._end(self._turn)
        elif self._turn is not None:
            out += [*self._shown(self._turn, self._said(self._turn), aborted=True), self._view.snapshot()]
        elif self._view.recorded:
            out.append(self._view.snapshot())
        return [*out, _fact(TerminalClosed(exit_code=code))]

    def _logged(self, said: str) -> list[Out]:
        """A message as the program itself has kept it, which is better than what its screen shows."""
        if self._turn is None:
            return []
        self._turn.logged += 1
        return self._spoken(said, f":{self._turn.logged}")

    def _shown(self, turn: Turn, said: str, *, aborted: bool) -> list[Out]:
        return [] if turn.logged else self._spoken(said, aborted=aborted)

    def _spoken(self, said: str, part: str = "", *, aborted: bool = False) -> list[Out]:
        if not said or self._native is not None:
            return []
        name = f"turn:{self._generation}{self._turns}{part}"
        item = item_id(self._context.session, self._context.incarnation, name)
        return [_fact(MessageAssistant(content=[TextBlock(text=said)], aborted=aborted), item=item)]

    def _said(self, turn: Turn) -> str:
        """What was printed since the turn began."""
        screen = self.screen
        return answer(screen.since(turn.top), screen.since(turn.line), turn.said, self._profile.noise)

    def _failure(self, said: str) -> ErrorInfo | None:
        known, last = self._profile, "\n".join(said.splitlines()[-_LAST_LINES:])
        if known.signed_out and re.search(known.signed_out, said, re.MULTILINE):
            how = f"run `{known.login}` as the worker's user" if known.login else "sign in as the worker's user"
            return ErrorInfo(code="agent_auth", message=f"{known.title} wants a login: {how}, then try again ({last})")
        if known.failed and re.search(known.failed, said, re.MULTILINE):
            return ErrorInfo(code="agent_failed", message=last)
        return None


def _size(message: Obj) -> tuple[int, int]:
    columns, rows = whole(message, "columns") or 80, whole(message, "rows") or 24
    return max(1, min(columns, _LARGEST_SIDE)), max(1, min(rows, _LARGEST_SIDE))


def _fact(data: Data, *, item: str | None = None, cause: str | None = None) -> Out:
    return Fact(data=data, item=item, cause=cause)
