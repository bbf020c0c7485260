"""A session's own rules: what a person allowed for good becomes a rule of Trunkline's, and the agent asks on.

So every call that a rule lets pass stands in the log with the rule's name, and a rule that is revoked holds no more. An
agent proposes rules in its own words; of those the widespread forms are read here, and only as far as they are sure to
mean no more than what was proposed. What is not understood makes no rule: the agent itself is told what was chosen.
"""

import re
import shlex
from collections.abc import Sequence
from typing import Any, Final

from trunkline_fold.asks import RuleRecord
from trunkline_fold.policy import paths, shell
from trunkline_wire import Data
from trunkline_wire.asks import PermissionRequested, SessionRule
from trunkline_wire.blocks import Json

NAME: Final = "session-"
"""What the names of the session's own rules begin with."""

_PREFIX: Final = ":*"
_GLOB: Final = re.compile(r"[*?\[]")


def rule_name(ask: str) -> str:
    """The name of the rule that an ask's decision makes."""
    return f"{NAME}{ask.removeprefix('ask_')[:12]}"


def suggested(requested: Data, option: str | None) -> SessionRule | None:
    """The rule that choosing an option for good makes; None where the option says nothing of the kind that is understood."""
    if not isinstance(requested, PermissionRequested) or option is None:
        return None
    lasting = [one.id for one in requested.options if one.kind == "allow_always"]
    if option not in lasting:
        return None
    command = _globs(requested, _chosen(requested.suggestions, lasting.index(option), len(lasting)))
    if command is None:
        return None
    return SessionRule(rule=rule_name(requested.ask), tool=requested.name, command=command)


def covering(rules: Sequence[RuleRecord], requested: Data) -> RuleRecord | None:
    """The first rule in force that allows what is asked."""
    if not isinstance(requested, PermissionRequested) or paths.is_hidden(requested.input):
        return None
    commands = shell.commands_of(requested.input)
    for rule in rules:
        if not rule.in_force or rule.tool != requested.name:
            continue
        if not rule.command and not commands:
            return rule
        if commands and not shell.is_steered(requested.input) and all(_covered(rule, one) for one in commands):
            return rule
    return None


def _covered(rule: RuleRecord, command: str) -> bool:
    return any(shell.allowed(pattern, command) for pattern in rule.command)


def _chosen(suggestions: Json, index: int, options: int) -> list[Any]:
    """The suggestions that an option stands for: one each where there are as many, else all of them."""
    if not isinstance(suggestions, list):
        return []
    return [suggestions[index]] if len(suggestions) == options and isinstance(suggestions[index], dict) else suggestions


def _globs(requested: PermissionRequested, chosen: list[Any]) -> list[str] | None:
    """Globs on commands, none for a tool without commands; None where the suggestion is not understood."""
    commands = shell.commands_of(requested.input)
    if not chosen or len(commands) > 1:
        return None
    if all(isinstance(one, str) for one in chosen):
        return _of_texts(chosen, commands[0]) if commands else None
    found: list[str] = []
    for one in chosen:
        rules = _added(one)
        if rules is None:
            return None
        for rule in rules:
            content = rule.get("ruleContent")
            if rule.get("toolName") != requested.name or bool(commands) != isinstance(content, str):
                return None  # another tool, all of a shell, or a content that is not about a command
            found += _of_content(str(content)) if commands else []
    return found


def _added(suggestion: Any) -> list[dict[str, Any]] | None:
    """The rules that a suggestion adds to what is allowed."""
    if not isinstance(suggestion, dict) or suggestion.get("type") != "addRules":
        return None
    rules = suggestion.get("rules")
    if suggestion.get("behavior") != "allow" or not isinstance(rules, list) or not rules:
        return None
    return rules if all(isinstance(rule, dict) for rule in rules) else None


def _of_content(content: str) -> list[str]:
    """A command as it stands, or those that begin with it (`git log:*`)."""
    return _beginning(content.removesuffix(_PREFIX)) if content.endswith(_PREFIX) else [_literal(content)]


def _of_texts(texts: list[str], command: str) -> list[str] | None:
    """Globs that match the command (`git log *`), or the words that it begins with."""
    globs = [glob for text in texts for glob in (text, text.removesuffix(" *"))]
    if any(shell.allowed(glob, command) for glob in globs):
        return list(dict.fromkeys(globs))
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return _beginning(shlex.join(texts)) if words[: len(texts)] == texts else None


def _beginning(text: str) -> list[str]:
    return [_literal(text), f"{_literal(text)} *"] if text.strip() else []


def _literal(text: str) -> str:
    return _GLOB.sub(lambda sign: f"[{sign[0]}]", text)
