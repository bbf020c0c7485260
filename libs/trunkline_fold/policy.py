"""Policies: rules in TOML that answer an ask, or say how long it waits. The first rule that matches wins.

    default = "ask"                     # what happens where no rule matches: ask, allow or deny
    protect = true                      # put the rules before all others that keep agents off Trunkline itself

    [[rule]]
    name = "tests"
    action = "allow"
    tool = ["Bash", "shell"]            # globs on the tool's name
    kind = "execute"
    command = "pytest*"                 # globs on the command line
    cwd = "~/src/**"                    # globs on the session's directory

    [[rule]]
    name = "secrets"
    action = "deny"
    path = [".env", "~/.ssh/**"]        # globs on every path that the input names
    message = "Keys stay here."

    [[rule]]
    name = "at night"
    action = "ask"
    expires_after = 600                 # seconds
    on_expiry = "deny"

All keys of a rule must match; of a list one entry is enough. A rule that allows is read narrowly (all paths must match,
and no shell operator may smuggle in a second command), one that denies or asks widely (any path, any command within).
"""

import hashlib
import tomllib
from typing import Any, Final, Literal, get_args

import msgspec

from trunkline_fold import _match
from trunkline_fold.asks import AskKind, AskRecord
from trunkline_wire import TrunklineError
from trunkline_wire.asks import PermissionRequested
from trunkline_wire.blocks import ToolKind

Action = Literal["allow", "deny", "ask"]
OnExpiry = Literal["allow", "deny"]

_GLOB_KEYS: Final = ("adapter", "workspace", "cwd", "tool", "command", "path", "mcp_server")
_TOP_KEYS: Final = ("default", "protect", "rule")


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule; an empty tuple matches everything. `expires_after` is in seconds."""

    name: str
    action: Action
    adapter: tuple[str, ...] = ()
    workspace: tuple[str, ...] = ()
    cwd: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    kind: tuple[ToolKind, ...] = ()
    command: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    mcp_server: tuple[str, ...] = ()
    asks: tuple[AskKind, ...] = ("permission",)
    message: str | None = None
    expires_after: float | None = None
    on_expiry: OnExpiry = "deny"
    quorum: int = 1


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """`version` is the sha256 (hex) of the text that the rules were read from."""

    version: str
    rules: tuple[Rule, ...]
    default: Action = "ask"


class Ruling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a policy says about an ask; `rule` is None where no rule matched."""

    action: Action
    policy_version: str
    rule: str | None = None
    message: str | None = None
    expires_after: float | None = None
    on_expiry: OnExpiry = "deny"
    quorum: int = 1


class _About(msgspec.Struct, frozen=True, kw_only=True):
    """What an ask is about, taken apart once for all rules."""

    adapter: str
    workspace: str
    cwd: str
    home: str
    tool: str
    kind: ToolKind
    command: str | None
    paths: list[str]
    mcp_server: str
    hidden: bool


def protecting_rules(state_dir: str) -> tuple[Rule, ...]:
    """The rules that keep agents off Trunkline's own directory (its token among the rest) and off its command."""
    inside = state_dir.rstrip("/")
    message = "Trunkline's own files and commands are for people, not for agents."
    return (
        Rule(name="trunkline-state", action="deny", path=(f"{inside}/**",), message=message),
        Rule(
            name="trunkline-state-by-command",
            action="deny",
            command=(
                f"*{inside}*",
                "*~/.trunkline*",
                "*$HOME/.trunkline*",
                "*${HOME}/.trunkline*",
                "*$TRUNKLINE_*",
                "*${TRUNKLINE_*",
            ),
            message=message,
        ),
        Rule(
            name="trunkline-command",
            action="deny",
            command=("trunkline", "trunkline *", "python* -m trunkline_*", "uv run trunkline*", "uvx trunkline*"),
            message=message,
        ),
    )


