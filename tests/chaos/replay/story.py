"""What happens to a few sessions and to the projections that follow them: drawn by hypothesis, played by `ground`."""

from dataclasses import dataclass
from typing import Final, Literal

from hypothesis import strategies as st

from trunkline_testkit import strategies
from trunkline_wire import NO_NATIVE, Data, Event, encode, subjects
from trunkline_wire.events import AGENT_ASKS, AGENT_FACTS, PERMISSION_EVENTS, TEAM_EVENTS
from trunkline_wire.session import Capabilities, SessionClaimed, SessionCreated, SessionErased, SessionOptions
from trunkline_wire.subjects import Channel

SESSIONS: Final = tuple("ses_" + digit * 32 for digit in "abc")
WORKSPACES: Final = tuple("ws_" + digit * 32 for digit in "12")
NAMES: Final = st.sampled_from(["a", "b", "c"])
OVERRIDES: Final[strategies.Overrides] = {
    "ask": NAMES,
    "task": NAMES,
    "command": NAMES,
    "answer": NAMES,
    "native_session": st.none() | NAMES,
    "incarnation": NAMES,
    "workspace": st.sampled_from(WORKSPACES),
    "capabilities": st.builds(Capabilities, interrupt=st.booleans()),
}
CREATED: Final[strategies.Overrides] = {**OVERRIDES, "options": st.builds(SessionOptions, model=st.none() | NAMES)}
ENVELOPE: Final[strategies.Overrides] = {
    "item": st.none() | NAMES,
    "turn": st.none() | NAMES,
    "lane": st.none() | st.just("lane"),
    "native": st.just(NO_NATIVE),
    "source": st.none(),
    "agent": st.none(),
    "src": st.none() | st.tuples(st.just("COMMANDS"), st.integers(1, 50), st.integers(0, 1)),
}
TEAM: Final[strategies.Overrides] = {"ask": NAMES}
CHANNELS: Final[tuple[tuple[Channel, tuple[type[Data], ...]], ...]] = (
    ("agent.fact", AGENT_FACTS),
    ("agent.ask", AGENT_ASKS),
    ("permission", PERMISSION_EVENTS),
    ("team", TEAM_EVENTS),
)

Fault = Literal["restart", "broken flush", "unheard flush", "rival", "outage", "lost writes"]
FAULTS: Final[tuple[Fault, ...]] = ("restart", "broken flush", "unheard flush", "rival", "outage", "lost writes")


@dataclass(frozen=True, slots=True)
class Message:
    """To be stored; one that `erases` a session is stored on all its subjects, and what is below them goes."""

    subject: str
    type: str
    id: str
    raw: bytes
    erases: str | None = None


def _message(event: Event, channel: Channel, *, raw: bytes | None = None) -> Message:
    erases = event.session if isinstance(event.data, SessionErased) else None
    subject = subjects.event(event.session, channel)
    return Message(subject, event.type, event.id, raw if raw is not None else encode(event), erases)


def _events(kind: type[Data], session: str) -> st.SearchStrategy[Event]:
    overrides = CREATED if kind is SessionCreated else TEAM if kind in TEAM_EVENTS else OVERRIDES
    return strategies.events(kind, session=session, overrides=overrides, envelope=ENVELOPE)


def _of(kinds: list[tuple[type[Data], Channel]], session: str) -> st.SearchStrategy[Message]:
    return st.sampled_from(kinds).flatmap(
        lambda chosen: _events(chosen[0], session).map(lambda event: _message(event, chosen[1]))
    )


def _any(session: str) -> st.SearchStrategy[Message]:
    """An event of any type, on its channel."""
    kinds: list[tuple[type[Data], Channel]] = [
        (kind, channel) for channel, kinds in CHANNELS for kind in kinds if kind is not SessionErased
    ]
    return _of(kinds, session)


def _told(session: str) -> st.SearchStrategy[Message]:
    """What the folds care for most: beginnings, claims, asks and their ends."""
    kinds: list[tuple[type[Data], Channel]] = [(SessionCreated, "agent.fact"), (SessionClaimed, "agent.fact")]
    kinds.extend((kind, channel) for channel, likely in CHANNELS[1:3] for kind in likely)
    return _of(kinds, session)


def _erasure(session: str) -> st.SearchStrategy[Message]:
    return st.builds(_message, _events(SessionErased, session), st.just("agent.fact"))


def _poison(session: str) -> st.SearchStrategy[Message]:
    """What this code can't read: no JSON, a payload that does not fit, a newer version."""
    bodies = st.sampled_from(
        [
            b'{"id":"x","type":"turn.started"',
            b'{"id":"x","type":"turn.started","v":1,"session":"s","time":"t","data":{"number":"nine"}}',
            b'{"id":"x","type":"ask.decided","v":99,"session":"s","time":"t","data":{"ask":"a"}}',
        ]
    )
    channels = st.sampled_from([channel for channel, _ in CHANNELS])
    return st.builds(_message, _events(SessionClaimed, session), channels, raw=bodies)


def _messages(session: str) -> st.SearchStrategy[Message]:
    # Poison and erasures are rare: what comes between them must have room.
    return st.integers(0, 19).flatmap(
        lambda n: _poison(session) if n == 0 else _erasure(session) if n == 1 else (_told if n < 9 else _any)(session)
    )


Step = Message | Fault
_steps: Final[st.SearchStrategy[Step]] = st.integers(0, 9).flatmap(
    lambda n: st.sampled_from(FAULTS) if n == 0 else st.sampled_from(SESSIONS).flatmap(_messages)
)
stories: Final[st.SearchStrategy[list[Step]]] = st.lists(_steps, min_size=30, max_size=60)
