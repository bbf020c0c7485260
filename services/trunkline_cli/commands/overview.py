"""`trunkline overview`: the whole installation at a glance."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trunkline_client.results import Glance

EPILOG = """\b
Examples:
  trunkline overview              what runs, what waits, what was spent
  trunkline overview --json       the same for a program
  watch -n 5 trunkline overview   again and again
"""


@click.command(epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def overview(as_json: bool, home: Path | None) -> int:
    """Show sessions by status, what waits for a decision, spend by agent and directory, projections and workers. Owners only."""
    from trunkline_cli.context import finish

    return finish(_overview(home, as_json))


async def _overview(home: Path | None, as_json: bool) -> int:
    from trunkline_cli.context import open_link
    from trunkline_cli.output import ndjson

    async with open_link(home) as link:
        found = await link.overview.get()
    if as_json:
        ndjson(found)
    else:
        _show(found)
    return 0


def _show(found: "Glance") -> None:
    from trunkline_cli.output import ago, table

    sessions, asks, events, log = found["sessions"], found["asks"], found["events"], found["log"]
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(sessions["by_status"].items()))
    click.echo(f"sessions     {sessions['total']}" + (f": {statuses}" if statuses else ""))
    oldest = asks["oldest"]
    waits = (
        f" in {asks['sessions']} sessions, the oldest {oldest['session']} for {ago(oldest['time'])}" if oldest else ""
    )
    click.echo(f"asks open    {asks['open']}{waits}")
    click.echo(f"log          {log['messages']} events, {events['per_s']:g} a second, {log['fill']:.0%} full")
    for one in found["projections"]:
        state = f"{one['behind']} events behind" if one["behind"] else "up to date"
        frozen = f", {one['frozen']} sessions stand still" if one["frozen"] else ""
        click.echo(f"projection   {one['name']}: {state}{frozen}")
    spent = found["spent"]
    rows = [
        [who, str(one["sessions"]), str(one["turns"]), str(one["input"]), str(one["output"]), f"${one['cost_usd']:.2f}"]
        for who, one in [
            *((row["agent"], row) for row in spent["by_agent"]),
            *((row["cwd"] or row["workspace"], row) for row in spent["by_workspace"]),
        ]
    ]
    if rows:
        click.echo()
        table(["spent by", "sessions", "turns", "tokens in", "tokens out", "cost"], rows)
    if found["workers"]:
        click.echo()
        table(
            ["worker", "host", "version", "sessions", "busy", "agents"],
            [
                [
                    one["worker"][:16],
                    one["hostname"] or one["host"],
                    one["version"] or "",
                    str(one["sessions"]),
                    str(one["busy"]),
                    ", ".join(agent["name"] for agent in one["agents"] if agent["error"] is None),
                ]
                for one in found["workers"]
            ],
        )
    for one in found["unknown"]["by_agent"]:
        click.echo(f"not understood: {one['messages']} messages of {one['agent']} {one['version']}".rstrip())
