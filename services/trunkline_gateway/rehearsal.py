"""What a policy would say about asks, those of the log and described ones, and what another policy would change."""

import datetime as dt
import os
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_fold.asks import Ask, AskStatus, PermissionAsk
from trunkline_fold.policy import Circumstances, Explanation, Policy, explain
from trunkline_fold.session_rules import covering
from trunkline_fold.spending import FACTS, Spending, fold_spending
from trunkline_gateway.directory import Directory
from trunkline_gateway.stories import whole
from trunkline_wire import TrunklineError, parse_time
from trunkline_wire.asks import PermissionRequested
from trunkline_wire.blocks import Json, ToolKind


class Described(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An ask that was never asked. `input` is the tool's; `command` and `paths` stand for the usual ones."""

    tool: str = "Bash"
    kind: ToolKind | None = None
    command: str | None = None
    paths: list[str] = []
    input: Json = None
    adapter: str = ""
    cwd: str = "/"
    workspace: str | None = None
    cost_usd: float | None = None
    time: str | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One ask, by the policy in force and by the `other` one. `was` is what really became of it.

    `session_rule` would allow it although the policy asks. `changed`: the other policy would say something else.
    """

    ask: str | None = None
    session: str | None = None
    asked: str | None = None
    requested: Json
    explanation: Explanation
    other: Explanation | None = None
    changed: bool = False
    session_rule: str | None = None
    status: AskStatus | None = None
    was: dict[str, Any] = {}


class Rehearsal:
    """`home` is what `~` stands for, `host` this host's id: only there symbolic links are followed."""

    def __init__(
        self, bus: Bus, directory: Directory, host: str, home: str, current: Policy, other: Policy | None
    ) -> None:
        self._bus = bus
        self._directory = directory
        self._host = host
        self._home = home
        self._current = current
        self._other = other
        policies = [current] if other is None else [current, other]
        self._costs = any(
            rule.cost_at_least is not None or rule.cost_at_most is not None for one in policies for rule in one.rules
        )

    def described(self, described: Described) -> Result:
        """Raises TrunklineError `bad_params` for an input that is none, or a time of another form."""
        requested = _requested(described)
        record = PermissionAsk(
            ask=requested.ask, session="", incarnation="", requested=requested, sequence=0, time="", status="open"
        )
        circumstances = Circumstances(
            adapter=described.adapter,
            cwd=described.cwd,
            home=self._home,
            moment=dt.datetime.now(dt.UTC) if described.time is None else _moment(described.time),
            workspace=described.workspace,
            cost_usd=described.cost_usd,
            real=os.path.realpath,
        )
        return self._judge(record, circumstances, {"requested": requested})

    async def asks(self, records: Sequence[Ask]) -> list[Result]:
        """The asks as they were asked: with their whole inputs, at their time, at what the session had cost until then."""
        stored = await whole(self._bus, records)
        costs = await self._spent(records) if self._costs else {}
        results: list[Result] = []
        for record in records:
            state = self._directory.states.get(record.session)
            found = stored.get(record.ask)
            if state is None or found is None:
                continue  # erased meanwhile
            asked = replace(record, requested=found.event().data)
            circumstances = Circumstances(
                adapter=state.adapter or "",
                cwd=state.cwd or "/",
                home=self._home,
                moment=found.time,
                workspace=state.workspace,
                cost_usd=costs.get(record.ask),
                real=os.path.realpath if state.host == self._host else None,
            )
            about: dict[str, Any] = {
                "ask": record.ask,
                "session": record.session,
                "asked": record.time,
                "requested": asked.requested,
                "status": record.status,
                "was": _was(record),
            }
            results.append(self._judge(asked, circumstances, about))
        return results

    async def _spent(self, records: Sequence[Ask]) -> dict[str, float | None]:
        """What the session had cost when each ask was stored."""
        costly, found = {kind.TYPE for kind in FACTS}, dict[str, float | None]()
        for session in dict.fromkeys(record.session for record in records):
            asks = {record.sequence: record.ask for record in records if record.session == session}
            spending = Spending()
            for stored in await read_session(self._bus, session, until=max(asks)):
                if stored.type in costly:
                    spending = fold_spending(spending, stored.event())
                elif stored.sequence in asks:
                    found[asks[stored.sequence]] = spending.usd
        return found

    def _judge(self, record: Ask, circumstances: Circumstances, about: dict[str, Any]) -> Result:
        explanation = explain(self._current, record, circumstances)
        other = None if self._other is None else explain(self._other, record, circumstances)
        rule = covering(self._directory.asks_of(record.session).rules, record.requested)
        return Result(
            **about,
            explanation=explanation,
            other=other,
            changed=other is not None and _differ(explanation, other),
            session_rule=rule.rule if rule is not None and explanation.ruling.plain else None,
        )


def _differ(one: Explanation, other: Explanation) -> bool:
    """Whether two policies say something else, whatever their versions and the names of their rules."""
    nameless = [replace(each.ruling, policy_version="", rule=None) for each in (one, other)]
    return nameless[0] != nameless[1]


def _was(record: Ask) -> dict[str, Any]:
    if record.decision is not None:
        return {"behaviour": record.decision.behaviour, "by": record.decision.by, "rule": record.decision.rule}
    if record.expired is not None:
        return {"behaviour": record.expired.behaviour, "by": "expiry"}
    return {}


def _requested(described: Described) -> PermissionRequested:
    if described.input is not None and not isinstance(described.input, dict):
        raise TrunklineError("bad_params", "`input` must be an object: the tool's input", field="described")
    given: dict[str, Any] = dict(described.input or {})
    if described.command is not None:
        given["command"] = described.command
    if described.paths:
        given["paths"] = described.paths
    kind: ToolKind = described.kind or ("execute" if described.command is not None else "other")
    return PermissionRequested(ask="ask", name=described.tool, incarnation="", kind=kind, input=given or None)


def _moment(time: str) -> dt.datetime:
    moment = parse_time(time)
    if moment.tzinfo is None:
        raise TrunklineError("bad_params", f"{time!r} names no offset: write 2026-11-27T21:20:10Z", field="described")
    return moment
