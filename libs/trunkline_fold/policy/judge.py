"""What a policy says about an ask, and why. Pure, but for `Circumstances.real`, which may look at the disk."""

import datetime as dt
import functools
import itertools
from collections.abc import Callable
from typing import Final

import msgspec

from trunkline_fold.asks import AskRecord
from trunkline_fold.policy import apart, dangers, paths, shell, when
from trunkline_fold.policy.rules import Action, Policy, Rule, Ruling
from trunkline_wire.asks import PermissionRequested
from trunkline_wire.blocks import Json

_MOST_WORDS: Final = 5_000
"""Words of a command that are looked at as paths."""


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule may ask of a session besides its ask. `home` is what `~` stands for, `moment` when the ask was stored.

    `cost_usd` None: the agent has named no cost. `real` gives a path behind symbolic links, where the session's disk can
    be seen.
    """

    adapter: str
    cwd: str
    home: str
    moment: dt.datetime
    workspace: str | None = None
    cost_usd: float | None = None
    real: Callable[[str], str] | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule that was looked at. Where it did not match, `key` is the first key that did not, and `found` what stood there."""

    rule: str
    action: Action
    matched: bool = False
    key: str | None = None
    found: str | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """`steps` are the rules up to the one that won, or all of them where the default did."""

    ruling: Ruling
    steps: list[Step]


def decide(policy: Policy, record: AskRecord, circumstances: Circumstances) -> Ruling:
    """What the policy says about an ask.

    Questions and plans are for people: for them only rules with the action `ask` count, which set how long they wait and
    who may answer.
    """
    return explain(policy, record, circumstances).ruling


def explain(policy: Policy, record: AskRecord, circumstances: Circumstances) -> Explanation:
    """The same, with every rule that was looked at."""
    about = _About(record, circumstances)
    steps: list[Step] = []
    unsure: Rule | None = None
    for rule in policy.rules:
        miss = _miss(rule, record, about)
        if miss is not None:
            steps.append(Step(rule=rule.name, action=rule.action, key=miss[0], found=miss[1]))
            if rule.action != "allow" and miss[0] in ("command", "path", "danger") and not about.whole:
                unsure = unsure or rule
            continue
        steps.append(Step(rule=rule.name, action=rule.action, matched=True))
        if unsure is not None and rule.action == "allow":
            return Explanation(ruling=_unsure(policy, unsure), steps=steps)
        ruling = Ruling(
            action=rule.action,
            policy_version=policy.version,
            rule=rule.name,
            message=rule.message,
            expires_after=rule.expires_after,
            on_expiry=rule.on_expiry,
            quorum=rule.quorum,
            role=rule.role,
            signed=rule.signed,
        )
        return Explanation(ruling=ruling, steps=steps)
    action = policy.default if record.kind == "permission" else "ask"
    if unsure is not None and action == "allow":
        return Explanation(ruling=_unsure(policy, unsure), steps=steps)
    return Explanation(ruling=Ruling(action=action, policy_version=policy.version), steps=steps)


def _unsure(policy: Policy, rule: Rule) -> Ruling:
    """A person is asked where a command is too long to be sure that a rule against it does not match."""
    message = f"the command is too long to be checked against {rule.name!r}"
    return Ruling(action="ask", policy_version=policy.version, message=message)


class _About:
    """What an ask is about, taken apart once for all rules, and no further than they need."""

    def __init__(self, record: AskRecord, circumstances: Circumstances) -> None:
        asked = record.requested if isinstance(record.requested, PermissionRequested) else None
        self.circumstances = circumstances
        self.home = circumstances.home
        self.cwd = paths.resolve(circumstances.cwd, cwd=circumstances.cwd, home=self.home)
        self.input: Json = asked.input if asked else None
        self.tool = asked.name if asked else ""
        self.kind = asked.kind if asked else "other"
        self.commands = shell.commands_of(self.input)
        self.hidden = paths.is_hidden(self.input)
        self.mcp_server = paths.mcp_server_of(self.tool, self.input) or ""
        self._real: dict[str, str] = {}

    @functools.cached_property
    def _apart(self) -> list[apart.Parts]:
        return [apart.parts_of(command) for command in self.commands]

    @property
    def whole(self) -> bool:
        """Whether its commands were short enough to be read to their ends."""
        return all(parts.whole for parts in self._apart) and len(self.words) < _MOST_WORDS

    @functools.cached_property
    def parts(self) -> list[str]:
        return [part for parts in self._apart for part in parts.texts]

    @functools.cached_property
    def paths(self) -> list[str]:
        """The paths that the input names as such."""
        return paths.paths_in(self.input, cwd=self.cwd, home=self.home)

    @functools.cached_property
    def words(self) -> list[str]:
        every = (word for command in self.commands for word in apart.words_of(command))
        words = itertools.islice(every, _MOST_WORDS)
        return [word.replace("${HOME}", self.home).replace("$HOME", self.home) for word in words]

    @functools.cached_property
    def mentioned_paths(self) -> list[str]:
        """Those, and the words of commands that look like one."""
        likely = [word for word in self.words if "/" in word or word.startswith(("~", "."))]
        return [*self.paths, *(paths.resolve(word, cwd=self.cwd, home=self.home) for word in likely)]

    def mentions(self, patterns: tuple[str, ...]) -> bool:
        """Whether one of the paths matches, or any other word of a command a pattern that is about names alone."""
        if any(self.widely(patterns, path) for path in self.mentioned_paths):
            return True
        names = [pattern for pattern in patterns if "/" not in pattern]
        return any(paths.path_glob(pattern).fullmatch(word) is not None for pattern in names for word in self.words)

    @functools.cached_property
    def directories(self) -> list[str]:
        """The session's directory, and those that the input says it works in."""
        inside = [paths.resolve(one, cwd=self.cwd, home=self.home) for one in paths.directories_in(self.input)]
        return [self.cwd, *inside]

    def real(self, path: str) -> str:
        look = self.circumstances.real
        if look is None:
            return path
        if path not in self._real:
            self._real[path] = look(path)
        return self._real[path]

    def textually(self, pattern: str, path: str) -> bool:
        return paths.path_matches(pattern, path, cwd=self.cwd, home=self.home)

    def behind_links(self, pattern: str, path: str) -> bool:
        """Whether what a path leads to matches what the pattern leads to."""
        real = self.real(path)
        if self.textually(pattern, real):
            return True
        if "/" not in pattern:
            return False
        fixed, rest = paths.fixed_part(pattern, cwd=self.cwd, home=self.home)
        return paths.path_glob(self.real(fixed or "/").rstrip("/") + rest).fullmatch(real) is not None

    def narrowly(self, patterns: tuple[str, ...], path: str) -> bool:
        return any(self.textually(pattern, path) for pattern in patterns) and any(
            self.behind_links(pattern, path) for pattern in patterns
        )

    def widely(self, patterns: tuple[str, ...], path: str) -> bool:
        return any(self.textually(pattern, path) or self.behind_links(pattern, path) for pattern in patterns)


