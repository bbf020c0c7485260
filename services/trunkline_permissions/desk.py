"""What the permission service knows of a session: its asks, and what a policy needs to judge them. Pure."""

import datetime as dt
from typing import Final

import msgspec
from msgspec.structs import replace

from trunkline_fold import asks
from trunkline_fold.asks import AskRecord, AsksState, fold_asks
from trunkline_fold.spending import FACTS as SPENDING_FACTS
from trunkline_fold.spending import Spending, fold_spending
from trunkline_permissions.answers import is_repeated
from trunkline_wire import Answer, Event, encode, timestamp
from trunkline_wire.asks import AskDecided, AskDelivered
from trunkline_wire.session import SessionClaimed, SessionClosed, SessionCreated, SessionErased
from trunkline_wire.subjects import Channel

VERSION: Final = asks.VERSION + 1
"""Of the desk as it is stored: rises with the fold of the asks in it; the number added rises with the desk's own."""

MAX_LATE: Final = 100
"""Late answers remembered a session, the newest."""

FACTS: Final = frozenset(
    kind.TYPE for kind in (SessionCreated, SessionClaimed, SessionClosed, SessionErased, AskDelivered, *SPENDING_FACTS)
)
"""The types of facts that matter here; all others need not even be decoded."""

_COSTS_ALONE: Final = tuple(kind for kind in SPENDING_FACTS if kind is not SessionErased)
"""Of those the ones that can change nothing but what the session has cost."""


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """One session. `adapter` None: nothing of it was seen yet, and nothing may be written for it."""

    session: str
    asks: AsksState = AsksState()
    adapter: str | None = None
    cwd: str = "/"
    workspace: str | None = None
    host: str | None = None
    spending: Spending = Spending()
    erased: bool = False
    arrived: dict[str, str] = {}
    """When the server stored each open ask (RFC 3339): expiry counts from there."""
    costs: dict[str, float] = {}
    """What the session had cost (USD) when each open ask came, as far as it was known: what comes later changes no ruling."""

    late: list[str] = []
    """Answers whose decision was stored behind an end that nobody had seen yet: they have their outcome all the same."""

    @property
    def exists(self) -> bool:
        return self.adapter is not None and not self.erased

    def answered(self, answer: Answer) -> bool:
        """Whether this answer's id has its outcome already: then nothing more is written."""
        if answer.id in self.late or any(rule.revoked_answer == answer.id for rule in self.asks.rules):
            return True
        return is_repeated(self.record(answer.ask), answer)

    def record(self, ask: str) -> AskRecord | None:
        """The ask of this id, open or ended (old ended ones are forgotten)."""
        return self.asks.asks.get(ask)


_desks: Final = msgspec.json.Decoder(Desk)


def encode_desk(desk: Desk) -> bytes:
    """The desk as JSON; equal desks give equal bytes."""
    return encode(desk)


def decode_desk(raw: bytes) -> Desk:
    """The desk that `encode_desk` wrote. Raises msgspec.MsgspecError for anything else."""
    return _desks.decode(raw)


def fold_desk(desk: Desk, event: Event, sequence: int, channel: Channel | None, stored: dt.datetime) -> Desk:
    """The desk after `event`, which stands at `sequence` of EVENTS since `stored`, by the server's clock."""
    if sequence <= desk.asks.sequence:
        return desk
    spending = fold_spending(desk.spending, event)
    if isinstance(event.data, _COSTS_ALONE) and spending is desk.spending:
        return desk  # most messages: nothing here changes by them
    folded = fold_asks(desk.asks, event, sequence, channel)
    if folded.asks is not desk.asks.asks:
        arrived = {ask.ask: desk.arrived.get(ask.ask) or timestamp(stored) for ask in folded.open}
        now = {} if desk.spending.usd is None else {ask.ask: desk.spending.usd for ask in folded.open}
        # Those that were there before keep what they came with.
        known = {ask: cost for ask, cost in now.items() if ask not in desk.arrived} | desk.costs
        desk = replace(desk, arrived=arrived, costs={ask: known[ask] for ask in arrived if ask in known})
    desk = replace(desk, asks=folded, spending=spending)
    match event.data:
        case SessionCreated() as data:
            return replace(desk, adapter=data.adapter, cwd=data.cwd, workspace=data.workspace, host=data.host)
        case SessionClaimed() as data:
            return replace(desk, host=data.host)
        case AskDecided(answer=str(answer)) as data:
            record = folded.asks.get(data.ask)
            if record is None or record.decision is None or record.decision.answer != answer:
                return replace(desk, late=[*desk.late, answer][-MAX_LATE:])
            return desk
        case SessionErased():
            return replace(desk, erased=True)
        case _:
            return desk
