"""`trunkline ls`: the sessions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

EPILOG = """\b
Examples:
  trunkline ls                     sessions that are not closed, newest first
  trunkline ls --all
  trunkline ls --status waiting    those that wait for a decision
  trunkline ls --json | jq .cost_usd

Without a terminal each line is: id, status, adapter, age, turns, cost, directory, title, separated by tabs.
"""


@click.command(epilog=EPILOG)
@click.option("--all", "-a", "everything", is_flag=True, help="Closed and archived sessions too.")
@click.option("--status", help="Only sessions of this status (running, waiting, idle, …).")
@click.option("--json", "as_json", is_flag=True, help="The whole state of each session, one a line.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def ls(everything: bool, status: str | None, as_json: bool, home: Path | None) -> int:
    """List sessions, newest first."""
    from trunkline_cli.context import finish

    return finish(_ls(everything, status, as_json, home))


async def _ls(everything: bool, status: str | None, as_json: bool, home: Path | None) -> int:
    from trunkline_cli.context import list_sessions, open_link
    from trunkline_cli.output import ndjson, table

    async with open_link(home) as link:
        found = await list_sessions(link)
    shown = [
        state
        for state in found
        if (status is None and (everything or state["status"] not in ("closed", "archived")))
        or state["status"] == status
    ]
    if as_json:
        for state in shown:
            ndjson(state)
        return 0
    if not shown:
        hidden = f" ({len(found)} with --all)" if found else ""
        click.echo(f"no sessions{hidden}; start one with `trunkline run ADAPTER`", err=True)
        return 0
    table(
        ["session", "status", "adapter", "updated", "turns", "cost", "directory", "title"],
        [_row(state) for state in shown],
    )
    return 0


def _row(state: Mapping[str, Any]) -> list[str]:
    from trunkline_cli.context import brief
    from trunkline_cli.output import ago, short

    cost = state.get("cost_usd")
    return [
        brief(state["session"]),
        state["status"],
        state.get("adapter") or "",
        ago(state.get("updated")),
        str(state.get("turns", 0)),
        f"${cost:.2f}" if cost else "",
        state.get("cwd") or "",
        short(state.get("title") or state.get("last_text") or "", 60),
    ]
