"""Policies in words: their rules, what a test found, and what changed between two."""

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from trunkline_cli.context import brief as brief_id
from trunkline_cli.discovery import home_directory
from trunkline_cli.output import parse_json, safe, short
from trunkline_fold.policy import Policy, parse_policy
from trunkline_fold.policy.when import DAYS
from trunkline_wire import TrunklineError

_PLAIN: Final = ("adapter", "workspace", "cwd", "tool", "kind", "mcp_server", "command", "path", "danger", "asks")
_WAITING: Final = ("expires_after", "on_expiry", "role", "signed", "message")


def read_policy(file: Path, home: Path | None) -> Policy:
    """The policy of a file, as the instance in `home` would read it. Raises `bad_settings`."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TrunklineError("bad_settings", f"{str(file)!r} can't be read: {error}") from error
    return parse_policy(text, state_dir=str(home_directory(home)))


def rule_lines(number: int, rule: Mapping[str, Any]) -> Iterator[str]:
    """A rule in lines: what it does, then what has to match."""
    action = "ask-two" if rule["action"] == "ask" and rule.get("quorum") == 2 else rule["action"]
    many = f", {rule['quorum']} people" if rule.get("quorum", 1) > 2 else ""
    yield f"{number:3}. {action}{many}: {rule['name']}{' (built in)' if rule.get('origin') == 'built in' else ''}"
    for key in _PLAIN:
        if rule.get(key):
            yield f"       {key} = {', '.join(rule[key])}"
    for key in ("cost_at_least", "cost_at_most"):
        if rule.get(key) is not None:
            yield f"       {key} = {rule[key]:g} USD"
    if rule.get("hours") or rule.get("weekdays"):
        spans = [
            f"{begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}" for begin, end in rule.get("hours", [])
        ]
        days = [DAYS[day] for day in rule.get("weekdays", [])]
        yield f"       {', '.join(spans) or 'all day'} on {', '.join(days) or 'every day'}, {rule.get('zone', 'UTC')}"
    for key in _WAITING:
        if rule.get(key):
            yield f"       {key} = {safe(str(rule[key]))}"


def described(given: dict[str, Any]) -> dict[str, Any]:
    """The ask that the flags of `policy test` describe. Raises `bad_params`."""
    found: dict[str, Any] = {
        "tool": given["tool"] or "Bash",
        "kind": given["kind"],
        "command": given["command"],
        "paths": list(given["paths"]),
        "input": None if given["given"] is None else parse_json(given["given"]),
        "adapter": given["adapter"],
        "cwd": str(Path(given["cwd"] or ".").expanduser().absolute()),
        "cost_usd": given["cost"],
        "time": given["at"],
    }
    return {key: value for key, value in found.items() if value is not None}


def show_result(result: Mapping[str, Any], *, brief: bool) -> None:
    """One ask: what each policy says, and (alone) why no earlier rule did."""
    wanted = _wanted(result)
    now = result["explanation"]
    if brief:
        line = f"{brief_id(result['ask'])}  {verdict(now)}"
        if result.get("changed"):
            line += f"  ->  {verdict(result['other'])}"
        was = result.get("was") or {}
        line += f"  (was: {was['behaviour']} by {was['by']})" if was else ""
        click.echo(f"{line}  {short(wanted, 80)}")
        return
    click.echo(wanted)
    click.echo(f"  {verdict(now)}")
    _show_steps(now)
    if result.get("session_rule"):
        click.echo(f"  but the session's own rule {result['session_rule']} allows it")
    other = result.get("other")
    if other is not None:
        click.echo(f"  by the other policy {verdict(other)}{'' if result.get('changed') else ': no change'}")
        _show_steps(other)


def _show_steps(explanation: Mapping[str, Any]) -> None:
    for step in explanation["steps"]:
        if step.get("matched"):
            click.echo(f"    {step['rule']} ({step['action']}): matches")
        else:
            click.echo(f"    {step['rule']} ({step['action']}): {step['key']} does not: {safe(step['found'])!r}")


def verdict(explanation: Mapping[str, Any]) -> str:
    """A ruling in words."""
    ruling = explanation["ruling"]
    needs = [
        f"{ruling['quorum']} people" if ruling.get("quorum", 1) > 1 else "",
        f"role {ruling['role']}" if ruling.get("role") else "",
        "signed" if ruling.get("signed") else "",
        f"{ruling.get('on_expiry', 'deny')} after {ruling['expires_after']:g} s" if ruling.get("expires_after") else "",
    ]
    more = ", ".join(need for need in needs if need)
    by = f"by rule {ruling['rule']!r}" if ruling.get("rule") else "by default: no rule matches"
    return f"{ruling['action']} {by}{f' ({more})' if more else ''}"


def summary(found: Mapping[str, Any]) -> str:
    """How many asks would be allowed, denied and asked about, and how many another policy would change."""
    results = found["results"]
    actions = [one["explanation"]["ruling"]["action"] for one in results]
    counts = ", ".join(f"{actions.count(action)} {action}" for action in ("allow", "deny", "ask"))
    more = f"; the other policy changes {found['changed']}" if found["other"] is not None else ""
    cut = "; only the latest were tried" if found["truncated"] else ""
    return f"{len(results)} asks: {counts}{more}{cut}"


def difference(before: str, after: str) -> list[str]:
    """The lines that came and went."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [safe(line) for line in lines if not line.startswith(("---", "+++", "@@"))]


def _wanted(result: Mapping[str, Any]) -> str:
    from trunkline_fold.answering import input_line

    requested = result["requested"]
    wanted = input_line(requested.get("input")) or requested.get("title") or ""
    return safe(f"{requested.get('name', '')}{': ' if wanted else ''}{short(wanted, 300)}")