Miss = tuple[str, str]
"""The key that did not match, and what stood there."""


def _miss(rule: Rule, record: AskRecord, about: _About) -> Miss | None:
    if record.kind not in rule.asks:
        return "asks", record.kind
    if record.kind != "permission" and rule.action != "ask":
        return "action", f"a {record.kind} is for people"
    return _session_miss(rule, about) or _time_miss(rule, about) or _call_miss(rule, about)


def _session_miss(rule: Rule, about: _About) -> Miss | None:
    found = about.circumstances
    for key, patterns, value in (
        ("adapter", rule.adapter, found.adapter),
        ("workspace", rule.workspace, found.workspace or ""),
    ):
        if not _any_glob(patterns, value):
            return key, value
    if rule.cwd:
        if rule.action == "allow":
            fits = all(about.narrowly(rule.cwd, one) for one in about.directories)
        else:
            fits = any(about.widely(rule.cwd, one) for one in about.directories)
        if not fits:
            return "cwd", ", ".join(about.directories)
    cost = found.cost_usd
    for key, limit, fits in (
        ("cost_at_least", rule.cost_at_least, cost is not None and cost >= (rule.cost_at_least or 0)),
        ("cost_at_most", rule.cost_at_most, cost is not None and cost <= (rule.cost_at_most or 0)),
    ):
        if limit is not None and not fits:
            return key, "unknown" if cost is None else f"{cost:.4f}"
    return None


def _time_miss(rule: Rule, about: _About) -> Miss | None:
    moment = about.circumstances.moment
    if not rule.hours and not rule.weekdays:
        return None
    if when.within(moment, rule.hours, rule.weekdays, rule.zone):
        return None
    return "hours" if rule.hours else "weekdays", f"{moment.astimezone(dt.UTC):%a %H:%M} UTC"


def _call_miss(rule: Rule, about: _About) -> Miss | None:
    if not _any_glob(rule.tool, about.tool):
        return "tool", about.tool
    if rule.kind and about.kind not in rule.kind:
        return "kind", about.kind
    if rule.mcp_server:
        # a command that only says it came from a server is no tool of that server
        claimed = rule.action == "allow" and bool(about.commands) and not about.tool.startswith("mcp__")
        if claimed or not _any_glob(rule.mcp_server, about.mcp_server):
            return "mcp_server", about.mcp_server
    if rule.command and not _command(rule, about):
        return "command", _seen(about, "; ".join(about.commands) or "no command")
    if rule.path and not _paths(rule, about):
        return "path", _seen(about, ", ".join(about.paths) or "no path")
    if rule.danger and not any(_dangerous(about, name) for name in rule.danger):
        return "danger", "none of these"
    return None


def _dangerous(about: _About, name: dangers.Danger) -> bool:
    found = dangers.CLASSES[name]
    return about.kind in found.kinds or dangers.mentions(name, about.parts) or about.mentions(found.paths)


def _seen(about: _About, text: str) -> str:
    return "too large to be seen" if about.hidden else text[:300]


def _any_glob(patterns: tuple[str, ...], value: str) -> bool:
    return not patterns or any(paths.text_glob(pattern, value) for pattern in patterns)


def _command(rule: Rule, about: _About) -> bool:
    if rule.action != "allow":
        return any(apart.mentioned(pattern, about.parts) for pattern in rule.command)
    if not about.commands or about.hidden or shell.is_steered(about.input):
        return False
    return all(any(shell.allowed(pattern, command) for pattern in rule.command) for command in about.commands)


def _paths(rule: Rule, about: _About) -> bool:
    if rule.action != "allow":
        return about.mentions(rule.path)
    # the paths beside a command say nothing about what it touches
    seen = not about.hidden and (not about.commands or bool(rule.command))
    return seen and bool(about.paths) and all(about.narrowly(rule.path, path) for path in about.paths)
