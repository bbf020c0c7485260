"""`trunkline topology`: the streams and buckets on a NATS server."""

from pathlib import Path

import click

EPILOG = """\b
Examples:
  trunkline topology apply                                 on the server of the running instance
  TRUNKLINE_NATS_URL=nats://nats:4222 TRUNKLINE_NATS_SEED=admin.nk trunkline topology apply --replicas 3
  trunkline topology apply --restored                      after a backup of the log was put back

`trunkline up` does it by itself. What would lose data is refused with topology_conflict.
"""


@click.group()
def topology() -> None:
    """The streams and buckets on a NATS server."""


@topology.command(epilog=EPILOG)
@click.option("--replicas", type=click.IntRange(1, 5), default=1, show_default=True, help="Copies of each stream.")
@click.option("--max-bytes", type=click.IntRange(1), help="Limit of the log (default: as it is, 8 GiB for a new one).")
@click.option(
    "--restored",
    is_flag=True,
    help="The log was put back from a backup: give it a new id, so that every client starts from a snapshot.",
)
@click.option("--json", "as_json", is_flag=True, help="One change a line.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def apply(replicas: int, max_bytes: int | None, restored: bool, as_json: bool, home: Path | None) -> int:
    """Create what is missing and update what may be updated."""
    from trunkline_cli.context import finish

    return finish(_apply(replicas, max_bytes, restored, as_json, home))


async def _apply(replicas: int, max_bytes: int | None, restored: bool, as_json: bool, home: Path | None) -> int:
    from trunkline_bus.topology import apply as apply_topology
    from trunkline_cli.logbook import open_log
    from trunkline_cli.output import ndjson

    async with open_log(home, user="admin") as bus:
        changes = await apply_topology(bus.js, replicas=replicas, max_bytes=max_bytes, restored=restored)
    for change in changes:
        if as_json:
            ndjson({"change": change})
        else:
            click.echo(change)
    if not changes and not as_json:
        click.echo("nothing to change")
    return 0
