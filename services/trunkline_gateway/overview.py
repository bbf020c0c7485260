"""What all sessions come to, counted as the log goes on: by status, what waits, what was spent, what no adapter understood.

Only sessions with events since the last look are counted anew, however many there are. Rates are of what this gateway has
read, without streaming pieces.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, TypedDict, TypeVar

import msgspec

from trunkline_bus.stored import Stored
from trunkline_fold.session import SessionState
from trunkline_gateway.directory import Directory
from trunkline_wire import Event

SPAN_S: Final = 60
MOST_ROWS: Final = 20
FAILED: Final = "failed"
"""The status here of a session that is idle after a turn that ended in an error."""

K = TypeVar("K", bound=Hashable)


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What one session adds to the counts. `unknown` counts native messages without a translation."""

    status: str
    agent: str
    version: str
    workspace: str
    cwd: str
    turns: int = 0
    input: int = 0
    output: int = 0
    cost_usd: float = 0.0
    unknown: int = 0


def share_of(state: SessionState) -> Share:
    failed = state.status == "idle" and state.last_turn is not None and state.last_turn.outcome == "error"
    return Share(
        status=FAILED if failed else state.status,
        agent=state.agent or state.adapter or "unknown",
        version=state.version or "",
        workspace=state.workspace or "",
        cwd=state.cwd or "",
        turns=state.turns,
        input=state.usage.input + state.usage.cache_read + state.usage.cache_write,
        output=state.usage.output,
        cost_usd=state.cost_usd or 0.0,
        unknown=state.counts.native_unknown,
    )


class Sum(msgspec.Struct):
    """Of several sessions; `input` has what was read from caches too, `cost_usd` the costs that are known."""

    sessions: int = 0
    turns: int = 0
    input: int = 0
    output: int = 0
    cost_usd: float = 0.0
    unknown: int = 0


class Spend(TypedDict):
    sessions: int
    turns: int
    input: int
    output: int
    cost_usd: float


class SpentBy(Spend):
    agent: str


class SpentIn(Spend):
    workspace: str
    cwd: str


class Spent(TypedDict):
    total: Spend
    by_agent: list[SpentBy]
    by_workspace: list[SpentIn]


class SessionCounts(TypedDict):
    total: int
    by_status: dict[str, int]


class OldestAsk(TypedDict):
    session: str
    time: str


class AskCounts(TypedDict):
    """How many are open, in how many sessions."""

    open: int
    sessions: int
    oldest: OldestAsk | None


class EventRate(TypedDict):
    """`last`: the events of each of the last SPAN_S seconds, the latest last."""

    position: int
    per_s: float
    last: list[int]


class UnknownBy(TypedDict):
    agent: str
    version: str
    messages: int


class Unknown(TypedDict):
    total: int
    by_agent: list[UnknownBy]


class Counted(TypedDict):
    """What has come of all that was read; rows with the most first, MOST_ROWS at most."""

    sessions: SessionCounts
    asks: AskCounts
    events: EventRate
    spent: Spent
    unknown: Unknown


class Totals:
    """The sums of shares, one share for each session: a new one takes the place of the former."""

    def __init__(self) -> None:
        self.total = Sum()
        self.statuses: dict[str, Sum] = {}
        self.agents: dict[str, Sum] = {}
        self.workspaces: dict[tuple[str, str], Sum] = {}
        self.versions: dict[tuple[str, str], Sum] = {}
        self._shares: dict[str, Share] = {}

    def put(self, session: str, share: Share | None) -> None:
        before = self._shares.pop(session, None)
        if before is not None:
            self._add(before, -1)
        if share is not None:
            self._shares[session] = share
            self._add(share, 1)

    def _add(self, share: Share, sign: int) -> None:
        _count(self.total, share, sign)
        _sum(self.statuses, share.status, share, sign)
        _sum(self.agents, share.agent, share, sign)
        _sum(self.workspaces, (share.workspace, share.cwd), share, sign)
        _sum(self.versions, (share.agent, share.version), share, sign)


def _sum(sums: dict[K, Sum], key: K, share: Share, sign: int) -> None:
    found = sums.setdefault(key, Sum())
    _count(found, share, sign)
    if not found.sessions:
        del sums[key]


