"""`trunkline topology`: the streams and buckets on a NATS server."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trunkline_bus.topology import Change

EPILOG = """\b
Examples:
  trunkline topology plan                                  what `apply` would do, and what it would refuse
  trunkline topology apply                                 on the server of the running instance
  TRUNKLINE_NATS_URL=nats://nats:4222 TRUNKLINE_NATS_SEED=admin.nk trunkline topology apply --replicas 3
  trunkline topology apply --restored                      after a volume of the log was put back

`trunkline up` does it by itself. What would lose data is refused with topology_conflict: a smaller limit than what is
stored, subjects that would no longer be kept, a setting that only a new stream can have.
"""

PLAN_EPILOG = """\b
Examples:
  trunkline topology plan
  trunkline topology plan --replicas 3 --json | jq 'select(.refused)'

Changes nothing. Exit code 0: `apply` would go through (or has nothing to do); 1: it would refuse something.
"""


@click.group()
def topology() -> None:
    """The streams and buckets on a NATS server: what is wanted, what is there, what differs."""


def _options(command: Any) -> Any:
    for option in (
        click.option(
            "--events", type=click.IntRange(1, 64), help="In how many streams a new log keeps events: 1, 2, 4 … 64."
        ),
        click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance."),
        click.option("--json", "as_json", is_flag=True, help="One change a line."),
        click.option(
            "--max-bytes", type=click.IntRange(1), help="Limit of the log (default: as it is, 8 GiB for a new one)."
        ),
        click.option(
            "--replicas", type=click.IntRange(1, 5), help="Copies of each stream (default: as it is, 1 for a new log)."
        ),
    ):
        command = option(command)
    return command


@topology.command(epilog=PLAN_EPILOG)
@_options
def plan(replicas: int | None, max_bytes: int | None, as_json: bool, home: Path | None, events: int | None) -> int:
    """Show what `apply` would change, and what it would refuse."""
    from trunkline_cli.context import finish

    return finish(_plan(replicas, max_bytes, as_json, home, events))


@topology.command(epilog=EPILOG)
@_options
@click.option(
    "--restored",
    is_flag=True,
    help="The log was put back by other means than `trunkline restore`: give it a new id, so that every client starts "
    "from a snapshot.",
)
def apply(
    replicas: int | None, max_bytes: int | None, as_json: bool, home: Path | None, restored: bool, events: int | None
) -> int:
    """Create what is missing and update what may be updated."""
    from trunkline_cli.context import finish

    return finish(_apply(replicas, max_bytes, restored, as_json, home, events))


async def _plan(
    replicas: int | None, max_bytes: int | None, as_json: bool, home: Path | None, events: int | None
) -> int:
    from trunkline_bus.topology import plan as plan_topology
    from trunkline_cli.logbook import open_log

    async with open_log(home, user="admin") as bus:
        changes = await plan_topology(bus.js, replicas=replicas, max_bytes=max_bytes, events=events)
    for change in changes:
        _show(change, as_json)
    refused = any(change.refused is not None for change in changes)
    if not as_json and not any(change.verb != "none" for change in changes):
        click.echo("nothing to change")
    elif not as_json:
        click.echo("`trunkline topology apply` would be refused" if refused else "do it: trunkline topology apply")
    return 1 if refused else 0


def _show(change: "Change", as_json: bool) -> None:
    from trunkline_cli.output import ndjson
    from trunkline_wire.errors import ErrorInfo

    if as_json:
        refused = ErrorInfo.of(change.refused) if change.refused is not None else None
        ndjson({"stream": change.stream, "verb": change.verb, "lines": change.lines, "refused": refused})
        return
    marks = {"create": ("+", "green"), "update": ("~", "yellow"), "none": (" ", "white")}
    mark, colour = ("!", "red") if change.refused is not None else marks[change.verb]
    for line in change.lines:
        click.echo(click.style(f"{mark} {line}", fg=colour))
    if change.refused is not None:
        click.echo(f"    refused: {change.refused}")


async def _apply(
    replicas: int | None, max_bytes: int | None, restored: bool, as_json: bool, home: Path | None, events: int | None
) -> int:
    from trunkline_bus.topology import apply as apply_topology
    from trunkline_cli.logbook import open_log
    from trunkline_cli.output import ndjson

    async with open_log(home, user="admin") as bus:
        changes = await apply_topology(bus.js, replicas=replicas, max_bytes=max_bytes, restored=restored, events=events)
    for change in changes:
        if as_json:
            ndjson({"change": change})
        else:
            click.echo(change)
    if not changes and not as_json:
        click.echo("nothing to change")
    return 0
