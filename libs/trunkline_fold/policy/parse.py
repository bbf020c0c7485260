"""From a TOML text to a policy, or to an error that names the rule, its line and the key."""

import hashlib
import re
import tomllib
from collections.abc import Callable
from typing import Any, Final, get_args
from zoneinfo import ZoneInfo

from trunkline_fold.asks import AskKind
from trunkline_fold.policy import when
from trunkline_fold.policy.rules import ASK_TWO, Action, Danger, OnExpiry, Policy, Role, Rule, protecting_rules
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import ToolKind

_GLOB_KEYS: Final = ("adapter", "workspace", "cwd", "tool", "command", "path", "mcp_server")
_TOP_KEYS: Final = ("default", "protect", "rule")
_KEYS: Final = tuple(name for name in Rule.__struct_fields__ if name != "origin")
_ASKING_KEYS: Final = ("expires_after", "on_expiry", "quorum", "role", "signed")
"""What only a rule that asks may say."""


def parse_policy(text: str, *, state_dir: str) -> Policy:
    """The policy of a TOML text; an empty text asks about everything that the protecting rules don't deny.

    Raises TrunklineError `bad_settings`, which names the rule and the key, with `line` in its details where it is known.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = {} if found is None else {"line": int(found[1])}
        raise TrunklineError("bad_settings", f"the policy is not TOML: {error}", **line) from error
    for key in table:
        if key not in _TOP_KEYS:
            raise _wrong("the policy", key, f"is unknown; it has {', '.join(_TOP_KEYS)}")
    default = _one_of("the policy", "default", table.get("default", "ask"), get_args(Action))
    protect = table.get("protect", True)
    if not isinstance(protect, bool):
        raise _wrong("the policy", "protect", "must be true or false")
    entries = table.get("rule", [])
    if not isinstance(entries, list):
        raise _wrong("the policy", "rule", "must be an array of tables: write [[rule]] before each")
    rules: list[Rule] = []
    for number, entry in enumerate(entries, 1):
        try:
            rule = _rule(entry, number)
            if any(rule.name == other.name for other in rules):
                raise _wrong(
                    f"rule {rule.name!r}", "name", "is taken by an earlier rule; decisions name their rule by it"
                )
        except TrunklineError as error:
            raise _located(error, text, number) from None
        rules.append(rule)
    return Policy(
        version=hashlib.sha256(text.encode()).hexdigest(),
        rules=((*protecting_rules(state_dir), *rules) if protect else tuple(rules)),
        default=default,
    )


def _located(error: TrunklineError, text: str, number: int) -> TrunklineError:
    """The error with the line that it is about: that of its key in the rule, or the one where the rule begins."""
    lines = text.splitlines()
    begins = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[\s*rule\s*\]\]", line)]
    if len(begins) < number:
        return error
    begin = begins[number - 1]
    end = begins[number] if len(begins) > number else len(lines)
    key = re.compile(rf"""\s*["']?{re.escape(str(error.details.get("key", "")))}["']?\s*=""")
    line = next((n for n in range(begin, end) if key.match(lines[n])), begin) + 1
    return TrunklineError(error.code, f"line {line}: {error.message}", **{**error.details, "line": line})


def _rule(entry: Any, number: int) -> Rule:
    where = f"rule {number}"
    if not isinstance(entry, dict):
        raise _wrong("the policy", "rule", "must be an array of tables: write [[rule]] before each")
    name = entry.get("name", where)
    if not isinstance(name, str) or not name:
        raise _wrong(where, "name", "must be a text")
    where = f"rule {name!r}"
    for key in entry:
        if key not in _KEYS:
            raise _wrong(where, key, f"is unknown; a rule has {', '.join(_KEYS)}")
    if "action" not in entry:
        raise _wrong(where, "action", f"is missing: {', '.join((*get_args(Action), ASK_TWO))}")
    action = _one_of(where, "action", entry["action"], (*get_args(Action), ASK_TWO))
    fields: dict[str, Any] = {"name": name, "action": "ask" if action == ASK_TWO else action}
    for key in _GLOB_KEYS:
        if key in entry:
            fields[key] = _texts(where, key, entry[key])
    for key, kinds in (("kind", ToolKind), ("asks", AskKind), ("danger", Danger)):
        if key in entry:
            fields[key] = _some_of(where, key, entry[key], get_args(kinds))
    if "message" in entry:
        fields["message"] = _text(where, "message", entry["message"])
    fields |= _costs(where, entry) | _times(where, entry) | _asking(where, entry, action=action)
    if fields["action"] == "allow" and "danger" in entry:
        raise _wrong(where, "danger", "is for rules that deny or ask: what is dangerous is read widely")
    if fields["action"] != "ask" and set(fields.get("asks", ())) - {"permission"}:
        raise _wrong(where, "asks", "questions and plans are for people: only `ask` rules may name them")
    return Rule(**fields)


def _costs(where: str, entry: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _number(where, key, entry[key], "an amount in USD, 0 or more", least=0.0)
        for key in ("cost_at_least", "cost_at_most")
        if key in entry
    }


def _times(where: str, entry: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if "hours" in entry:
        form = 'must be spans such as "09:00-18:00"; 24:00 is a day\'s end'
        fields["hours"] = tuple(
            _read(where, "hours", one, when.span, form) for one in _texts(where, "hours", entry["hours"])
        )
    if "weekdays" in entry:
        form = f'must be days, or spans of days such as "mon-fri": {", ".join(when.DAYS)}'
        each = [_read(where, "weekdays", one, when.days, form) for one in _texts(where, "weekdays", entry["weekdays"])]
        fields["weekdays"] = tuple(sorted({day for days in each for day in days}))
    if "zone" in entry:
        if not fields:
            raise _wrong(where, "zone", "needs hours or weekdays")
        zone = _text(where, "zone", entry["zone"])
        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, OSError) as error:
            raise _wrong(
                where, "zone", f"{zone!r} is no time zone that is known here, such as Europe/Berlin"
            ) from error
        fields["zone"] = zone
    return fields


def _asking(where: str, entry: dict[str, Any], *, action: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"quorum": 2} if action == ASK_TWO else {}
    for key in _ASKING_KEYS:
        if key in entry and action not in ("ask", ASK_TWO):
            raise _wrong(where, key, f"is for rules with the action `ask` or `{ASK_TWO}`")
    if "expires_after" in entry:
        form = "a number of seconds above 0"
        fields["expires_after"] = _number(where, "expires_after", entry["expires_after"], form, above=0.0)
    if "on_expiry" in entry:
        if "expires_after" not in entry:
            raise _wrong(where, "on_expiry", "needs expires_after")
        fields["on_expiry"] = _one_of(where, "on_expiry", entry["on_expiry"], get_args(OnExpiry))
    if "quorum" in entry:
        quorum = entry["quorum"]
        if action == ASK_TWO:
            raise _wrong(where, "quorum", f"is what `{ASK_TWO}` says already: use `ask` with another number")
        if isinstance(quorum, bool) or not isinstance(quorum, int) or quorum < 1:
            raise _wrong(where, "quorum", "must be a whole number of approvals, 1 or more")
        fields["quorum"] = quorum
    if "role" in entry:
        fields["role"] = _one_of(where, "role", entry["role"], get_args(Role))
    if "signed" in entry:
        if not isinstance(entry["signed"], bool):
            raise _wrong(where, "signed", "must be true or false")
        fields["signed"] = entry["signed"]
    return fields


def _number(
    where: str, key: str, value: Any, form: str, *, least: float | None = None, above: float | None = None
) -> float:
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or (least is not None and not value >= least) or (above is not None and not value > above):
        raise _wrong(where, key, f"must be {form}")
    return float(value)


def _read(where: str, key: str, text: str, reads: Callable[[str], Any], form: str) -> Any:
    try:
        return reads(text)
    except ValueError as error:
        raise _wrong(where, key, f"{text!r}: {form}") from error


def _text(where: str, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(where, key, "must be a text")
    return value


def _texts(where: str, key: str, value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise _wrong(where, key, "is an empty list, which would match nothing: leave the key out")
    return tuple(_text(where, key, entry) for entry in values)


def _one_of(where: str, key: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    if value not in allowed:
        raise _wrong(where, key, f"is {value!r}; it can be {', '.join(allowed)}")
    return value


def _some_of(where: str, key: str, value: Any, allowed: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_one_of(where, key, entry, allowed) for entry in _texts(where, key, value))


def _wrong(where: str, key: str, what: str) -> TrunklineError:
    return TrunklineError("bad_settings", f"{where}: {key!r} {what}", where=where, key=key)
