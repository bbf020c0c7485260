"""`trunkline agents`: what is installed here."""

from itertools import groupby
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trunkline_cli.probing import Found

EPILOG = """\b
Examples:
  trunkline agents                   what `trunkline run` can start here
  trunkline agents --all             also what is missing, and how to install it
  trunkline agents --json | jq 'select(.error == null)'

`signed in` means that something is there to sign in with; nothing of it is read. An agent that several adapters can
run is run in the first way that is listed. An adapter may come from any installed distribution (entry points
`trunkline.adapters`).
"""


@click.command(epilog=EPILOG)
@click.option("--all", "everything", is_flag=True, help="Show what is not installed, too.")
@click.option("--json", "as_json", is_flag=True, help="One way of an agent a line, with its capabilities.")
def agents(everything: bool, as_json: bool) -> int:
    """List the agents that are installed here, and how Trunkline speaks with each."""
    from trunkline_cli.context import finish

    return finish(_agents(everything, as_json))


async def _agents(everything: bool, as_json: bool) -> int:
    from trunkline_cli.output import ndjson, table
    from trunkline_cli.probing import survey

    found = await survey()
    if as_json:
        for one in found:
            ndjson(_described(one))
        return 0
    shown = found if everything else [one for one in found if one.agent.error is None]
    rows: list[list[str]] = []
    for name, ways in groupby(shown, lambda one: one.agent.name):
        for number, one in enumerate(ways):
            signed = "yes" if one.agent.signed_in else f"not seen; {one.agent.login}" if one.agent.login else ""
            where = one.agent.path or (one.agent.error.message if one.agent.error else "")
            rows.append(["" if number else name, one.agent.version or "", one.adapter.manifest.protocol, signed, where])
    table(["agent", "version", "spoken with by", "signed in", "program"], rows)
    missing = sorted({one.agent.name for one in found} - {one.agent.name for one in shown})
    if missing:
        click.echo(f"not installed: {', '.join(missing)} (`trunkline agents --all` says how to install them)", err=True)
    return 0


def _described(one: "Found") -> dict[str, object]:
    agent, adapter = one.agent, one.adapter
    return {
        "agent": agent.name,
        "title": agent.title,
        "adapter": adapter.name,
        "profile": agent.profile,
        "way": adapter.manifest.way,
        "protocol": adapter.manifest.protocol,
        "path": agent.path,
        "version": agent.version,
        "error": agent.error,
        "login": agent.login,
        "signed_in": agent.signed_in,
        "capabilities": adapter.capabilities,
    }
