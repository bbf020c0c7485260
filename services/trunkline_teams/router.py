"""Which lead's team an input is about: a session's own, that of the lead it is a member of, that of a native session.

Pure but for what it remembers. The same inputs in the same order give the same derivers.
"""

import re
from collections import defaultdict
from typing import Final

from trunkline_fold.team import Deriver, Heard, Input, hear, initial_deriver
from trunkline_fold.team.facts import joining
from trunkline_wire import Event, subjects
from trunkline_wire.observed import Observation
from trunkline_wire.session import SessionClosed, SessionCreated, SessionErased, SessionInitialized, SessionUpdated
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import HookFired, TaskUpdated

HEARD: Final = frozenset(
    kind.TYPE
    for kind in (
        SessionCreated,
        SessionInitialized,
        SessionUpdated,
        SessionClosed,
        SessionErased,
        ToolStarted,
        ToolCompleted,
        TurnStarted,
        TurnCompleted,
        TaskUpdated,
        HookFired,
        MessageUser,
        MessageAssistant,
    )
)
"""The types of facts that can be about a team."""

_OF_MEMBERS: Final = frozenset(kind.TYPE for kind in (ToolCompleted, TurnStarted, TurnCompleted, MessageAssistant))
"""Of these, what means nothing in a session that has neither members nor open calls of team tools."""
_TEAM_CALL: Final = re.compile(rb'"name":"(?:Agent|SendMessage|Task|Team)')
_LETTER: Final = b"<teammate-message"

MAX_EARLY: Final = 1000
"""Observations kept of native sessions that no session on the bus is known to run; the oldest go first."""


class Router:
    """`derivers` by lead's session. One is dropped when its session closes and nothing of a team was heard in it."""

    def __init__(self) -> None:
        self.derivers: dict[str, Deriver] = {}
        self._natives: dict[str, str] = {}
        self._leads: dict[str, str] = {}
        """Leads by their members' own sessions."""
        self._early: dict[int, tuple[str, Observation]] = {}

    def wants(self, session: str, type: str | None, raw: bytes) -> bool:
        """Whether a fact may mean something. Of a session without a team hardly any does, and none other has to be decoded."""
        if type not in HEARD:
            return False
        deriver = self.derivers.get(session)
        if session in self._leads or (deriver is not None and (deriver.calls or deriver.mates)):
            return True
        if type == ToolStarted.TYPE:
            return _TEAM_CALL.search(raw) is not None
        if type == MessageUser.TYPE:
            return _LETTER in raw
        return type not in _OF_MEMBERS

    def event(self, event: Event, sequence: int) -> list[tuple[str, Heard]]:
        """What a fact means, for each lead that it is about."""
        told = Input(stream=subjects.EVENTS, sequence=sequence, what=event)
        found = [(event.session, self._hear(event.session, told))]
        match event.data:
            case SessionCreated() as data:
                self._link(event.session, data)
            case SessionInitialized() | SessionUpdated() if event.data.native_session is not None:
                self._natives[event.data.native_session] = event.session
                found += self._late(event.data.native_session, event.session)
            case _:
                pass
        lead = self._leads.get(event.session)
        if lead is not None and lead in self.derivers:
            found.append((lead, self._hear(lead, told)))
        if isinstance(event.data, SessionClosed | SessionErased):
            self._close(event.session, erased=isinstance(event.data, SessionErased))
        return found

    def observation(self, observation: Observation, sequence: int) -> list[tuple[str, Heard]]:
        """What an observation means; nothing as long as no session on the bus is known to run that agent."""
        native = observation.native_session
        session = observation.session or self._natives.get(native or "")
        if session is None:
            if native is not None:
                self._early[sequence] = native, observation
                if len(self._early) > MAX_EARLY:
                    del self._early[next(iter(self._early))]
            return []
        told = Input(stream=subjects.OBSERVED, sequence=sequence, what=observation)
        return [(session, self._hear(session, told))]

    def _hear(self, session: str, told: Input) -> Heard:
        deriver = self.derivers.get(session)
        if deriver is None:
            deriver = self.derivers[session] = initial_deriver(session)
        return hear(deriver, told)

    def _late(self, native: str, session: str) -> list[tuple[str, Heard]]:
        """What was seen of an agent before its session said which one it is."""
        found: list[tuple[str, Heard]] = []
        for sequence in [place for place, (whose, _) in self._early.items() if whose == native]:
            _, observation = self._early.pop(sequence)
            told = Input(stream=subjects.OBSERVED, sequence=sequence, what=observation)
            found.append((session, self._hear(session, told)))
        return found

    def _link(self, session: str, data: SessionCreated) -> None:
        joined = joining(data)
        if joined is None:
            return
        leads = [lead for lead, deriver in self.derivers.items() if deriver.team == joined[0] and lead != session]
        if leads:
            self._leads[session] = leads[-1]

    def _close(self, session: str, *, erased: bool) -> None:
        self._leads.pop(session, None)
        deriver = self.derivers.get(session)
        if deriver is None or (not erased and (deriver.team or deriver.ended or deriver.todo or deriver.mates)):
            return
        del self.derivers[session]
        for native in [one for one, whose in self._natives.items() if whose == session]:
            del self._natives[native]


def by_lead(found: list[tuple[str, Heard]]) -> dict[str, list[Heard]]:
    """Those that call for something, by lead."""
    kept: defaultdict[str, list[Heard]] = defaultdict(list)
    for lead, heard in found:
        if heard.ops:
            kept[lead].append(heard)
    return kept
