"""The translator: native messages in, events out. A pure state machine, without I/O and without a clock.

Its parts by family: `translate_session` (what the session is), `translate_turn`, `translate_messages`, `translate_parts` and
`tools`, `translate_asks`, `reading` (what was missed). They share one `State`. What a sub-agent says comes on the same
stream with a session of its own, and is told in the lane of the call that started it.
"""

from trunkline_adapters.opencode import (
    reading,
    survival,
    translate_asks,
    translate_messages,
    translate_parts,
    translate_session,
    translate_turn,
)
from trunkline_adapters.opencode.native import (
    EVENTS,
    PASSING,
    TRANSLATED,
    event_of,
    is_known,
    kind_of,
    session_of,
    stream_of,
)
from trunkline_adapters.opencode.profiles import DEFAULT, PROFILES, Profile
from trunkline_adapters.opencode.state import Ask, Beginning, Known, Learned, State, Turn, fact, passing
from trunkline_agentkit import Survivor
from trunkline_agentkit.fields import Obj, as_obj, obj, text, whole
from trunkline_agentkit.protocol import Context, Out
from trunkline_wire import encode
from trunkline_wire.session import Capabilities
from trunkline_wire.turn import MessageSystem
from trunkline_wire.work import NativeMessage


class OpenCodeTranslator:
    """Translates one session of a server, over one stream of events or, where it was lost, several."""

    def __init__(
        self,
        context: Context,
        capabilities: Capabilities,
        profile: Profile | None = None,
        attempts: int = 8,
        *,
        join: str | None = None,
    ) -> None:
        self._state = State(
            context=context,
            profile=profile or PROFILES.shipped[DEFAULT],
            capabilities=capabilities,
            attempts=attempts,
            join=join,
        )

    def feed(self, message: Obj) -> list[Out]:
        """What a message of the server means; [] for what is known to mean nothing."""
        if "http" in message:
            return self._replied(message)
        if "stdout" in message:
            return self._printed(message)
        if (command := text(message, "unanswered")) is not None:
            return translate_turn.given_up(self._state, command)
        stream = stream_of(message)
        if stream is None:
            return [_unknown(message, "unknown_type")]
        if stream != EVENTS:
            return []
        if "data" not in message:
            if "lost" in message:
                reading.lose(self._state)
            return []
        return self._event(event_of(message), message)

    def sent(self, message: Obj) -> list[Out]:
        """What a request of ours means for what follows."""
        request = text(message, "http")
        if request is None:
            return []
        key = _key(message)
        self._state.requests[key] = message
        method, _, path = request.partition(" ")
        parts = path.partition("?")[0].strip("/").split("/")
        body = obj(message, "body")
        match parts:
            case ["session", session, verb] if method == "POST" and session == self._state.session:
                translate_turn.requested(self._state, key, verb, body)
            case ["permission" | "question", ask, "reply" | "reject"] | ["session", _, "permissions", ask]:
                translate_asks.sent(self._state, ask, body)
            case _:
                pass
        return []

    def _replied(self, message: Obj) -> list[Out]:
        state = self._state
        key = _key(message)
        request = text(state.requests.pop(key, {}), "http")
        if request is None:
            return [_unknown(message, "unknown_answer")]
        status, body = whole(message, "status"), message.get("body")
        if status is None:
            return []  # no answer came: what became of the request is read back
        if not 200 <= status < 300:
            translate_turn.refused(state, key)
            return []
        if translate_session.learned(state, request, body):
            return []
        if state.lost and (out := reading.read(state, request, body)) is not None:
            return out
        return self._answered(request, as_obj(body))

    def _answered(self, request: str, body: Obj) -> list[Out]:
        state = self._state
        method, _, path = request.partition(" ")
        match path.partition("?")[0].strip("/").split("/"):
            case ["session"] if method == "POST" and state.session is None:
                return translate_session.opened(state, body)
            case ["session", _, "fork"] if method == "POST" and state.session is None:
                state.lost = state.resumed = True
                return translate_session.opened(state, body)
            case ["session", id] if method == "GET" and state.session is None and id != "status":
                state.lost = state.resumed = True
                return translate_session.opened(state, body)
            case ["session", id, "revert" | "unrevert"] if id == state.session:
                return translate_session.reverted(state, body)
            case ["session", id] if method == "PATCH" and id == state.session:
                return translate_session.session_updated(state, body)
            case _:
                return []

    @property
    def lost(self) -> bool:
        """Events may have been missed, and what they said has not been read back."""
        return self._state.lost

    def _printed(self, message: Obj) -> list[Out]:
        """The program itself prints where it listens, and warnings about its configuration."""
        said = text(message, "stdout") or ""
        if said.startswith("{"):
            return [_unknown(message, "unknown_output")]
        return [fact(MessageSystem(text=said, kind="stdout"))] if said.strip() and self._state.session else []

    def _event(self, event: Obj, message: Obj) -> list[Out]:
        state, kind = self._state, text(event, "type")
        if kind is None:
            return [_unknown(message, "untyped")]
        if kind in PASSING:
            return passing(kind)
        if is_known(kind, state.profile):
            return []
        if kind not in TRANSLATED:
            return [_unknown(message, "unknown_type")]
        properties = obj(event, "properties")
        session = session_of(event)
        if session is None or state.session is None:
            return []
        if kind == "session.created":
            return self._created(properties)
        if session != state.session and session not in state.lanes:
            return []
        return self._translate(kind, properties, session, state.lanes.get(session))

    def _translate(self, kind: str, properties: Obj, session: str, lane: str | None) -> list[Out]:
        state = self._state
        match kind:
            case "message.updated":
                return translate_messages.updated(state, obj(properties, "info"), session, lane)
            case "message.part.updated":
                return translate_messages.part_updated(state, obj(properties, "part"), session, lane)
            case "message.part.delta":
                message = state.messages.get(text(properties, "messageID") or "")
                out = translate_parts.grew(state, message, properties)
                return [*translate_turn.recover(state), *out] if lane is None else out
            case "permission.asked" | "question.asked":
                question = kind == "question.asked"
                return translate_asks.asked(state, properties, session, lane, question=question)
            case "permission.replied" | "question.replied" | "question.rejected":
                return translate_asks.replied(state, properties)
            case "todo.updated":
                return translate_session.todo(properties, lane)
            case "session.status":
                return self._status(obj(properties, "status"), session, lane)
            case _:
                return [] if lane is not None else self._of_the_session(kind, properties)

    def _status(self, status: Obj, session: str, lane: str | None) -> list[Out]:
        state, kind = self._state, text(status, "type")
        if lane is not None:
            return translate_turn.child_rests(state, session) if kind == "idle" else []
        match kind:
            case "busy":
                return translate_turn.busy(state)
            case "retry":
                return translate_turn.retrying(state, status)
            case "idle":
                return translate_turn.idle(state)
            case _:
                return [fact(NativeMessage(known=False, kind=f"session.status/{kind}", reason="unknown_status"))]

    def _of_the_session(self, kind: str, properties: Obj) -> list[Out]:
        """Events that only the session's own is told of."""
        state = self._state
        match kind:
            case "session.updated":
                return translate_session.session_updated(state, obj(properties, "info"))
            case "session.compacted":
                return translate_session.compacted(state)
            case "session.error":
                return translate_turn.failed(state, properties)
            case "session.deleted":
                return [
                    fact(MessageSystem(text="The session was deleted on the server", level="error", kind="deleted"))
                ]
            case _:
                return []

    def _created(self, properties: Obj) -> list[Out]:
        """A session of a sub-agent begins, whose call is one that has none yet."""
        state, info = self._state, obj(properties, "info")
        id, parent = text(info, "id"), text(info, "parentID")
        if id is None or parent is None or (parent != state.session and parent not in state.lanes):
            return []
        taken = set(state.lanes.values())
        call = next(
            (
                one
                for one in state.parts.values()
                if one.session == parent and text(one.body, "tool") == "task" and one.item not in taken
            ),
            None,
        )
        return translate_parts.begin_child(state, id, call) if call is not None else []

    def kind(self, message: Obj) -> str:
        """A message's kind as drift is counted by."""
        return kind_of(message)

    def concerns(self, event: Obj) -> bool:
        """Whether an event is of this session, of one of its sub-agents', or of none: a server may have many."""
        inner = event_of({"data": event})
        session = session_of(inner)
        if session is None or self._state.session is None:
            return True
        parent = text(obj(obj(inner, "properties"), "info"), "parentID")
        return session == self._state.session or session in self._state.lanes or parent == self._state.session

    def name(self, command: str) -> None:
        """The next request that begins a turn, and can't carry an id of ours, was brought by this command."""
        self._state.next_command = command

    def children(self) -> list[str]:
        """Sessions of sub-agents whose messages are to be read back too."""
        return reading.children(self._state)

    def is_old(self, message: Obj) -> bool:
        """Whether a message that was read back is of no turn that counts."""
        return not reading.is_news(self._state, obj(message, "info"))

    def repeats(self) -> list[Ask]:
        """Asks that we have answered, and that are open all the same; each is named once."""
        found, self._state.repeats = self._state.repeats, []
        return found

    def unanswered(self) -> list[Beginning]:
        """Prompts of ours that the server keeps, and that no turn runs for."""
        if self._state.turn is not None:
            return []
        return [one for one in self._state.beginnings if one.kind == "prompt" and one.message is not None]

    def restore(self, survivor: Survivor) -> None:
        """Goes on with a session that another worker has had, and that may have run on since."""
        survival.restore(self._state, survivor)

    def forget(self, command: str) -> None:
        """A prompt of ours will not be answered."""
        state = self._state
        state.beginnings = [one for one in state.beginnings if one.command != command]

    def stored(self, command: str) -> bool:
        """Whether a prompt of ours has reached the server: it keeps it, or has answered it."""
        return any(one.command == command and one.message is not None for one in self._state.beginnings)

    def awaits(self, command: str) -> bool:
        """Whether a prompt of ours has not been answered yet."""
        return any(one.command == command for one in self._state.beginnings)

    def open_ask(self, ask: str) -> Ask | None:
        """The ask of this id that still waits for a decision."""
        return next((one for one in self._state.asks.values() if one.ask == ask and not one.answered), None)

    def open_asks(self) -> set[str]:
        return {one.ask for one in self._state.asks.values() if not one.answered}

    @property
    def session(self) -> str | None:
        return self._state.session

    @property
    def turn(self) -> Turn | None:
        return self._state.turn

    @property
    def known(self) -> Known:
        return self._state.known

    @property
    def learned(self) -> Learned:
        return self._state.learned

    @property
    def state(self) -> State:
        return self._state


def _key(message: Obj) -> str:
    """What an answer is found by: its number, or in recordings without numbers the request itself."""
    number = message.get("n")
    return text(message, "http") or "" if number is None else encode(number).decode()


def _unknown(message: Obj, reason: str) -> Out:
    return fact(NativeMessage(known=False, kind=kind_of(message), reason=reason))
