"""The translator: native messages in, events out. A pure state machine, without I/O and without a clock.

Its parts by family: `translate_session` (what the session is), `translate_turn`, `translate_stream` (what the model says),
`translate_user`, `translate_tools`, `translate_asks`, `translate_system`. They share one `State`.
"""

from collections.abc import Sequence

from trunkline_adapters.claude.native import KNOWN, REPEATING, kind_of
from trunkline_adapters.claude.state import Ask, State, fact
from trunkline_adapters.claude.team_mail import Mailed
from trunkline_adapters.claude.translate_asks import answered, cancelled, mailed, requested
from trunkline_adapters.claude.translate_session import asked, conversation_reset, replied
from trunkline_adapters.claude.translate_stream import assistant, streamed
from trunkline_adapters.claude.translate_system import auth_status, rate_limited, suggested, summarised, system
from trunkline_adapters.claude.translate_tools import progressed
from trunkline_adapters.claude.translate_turn import lifecycle, prompted, result
from trunkline_adapters.claude.translate_user import user
from trunkline_agentkit.fields import Obj, obj, text
from trunkline_agentkit.protocol import Context, Out
from trunkline_wire.session import Capabilities
from trunkline_wire.turn import Delivery
from trunkline_wire.work import NativeMessage


class ClaudeTranslator:
    """Translates one process of the CLI. `resumed`: it took up an older session, whose totals it carries on."""

    def __init__(self, context: Context, capabilities: Capabilities, *, resumed: bool = False) -> None:
        self._state = State(context=context, capabilities=capabilities, resumed=resumed)

    def feed(self, message: Obj) -> list[Out]:
        """What a message of the CLI means; [] for what is known to mean nothing."""
        out = self._translate(message)
        if out is None:
            return [fact(NativeMessage(known=False, kind=kind_of(message), reason="unknown_type"))]
        if not out and kind_of(message) not in KNOWN | REPEATING:
            return [fact(NativeMessage(known=False, kind=kind_of(message), reason="nothing_understood"))]
        return out

    def sent(self, message: Obj) -> list[Out]:
        """What a line of ours means for what follows."""
        match text(message, "type"):
            case "user":
                prompted(self._state, message)
            case "control_request":
                asked(self._state, message)
            case "control_response":
                answered(self._state, obj(message, "response"))
            case _:
                pass
        return []

    def prompt(self, line: Obj, command: str, delivery: Delivery = "sent") -> None:
        """A user line goes out that the command `command` has brought; `delivery` is what the log says of it."""
        prompted(self._state, line, command, delivery)

    def name_prompt(self, uuid: str, command: str) -> None:
        """The user line `uuid`, perhaps of an earlier process, was brought by this command."""
        self._state.commands[uuid] = command

    def open_ask(self, ask: str) -> Ask | None:
        """The ask of this id that the CLI still waits for."""
        return next((one for one in self._state.asks.values() if one.ask == ask and not one.answered), None)

    def open_asks(self, *, mailed: bool = False) -> set[str]:
        """Those that wait for an answer; those alone that were asked by mail."""
        return {one.ask for one in self._state.asks.values() if not one.answered and (one.mailed or not mailed)}

    @property
    def makes_teams(self) -> bool:
        """The CLI has teams that are made by a call: they work in its process, and its stream is silent about them."""
        return "TeamCreate" in self._state.known.tools

    @property
    def native_session(self) -> str | None:
        return self._state.known.native_session

    def mailed(self, asked: Sequence[Mailed]) -> list[Out]:
        """What teammates ask by mail at this moment, all of it."""
        return mailed(self._state, asked)

    def _translate(self, message: Obj) -> list[Out] | None:
        state = self._state
        match text(message, "type"):
            case "stream_event":
                return streamed(state, message)
            case "assistant":
                return assistant(state, message)
            case "user":
                return user(state, message)
            case "system":
                out = system(state, message)
                return [] if out is None and kind_of(message) in KNOWN else out
            case "result":
                return result(state, message)
            case "control_request":
                return requested(state, message)
            case "control_response":
                return replied(state, message)
            case "control_cancel_request":
                return cancelled(state, message)
            case "command_lifecycle":
                return lifecycle(state, message)
            case "tool_progress":
                return progressed(state, message)
            case "tool_use_summary":
                return summarised(state, message)
            case "rate_limit_event":
                return rate_limited(message)
            case "prompt_suggestion":
                return suggested(message)
            case "conversation_reset":
                return conversation_reset(state, message)
            case "auth_status":
                return auth_status(state, message)
            case _:
                return [] if kind_of(message) in KNOWN else None