def parse_policy(text: str, *, state_dir: str) -> Policy:
    """The policy of a TOML text; an empty text asks about everything that the protecting rules don't deny.

    Raises TrunklineError `bad_settings`, which names the rule and the key.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TrunklineError("bad_settings", f"the policy is not TOML: {error}") from error
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
    rules = [_rule(entry, number) for number, entry in enumerate(entries, 1)]
    names: set[str] = set()
    for rule in rules:
        if rule.name in names:
            raise _wrong(f"rule {rule.name!r}", "name", "is taken by an earlier rule; decisions name their rule by it")
        names.add(rule.name)
    return Policy(
        version=hashlib.sha256(text.encode()).hexdigest(),
        rules=((*protecting_rules(state_dir), *rules) if protect else tuple(rules)),
        default=default,
    )


def decide(
    policy: Policy, record: AskRecord, *, adapter: str, cwd: str, home: str, workspace: str | None = None
) -> Ruling:
    """What the policy says about an ask of a session in `cwd`; `home` is what `~` stands for.

    Questions and plans are for people: for them only rules with the action `ask` count, which set how long they wait.
    """
    requested = record.requested
    about = _about(requested, adapter=adapter, cwd=cwd, home=home, workspace=workspace)
    for rule in policy.rules:
        if record.kind not in rule.asks or (record.kind != "permission" and rule.action != "ask"):
            continue
        if _matches(rule, about):
            return Ruling(
                action=rule.action,
                policy_version=policy.version,
                rule=rule.name,
                message=rule.message,
                expires_after=rule.expires_after,
                on_expiry=rule.on_expiry,
                quorum=rule.quorum,
            )
    return Ruling(action=policy.default if record.kind == "permission" else "ask", policy_version=policy.version)


def _about(requested: Any, *, adapter: str, cwd: str, home: str, workspace: str | None) -> _About:
    asked = requested if isinstance(requested, PermissionRequested) else None
    value = asked.input if asked else None
    name = asked.name if asked else ""
    return _About(
        adapter=adapter,
        workspace=workspace or "",
        cwd=_match.resolve(cwd, cwd=cwd, home=home),
        home=home,
        tool=name,
        kind=asked.kind if asked else "other",
        command=_match.command_of(value),
        paths=_match.paths_in(value, cwd=cwd, home=home),
        mcp_server=_match.mcp_server_of(name, value) or "",
        hidden=_match.is_hidden(value),
    )


def _matches(rule: Rule, about: _About) -> bool:
    return (
        _any_glob(rule.adapter, about.adapter)
        and _any_glob(rule.workspace, about.workspace)
        and (not rule.cwd or any(_path(pattern, about.cwd, about) for pattern in rule.cwd))
        and _any_glob(rule.tool, about.tool)
        and (not rule.kind or about.kind in rule.kind)
        and _any_glob(rule.mcp_server, about.mcp_server)
        and (not rule.command or _command(rule, about))
        and (not rule.path or _paths(rule, about))
    )


def _any_glob(patterns: tuple[str, ...], value: str) -> bool:
    return not patterns or any(_match.text_glob(pattern, value) for pattern in patterns)


def _path(pattern: str, path: str, about: _About) -> bool:
    return _match.path_matches(pattern, path, cwd=about.cwd, home=about.home)


def _command(rule: Rule, about: _About) -> bool:
    if about.command is None:
        return False
    if rule.action == "allow":
        return not about.hidden and any(_match.command_allowed(pattern, about.command) for pattern in rule.command)
    return any(_match.command_mentioned(pattern, about.command) for pattern in rule.command)


def _paths(rule: Rule, about: _About) -> bool:
    matched = (any(_path(pattern, path, about) for pattern in rule.path) for path in about.paths)
    if rule.action == "allow":
        # the paths beside a command say nothing about what it touches
        seen = not about.hidden and (about.command is None or bool(rule.command))
        return seen and bool(about.paths) and all(matched)
    return any(matched)


def _rule(entry: Any, number: int) -> Rule:
    where = f"rule {number}"
    if not isinstance(entry, dict):
        raise _wrong("the policy", "rule", "must be an array of tables: write [[rule]] before each")
    name = entry.get("name", where)
    if not isinstance(name, str) or not name:
        raise _wrong(where, "name", "must be a text")
    where = f"rule {name!r}"
    for key in entry:
        if key not in Rule.__struct_fields__:
            raise _wrong(where, key, f"is unknown; a rule has {', '.join(Rule.__struct_fields__)}")
    if "action" not in entry:
        raise _wrong(where, "action", "is missing: allow, deny or ask")
    fields: dict[str, Any] = {
        "name": name,
        "action": _one_of(where, "action", entry["action"], get_args(Action)),
    }
    for key in _GLOB_KEYS:
        if key in entry:
            fields[key] = _texts(where, key, entry[key])
    if "kind" in entry:
        fields["kind"] = _some_of(where, "kind", entry["kind"], get_args(ToolKind))
    if "asks" in entry:
        fields["asks"] = _some_of(where, "asks", entry["asks"], get_args(AskKind))
    if "message" in entry:
        fields["message"] = _text(where, "message", entry["message"])
    fields |= _waiting(where, entry, action=fields["action"])
    if fields["action"] != "ask" and set(fields.get("asks", ())) - {"permission"}:
        raise _wrong(where, "asks", "questions and plans are for people: only `ask` rules may name them")
    return Rule(**fields)


def _waiting(where: str, entry: dict[str, Any], *, action: Action) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key in ("expires_after", "on_expiry", "quorum"):
        if key in entry and action != "ask":
            raise _wrong(where, key, "is for rules with the action `ask`")
    if "expires_after" in entry:
        seconds = entry["expires_after"]
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
            raise _wrong(where, "expires_after", "must be a number of seconds above 0")
        fields["expires_after"] = float(seconds)
    if "on_expiry" in entry:
        if "expires_after" not in entry:
            raise _wrong(where, "on_expiry", "needs expires_after")
        fields["on_expiry"] = _one_of(where, "on_expiry", entry["on_expiry"], get_args(OnExpiry))
    if "quorum" in entry:
        quorum = entry["quorum"]
        if isinstance(quorum, bool) or not isinstance(quorum, int) or quorum < 1:
            raise _wrong(where, "quorum", "must be a whole number of approvals, 1 or more")
        fields["quorum"] = quorum
    return fields


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
