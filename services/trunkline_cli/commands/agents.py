"""`trunkline agents`: what is installed here."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    pass

EPILOG = """\b
Examples:
  trunkline agents
  trunkline agents --json | jq .capabilities

An adapter may come from any installed distribution (entry points `trunkline.adapters`).
"""


@click.command(epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="One adapter a line, with its capabilities.")
def agents(as_json: bool) -> int:
    """List the adapters that are installed here, and the agents' programs that they found."""
    from trunkline_cli.context import finish

    return finish(_agents(as_json))


async def _agents(as_json: bool) -> int:
    from trunkline_agentkit.registry import load_all
    from trunkline_cli.output import ndjson, table
    from trunkline_cli.probing import probe

    adapters = load_all()
    found = [(adapter, await probe(adapter)) for adapter in adapters.values()]
    if as_json:
        for adapter, probed in found:
            ndjson(
                {
                    "name": adapter.name,
                    "title": adapter.manifest.title,
                    "capabilities": adapter.capabilities,
                    "path": probed.path,
                    "note": probed.note,
                    "version": probed.version,
                    "error": probed.error,
                }
            )
        return 0
    table(
        ["adapter", "agent", "version", "program"],
        [[a.name, a.manifest.title, p.version or "", p.path or p.note or p.error or ""] for a, p in found],
    )
    return 0