def _count(found: Sum, share: Share, sign: int) -> None:
    found.sessions += sign
    found.turns += sign * share.turns
    found.input += sign * share.input
    found.output += sign * share.output
    found.cost_usd += sign * share.cost_usd
    found.unknown += sign * share.unknown


class Overview:
    """A Directory listener: `look()` is what has come of all that it has read."""

    def __init__(self, directory: Directory, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._clock = clock
        self._begin()
        self._seconds: deque[tuple[int, int]] = deque()
        """How many events came in which second; the last SPAN_S seconds that had some."""
        directory.listeners.append(self)

    def _begin(self) -> None:
        self._totals = Totals()
        self._waiting: dict[str, tuple[int, str]] = {}
        """How many asks of a session are open, and the time of the oldest."""
        self._changed = set(self._directory.states)

    def on_stored(self, session: str, stored: Stored) -> None:  # noqa: ARG002  # the protocol's signature
        self._changed.add(session)
        if not self._directory.ready.is_set():
            return  # what is read when a gateway starts does not come now
        second = int(self._clock())
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1] = second, self._seconds[-1][1] + 1
        else:
            self._seconds.append((second, 1))
            self._forget(second)

    def on_folded(self, event: Event) -> None:
        pass

    def on_begun(self) -> None:
        self._begin()

    def on_diverged(self) -> None:
        self._begin()

    def _forget(self, now: int) -> None:
        while self._seconds and self._seconds[0][0] <= now - SPAN_S:
            self._seconds.popleft()

    def look(self) -> Counted:
        for session in self._changed:
            self._count(session)
        self._changed.clear()
        totals = self._totals
        oldest = min(self._waiting.items(), key=lambda one: one[1][1], default=None)
        return {
            "sessions": {
                "total": totals.total.sessions,
                "by_status": {status: found.sessions for status, found in sorted(totals.statuses.items())},
            },
            "asks": {
                "open": sum(many for many, _ in self._waiting.values()),
                "sessions": len(self._waiting),
                "oldest": None if oldest is None else {"session": oldest[0], "time": oldest[1][1]},
            },
            "events": self._rate(),
            "spent": {
                "total": _told(totals.total),
                "by_agent": [{"agent": agent, **told} for agent, told in _rows(totals.agents)],
                "by_workspace": [
                    {"workspace": workspace, "cwd": cwd, **told} for (workspace, cwd), told in _rows(totals.workspaces)
                ],
            },
            "unknown": {"total": totals.total.unknown, "by_agent": _not_understood(totals)},
        }

    def _count(self, session: str) -> None:
        state = self._directory.states.get(session)
        self._totals.put(session, None if state is None else share_of(state))
        times = [ask.time for ask in self._directory.asks(session) if ask.status == "open"]
        if times:
            self._waiting[session] = len(times), min(times)
        else:
            self._waiting.pop(session, None)

    def _rate(self) -> EventRate:
        now = int(self._clock())
        self._forget(now)
        counts = [0] * SPAN_S
        for second, many in self._seconds:
            if second < now:
                counts[second - now + SPAN_S] = many
        return {"position": self._directory.position, "per_s": round(sum(counts[-10:]) / 10, 1), "last": counts}


def _not_understood(totals: Totals) -> list[UnknownBy]:
    most = sorted(totals.versions.items(), key=lambda one: -one[1].unknown)[:MOST_ROWS]
    return [
        {"agent": agent, "version": version, "messages": found.unknown}
        for (agent, version), found in most
        if found.unknown
    ]


def _told(found: Sum) -> Spend:
    return {
        "sessions": found.sessions,
        "turns": found.turns,
        "input": found.input,
        "output": found.output,
        "cost_usd": round(found.cost_usd, 6),
    }


def _rows(sums: dict[K, Sum]) -> list[tuple[K, Spend]]:
    most = sorted(sums.items(), key=lambda one: (-one[1].cost_usd, -one[1].output, -one[1].sessions))
    return [(key, _told(found)) for key, found in most[:MOST_ROWS]]
