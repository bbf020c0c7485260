"""`policy.*`: the policy in force, what it would say, and its versions.

For approvers, who have to know what is asked of them, and not for limited tokens: a policy names paths of all sessions.
"""

from pathlib import Path
from typing import Final, TypedDict

import msgspec

from trunkline_bus import direct
from trunkline_bus.reader import read
from trunkline_bus.stored import Stored
from trunkline_fold.asks import Ask
from trunkline_fold.policy import Policy, parse_policy
from trunkline_fold.policy.rules import Rule
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Page, Params, method
from trunkline_gateway.rehearsal import Described, Rehearsal, Result
from trunkline_wire import SystemRecord, TrunklineError, parse_time, subjects
from trunkline_wire.ids import check_id

KIND: Final = "policy"
MAX_TESTED: Final = 1000
MAX_VERSIONS: Final = 200


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """A version as the permission service recorded it; `recorded` None: no version was yet, the default is in force."""

    version: str
    text: str
    state_dir: str
    user_home: str
    path: str | None = None
    recorded: str | None = None


async def in_force(gateway: Gateway) -> InForce:
    """The version that the permission service recorded last."""
    stored = await direct.last(gateway.bus, subjects.SYSTEM, subjects.system(KIND))
    if stored is None:
        state_dir = str(gateway.settings.home)
        empty = parse_policy("", state_dir=state_dir)
        return InForce(version=empty.version, text="", state_dir=state_dir, user_home=str(Path.home()))
    return _version(gateway, stored)


def _version(gateway: Gateway, stored: Stored) -> InForce:
    record = msgspec.json.decode(stored.raw, type=SystemRecord)
    details = record.details
    return InForce(
        version=str(details.get("version", "")),
        text=str(details.get("text", "")),
        state_dir=str(details.get("state_dir") or gateway.settings.home),
        user_home=str(details.get("user_home") or Path.home()),
        path=details.get("path"),
        recorded=record.time,
    )


class Nothing(Params, frozen=True, kw_only=True):
    pass


class PolicyNow(TypedDict):
    """`recorded` None: the default is in force, for there was no version yet."""

    version: str
    text: str
    path: str | None
    recorded: str | None
    default: str
    rules: list[Rule]


@method("policy.get", "approver", Nothing)
async def get(gateway: Gateway, _: Caller, __: Nothing) -> PolicyNow:
    """The policy in force: its text, version and file, and its rules in the order in which they are tried."""
    found = await in_force(gateway)
    policy = parse_policy(found.text, state_dir=found.state_dir)
    return {
        "version": found.version,
        "text": found.text,
        "path": found.path,
        "recorded": found.recorded,
        "default": policy.default,
        "rules": list(policy.rules),
    }


class Test(Params, frozen=True, kw_only=True):
    """What to try: a `described` ask, one `ask`, the asks of a `session`, or all since a time (RFC 3339).

    `policy` is the text of one that is not in force: every ask is judged by both.
    """

    described: Described | None = None
    ask: str | None = None
    session: str | None = None
    since: str | None = None
    policy: str | None = None


class PolicyTest(TypedDict):
    """`other`: the version of the policy that is not in force; `changed` of the results differ."""

    version: str
    other: str | None
    results: list[Result]
    changed: int
    truncated: bool


@method("policy.test", "approver", Test)
async def test(gateway: Gateway, _: Caller, params: Test) -> PolicyTest:
    """Which rule would win, and why those before it would not; nothing is decided.

    `truncated` says that only the latest asks were tried.
    """
    now = await in_force(gateway)
    current = parse_policy(now.text, state_dir=now.state_dir)
    other = None if params.policy is None else parse_policy(params.policy, state_dir=now.state_dir)
    rehearsal = Rehearsal(gateway.bus, gateway.directory, gateway.host, now.user_home, current, other)
    if params.described is not None:
        results = [rehearsal.described(params.described)]
        truncated = False
    else:
        records = await _records(gateway, params)
        truncated = len(records) > MAX_TESTED
        results = await rehearsal.asks(sorted(records, key=_by_sequence)[-MAX_TESTED:])
    return {
        "version": now.version,
        "other": None if other is None else other.version,
        "results": results,
        "changed": sum(result.changed for result in results),
        "truncated": truncated,
    }


def _by_sequence(record: Ask) -> int:
    return record.sequence


async def _records(gateway: Gateway, params: Test) -> list[Ask]:
    if params.ask is not None:
        record = gateway.directory.ask(check_id(params.ask, "ask"))
        if record is None:
            raise TrunklineError("unknown_ask", f"there is no ask {params.ask!r}", ask=params.ask)
        return [record]
    if params.session is None and params.since is None:
        raise TrunklineError("bad_params", "say what to try: `described`, `ask`, `session` or `since`")
    if params.session is not None:
        await gateway.directory.session(check_id(params.session, "ses"))
    since = None if params.since is None else parse_time(params.since)
    asks = gateway.directory.asks(params.session)
    return [record for record in asks if since is None or parse_time(record.time) >= since]


class Versions(Params, frozen=True, kw_only=True):
    """`before` is a version's place, where an earlier page ended."""

    limit: int = 20
    before: int | None = None


class PolicyVersion(TypedDict):
    """A version as it was recorded; `rules` is how many it has, `error` why they can't be read."""

    version: str
    text: str
    state_dir: str
    user_home: str
    path: str | None
    recorded: str | None
    rules: int | None
    error: str | None


class PolicyVersions(Page):
    versions: list[PolicyVersion]
    next: int | None


@method("policy.history", "approver", Versions)
async def history(gateway: Gateway, _: Caller, params: Versions) -> PolicyVersions:
    """The versions in the log, the latest first, with their texts; `next` is `before` of the next page."""
    if not 1 <= params.limit <= MAX_VERSIONS:
        raise TrunklineError("bad_params", f"limit must be between 1 and {MAX_VERSIONS}", field="limit")
    every = await read(gateway.bus, subjects.SYSTEM, [subjects.system(KIND)])
    older = [one for one in every if params.before is None or one.sequence < params.before]
    page = older[-params.limit :][::-1]
    more = len(older) > len(page)
    return {
        "versions": [_shown(_version(gateway, one)) for one in page],
        "next": page[-1].sequence if more else None,
        "total": len(every),
        "has_more": more,
    }


def _shown(found: InForce) -> PolicyVersion:
    rules, error = _counted(found)
    return {
        "version": found.version,
        "text": found.text,
        "state_dir": found.state_dir,
        "user_home": found.user_home,
        "path": found.path,
        "recorded": found.recorded,
        "rules": rules,
        "error": error,
    }


def _counted(found: InForce) -> tuple[int | None, str | None]:
    """How many rules it has, or why it can't be read."""
    try:
        policy: Policy = parse_policy(found.text, state_dir=found.state_dir)
    except TrunklineError as error:
        return None, error.message
    return len(policy.rules), None
