"""What was allowed for good in a session: its own rules."""

from pathlib import Path

import click

from trunkline_cli.context import find_session, open_link
from trunkline_cli.output import ndjson, table
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_command_id


async def list_rules(session: str, as_json: bool, home: Path | None) -> int:
    """Print the rules of a session."""
    async with open_link(home) as link:
        found = (await link.ask.rules(session=await find_session(link, session)))["rules"]
    if as_json:
        for rule in found:
            ndjson(rule)
    elif found:
        rows = [
            [
                rule["rule"],
                rule["tool"],
                ", ".join(rule.get("command", [])) or "whatever it does",
                f"{rule['by']}, {rule['time'][:19]}",
                f"revoked by {by}" if (by := rule.get("revoked_by")) else "in force",
            ]
            for rule in found
        ]
        table(["rule", "tool", "command", "allowed by", ""], rows)
    else:
        click.echo("nothing was allowed for good in this session", err=True)
    return 0


async def revoke_rule(session: str, rule: str, home: Path | None) -> int:
    """Revoke the rule whose name begins so. Raises `unknown_rule`."""
    async with open_link(home) as link:
        session = await find_session(link, session)
        known = [one["rule"] for one in (await link.ask.rules(session=session))["rules"]]
        meant = [name for name in known if name.startswith(rule)]
        if len(meant) != 1:
            raise TrunklineError("unknown_rule", f"{len(meant)} rules begin with {rule!r}: see `trunkline asks rules`")
        done = await link.ask.revoke(session=session, rule=meant[0], id=new_command_id())
    click.echo(f"revoked: {done['rule']['rule']} of {session}")
    return 0
