"""The translator: native messages in, events out. A pure state machine, without I/O and without a clock.

Its parts by family: `translate_session` (what the session is), `translate_begin` and `translate_turn`, `translate_items` and
`tools`, `translate_deltas`, `translate_asks`, `translate_notices`. They share one `State`. What a sub-agent says comes on
the same connection with a thread of its own, and is told in the lane of the call that started it.
"""

from collections.abc import Iterable

from trunkline_adapters.codex import (
    survival,
    translate_asks,
    translate_begin,
    translate_deltas,
    translate_items,
    translate_notices,
    translate_session,
    translate_turn,
)
from trunkline_adapters.codex.lanes import lane_of
from trunkline_adapters.codex.native import ASKING, KNOWN, REALTIME, TRANSLATED, kind_of
from trunkline_adapters.codex.state import Ask, Known, State, Turn, fact
from trunkline_agentkit import Survivor
from trunkline_agentkit.fields import Obj, obj, objects, text
from trunkline_agentkit.protocol import Context, Out
from trunkline_wire import encode
from trunkline_wire.session import Capabilities, SessionCompacted
from trunkline_wire.work import NativeMessage


class CodexTranslator:
    """Translates one session's thread, over one connection or, where it was lost, several."""

    def __init__(self, context: Context, capabilities: Capabilities, *, join: str | None = None) -> None:
        self._state = State(context=context, capabilities=capabilities, join=join)

    def feed(self, message: Obj) -> list[Out]:
        """What a message of the server means; [] for what is known to mean nothing."""
        method = text(message, "method")
        if method is None:
            return self._replied(message)
        out = self._translate(method, message)
        if out is None:
            return [fact(NativeMessage(known=False, kind=kind_of(message), reason="unknown_type"))]
        return out

    def sent(self, message: Obj) -> list[Out]:
        """What a message of ours means for what follows."""
        method = text(message, "method")
        if method is None:
            translate_asks.sent(self._state, message)
        elif "id" in message:
            key = _key(message)
            self._state.requests[key] = message
            translate_begin.requested(self._state, key, method, obj(message, "params"))
        return []

    def kind(self, message: Obj) -> str:
        """A message's kind as drift is counted by; of an answer, that of the request before it."""
        kind = kind_of(message)
        request = self._state.requests.get(_key(message)) if kind == "response" else None
        return kind if request is None else f"response/{text(request, 'method')}"

    def name(self, command: str) -> None:
        """The next request that begins a turn, and can't carry an id of ours, was brought by this command."""
        self._state.next_command = command

    def lose(self) -> None:
        """The connection was lost: answers to our requests will not come, and messages may be missing."""
        state = self._state
        state.lost = True
        state.requests.clear()
        for noted in (state.came_again, state.asking, state.awaiting):
            noted.clear()

    def restore(self, survivor: Survivor) -> None:
        """The thread ran on when its worker died: the log of that one is continued."""
        survival.restore(self._state, survivor)

    @property
    def reach(self) -> int:
        """How many of the thread's last turns tell all that may be missing; 0: none do."""
        return self._state.reach

    @property
    def awaiting(self) -> bool:
        """Whether a thread waits for an answer and has not asked again over this connection."""
        return bool(self._state.awaiting)

    @property
    def sub_agents(self) -> list[str]:
        """The threads of sub-agents that run."""
        return sorted(self._state.running)

    def repeats(self) -> list[Ask]:
        """Asks that came again though we have answered them; each is named once."""
        found, self._state.repeats = self._state.repeats, []
        return found

    def open_ask(self, ask: str) -> Ask | None:
        """The ask of this id that still waits for a decision."""
        return next((one for one in self._state.asks.values() if one.ask == ask and one.answer is None), None)

    def open_asks(self) -> set[str]:
        return {one.ask for one in self._state.asks.values() if one.answer is None}

    def settle_plan(self, ask: Ask) -> None:
        """A plan was decided: Codex itself does not wait for it."""
        ask.answer = {}

    @property
    def thread(self) -> str | None:
        return self._state.thread

    @property
    def turn(self) -> Turn | None:
        """The running turn of the session's own thread."""
        return self._state.turn

    def active_turn(self) -> str | None:
        """The native id of the running turn, or of the one that is about to run."""
        if self._state.turn is not None:
            return self._state.turn.id
        return next((one.turn for one in self._state.beginnings.values() if one.turn is not None), None)

    def interrupting(self) -> None:
        """We ask the server to end the turn."""
        if self._state.turn is not None:
            self._state.turn.interrupted = True

    @property
    def known(self) -> Known:
        return self._state.known

    @property
    def skills(self) -> dict[str, str]:
        """Path of each skill's file, by name."""
        return self._state.skills

    def efforts(self) -> Iterable[str]:
        """The levels of thinking that the present model has; none where Codex does not say."""
        model = next((one for one in self._state.models if text(one, "model") == self._state.known.model), {})
        return [text(one, "reasoningEffort") or "" for one in objects(model, "supportedReasoningEfforts")]

    def _replied(self, message: Obj) -> list[Out]:
        request = self._state.requests.pop(_key(message), None) if "id" in message else None
        if request is None:
            reason = "unknown_answer" if "id" in message else "nothing_understood"
            return [fact(NativeMessage(known=False, kind=kind_of(message), reason=reason))]
        key, method = _key(message), text(request, "method") or ""
        if "error" in message:
            translate_begin.refused(self._state, key, method)
            return []
        return translate_session.replied(self._state, key, method, obj(request, "params"), obj(message, "result"))

    def _translate(self, method: str, message: Obj) -> list[Out] | None:
        if method in KNOWN or method.startswith(REALTIME):
            return []
        if method not in TRANSLATED:
            return None
        params = obj(message, "params")
        lane = None if self._state.main(params) else lane_of(self._state, method, params)
        if lane is None and not self._state.main(params):
            # Of a thread that is neither the session's nor one of its sub-agents'.
            return []
        if method in ASKING:
            return translate_asks.requested(self._state, message, lane)
        return self._notified(method, params, lane)

    def _notified(self, method: str, params: Obj, lane: str | None) -> list[Out]:
        state = self._state
        match method:
            case "item/started":
                return translate_items.started(state, params, lane)
            case "item/completed":
                return translate_items.completed(state, params, lane)
            case "item/reasoning/summaryPartAdded":
                return translate_deltas.part_added(state, params, lane)
            case "item/mcpToolCall/progress":
                return translate_deltas.progressed(state, params, lane)
            case "turn/started":
                return translate_turn.started(state, params, lane)
            case "turn/completed":
                return translate_turn.completed(state, params, lane)
            case "turn/diff/updated":
                return translate_turn.diff_updated(state, params, lane)
            case "turn/plan/updated":
                return translate_turn.plan_updated(state, params, lane)
            case "thread/tokenUsage/updated":
                return translate_turn.tokens_used(state, params)
            case "error":
                return translate_turn.failed(state, params, lane)
            case "serverRequest/resolved":
                return translate_asks.resolved(state, params)
            case "hook/started" | "hook/completed":
                return translate_notices.hook(params, lane)
            case "item/autoApprovalReview/started" | "item/autoApprovalReview/completed":
                return translate_notices.reviewed(state, method, params, lane)
            case "warning" | "guardianWarning" | "configWarning":
                return translate_notices.warned(state, method, params, lane)
            case _ if method.startswith("item/"):
                return translate_deltas.piece(state, method, params, lane)
            case _:
                return [] if lane is not None else self._of_the_session(method, params)

    def _of_the_session(self, method: str, params: Obj) -> list[Out]:
        """Notifications that only the session's own thread has, or that belong to no thread."""
        state = self._state
        match method:
            case "thread/settings/updated":
                return translate_session.settings_updated(state, params)
            case "thread/name/updated":
                return translate_session.renamed(state, params)
            case "thread/reverted":
                return translate_session.reverted(state)
            case "thread/compacted":
                return self._compacted(params)
            case "thread/goal/updated":
                return translate_notices.goal(params)
            case "thread/environment/disconnected":
                return translate_notices.disconnected(params)
            case "mcpServer/startupStatus/updated":
                return translate_notices.mcp_started(state, params)
            case "mcpServer/oauthLogin/completed" | "account/login/completed" | "account/updated":
                return translate_notices.signed_in(method, params)
            case "modelProvider/authRecoveryStarted" | "modelProvider/authRecoveryCompleted":
                return translate_notices.recovering(state, method, params)
            case "model/rerouted":
                return translate_notices.rerouted(state, params)
            case "account/rateLimits/updated":
                return translate_notices.limited(params)
            case _:
                return []

    def _compacted(self, params: Obj) -> list[Out]:
        """`thread/compacted` of older servers, which have no item for it."""
        return [fact(SessionCompacted(trigger="unknown", after=self._state.context_used))] if params else []


def _key(message: Obj) -> str:
    return encode(message.get("id")).decode()
