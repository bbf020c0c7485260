"""The translator: native messages in, events out. A pure state machine, without I/O and without a clock.

Its parts by family: `translate_session` (what the session is), `translate_turn`, `translate_message` (what the model says),
`translate_tools`, `translate_asks`. They share one `State`.
"""

from typing import Final

from trunkline_adapters.acp.native import CANCEL_REQUEST, ELICITATION, PERMISSION, SERVED, SILENT, at_path
from trunkline_adapters.acp.profiles import NO_PROFILE, Profile
from trunkline_adapters.acp.state import Ask, Prompt, State, Terminal, fact, passing
from trunkline_adapters.acp.translate_asks import (
    decided,
    elicitation_completed,
    elicited,
    permission_requested,
    request_cancelled,
)
from trunkline_adapters.acp.translate_message import spoke, user_spoke
from trunkline_adapters.acp.translate_session import (
    account_told,
    commands_updated,
    compaction_updated,
    info_updated,
    mode_changed,
    noticed,
    options_updated,
    plan_updated,
    replied,
    subagent_updated,
    summary_chunk,
    usage_updated,
)
from trunkline_adapters.acp.translate_tools import called, start_known
from trunkline_adapters.acp.translate_turn import begin, cut, ended, sent, undelivered
from trunkline_agentkit.fields import Obj, obj, text
from trunkline_agentkit.jsonrpc import id_key
from trunkline_agentkit.protocol import Context, Out
from trunkline_wire.blocks import Block
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.work import NativeMessage, PlanUpdated

HISTORY: Final = frozenset(
    {
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "plan_update",
        "plan_removed",
        "notice",
        "compaction_update",
        "compaction_summary_chunk",
        "subagent_update",
    }
)
"""Updates that tell what has happened, not what is: an agent that takes up a session tells them again."""


class AcpTranslator:
    """Translates one agent's process. Without a `profile` it takes the one of the agent's own name, if there is one."""

    def __init__(self, context: Context, profile: Profile = NO_PROFILE) -> None:
        self._state = State(context=context, profile=profile)

    def feed(self, message: Obj) -> list[Out]:
        """What a message of the agent means; [] for what is known to mean nothing."""
        method = text(message, "method")
        if method is None:
            return self._answer(message)
        params = obj(message, "params")
        if "id" in message:
            return self._request(id_key(message["id"]), method, params)
        return self._notification(method, params)

    def kind_of(self, message: Obj | None) -> str:
        """A message's kind as drift is counted by. Ask before `feed`, which forgets what an answer answers."""
        if message is None:
            return "?"
        method = text(message, "method")
        if method == "session/update":
            return f"{method}/{text(obj(obj(message, 'params'), 'update'), 'sessionUpdate') or '?'}"
        if method is not None:
            return method
        if "id" not in message:
            return "?"
        asked, _ = self._state.requests.get(id_key(message["id"]), ("?", {}))
        return f"answer/{asked}"

    def sent(self, message: Obj) -> list[Out]:
        """What a message of ours means: a prompt begins a turn."""
        return sent(self._state, message)

    def prompt(self, command: str, content: list[Block]) -> None:
        """The next `session/prompt` is this command's."""
        self._state.coming = Prompt(command=command, content=content)

    def copying(self) -> None:
        """The session that is loaded next is only what this one is going to be a copy of."""
        self._state.copying = True

    def drop(self, command: str, content: list[Block]) -> None:
        """A prompt that waited behind the running turn will not be sent; the turn's end tells it."""
        self._state.dropped.append(Prompt(command=command, content=content))

    def undelivered(self, command: str, error: ErrorInfo) -> list[Out]:
        """The prompt of this command could not be sent."""
        return undelivered(self._state, command, error)

    def cut(self) -> list[Out]:
        """The agent was ended, with the turn that it did not end itself, and the next process takes its session up."""
        return cut(self._state)

    def terminal(self, name: str, output: str, exit_code: int | None) -> None:
        """What a terminal that we run for the agent has printed, and how it ended."""
        self._state.terminals[name] = Terminal(output=output, exit_code=exit_code)

    def decided(self, ask: Ask, *, denied: bool) -> None:
        decided(self._state, ask, denied=denied)

    def open_ask(self, ask: str) -> Ask | None:
        """The ask of this id that the agent still waits for."""
        return next((one for one in self.open_asks() if one.ask == ask), None)

    def open_asks(self) -> list[Ask]:
        return [one for one in self._state.asks.values() if not one.answered and not one.cancelled]

    @property
    def busy(self) -> bool:
        """The agent has a prompt that it has not answered."""
        return self._state.turn is not None or bool(self._state.sent) or self._state.coming is not None

    @property
    def state(self) -> State:
        """For reading: what is known of the session."""
        return self._state

    def _answer(self, message: Obj) -> list[Out]:
        key = id_key(message.get("id"))
        request = self._state.requests.pop(key, None)
        if request is None or not ("result" in message or "error" in message):
            return [fact(NativeMessage(known=False, kind=self.kind_of(message), reason="unknown_message"))]
        method, params = request
        if method == "session/prompt":
            return ended(self._state, key, message)
        if message.get("error") is not None:
            return []
        return replied(self._state, method, params, obj(message, "result"))

    def _request(self, key: bytes, method: str, params: Obj) -> list[Out]:
        state = self._state
        if method in SERVED:
            return begin(state)
        if method not in (PERMISSION, ELICITATION):
            if state.profile.is_silent(method):
                return []
            return [fact(NativeMessage(known=False, kind=method, reason="unknown_request"))]
        out = begin(state)
        if method == PERMISSION:
            return out + permission_requested(state, key, params)
        return out + elicited(state, key, params)

    def _notification(self, method: str, params: Obj) -> list[Out]:
        state = self._state
        match method:
            case "session/update":
                update = obj(params, "update")
                session, known = text(params, "sessionId"), state.known.native_session
                if state.initialized and not state.loading and session not in (None, known):
                    return []  # another session of the same agent: a copy being made, or a child
                return self._update(text(update, "sessionUpdate") or "?", update)
            case "auth/status_update" | "_auth/status_update":
                return account_told(state, params)
            case "elicitation/complete":
                return elicitation_completed(state, params)
            case _ if method == CANCEL_REQUEST:
                return request_cancelled(state, params)
            case _ if state.profile.is_silent(method):
                return []
            case _:
                return [fact(NativeMessage(known=False, kind=method, reason="unknown_notification"))]

    def _update(self, kind: str, update: Obj) -> list[Out]:
        state = self._state
        if state.loading and kind in HISTORY:
            return passing(state)
        failure = state.profile.failure
        if state.turn is not None and failure is not None and at_path(update, failure.at) == failure.value:
            state.turn.failure = ""
        out = begin(state) if kind in HISTORY else []
        if kind not in ("tool_call", "tool_call_update"):
            out += start_known(state)
        match kind:
            case "agent_message_chunk" | "agent_thought_chunk":
                return out + spoke(state, update)
            case "user_message_chunk":
                return out + user_spoke(state, update)
            case "tool_call" | "tool_call_update":
                return out + called(state, update)
            case "plan" | "plan_update":
                return out + plan_updated(update)
            case "plan_removed":
                return [*out, fact(PlanUpdated(entries=[]))]
            case "available_commands_update":
                return out + commands_updated(state, update)
            case "current_mode_update":
                return out + mode_changed(state, text(update, "currentModeId"))
            case "config_option_update":
                return out + options_updated(state, update)
            case "session_info_update":
                return out + info_updated(state, update)
            case "usage_update":
                return out + usage_updated(state, update)
            case "notice":
                return out + noticed(update)
            case "compaction_update":
                return out + compaction_updated(state, update)
            case "compaction_summary_chunk":
                return out + summary_chunk(state, update)
            case "subagent_update":
                return out + subagent_updated(update)
            case _ if kind in SILENT:
                return out
            case _:
                name = f"session/update/{kind}"
                return [*out, fact(NativeMessage(known=False, kind=name, reason="unknown_update"))]
