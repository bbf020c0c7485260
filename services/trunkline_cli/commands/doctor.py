"""`trunkline doctor`: what is wrong on this machine, and what to do about it."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trunkline_cli.checks import Finding

EPILOG = """\b
Examples:
  trunkline doctor
  trunkline doctor --json | jq 'select(.state != "ok")'
  trunkline doctor --cluster             streams, replicas, leaders, lag, limits, projections, leases, versions of the services
  TRUNKLINE_NATS_URL=nats://nats:4222 TRUNKLINE_NATS_SEED=admin.nk trunkline doctor --cluster

Exit code 1 if something must be mended; warnings alone are 0.
"""

WIDTH: Final = 28
"""Signs that the longest name of a check has, with few exceptions."""

_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="One check a line.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
@click.option("--cluster", is_flag=True, help="Check the log's cluster instead, with the administrator's NATS key.")
def doctor(as_json: bool, home: Path | None, cluster: bool) -> int:
    """Check this machine: programs, state directory, ports, disk, agents, and the running instance; or its cluster."""
    from trunkline_cli.context import finish

    return finish(_doctor(as_json, home, cluster=cluster))


async def _findings(home: Path | None, *, cluster: bool) -> "AsyncIterator[Finding]":
    from trunkline_cli.checks import run_checks
    from trunkline_cli.cluster import run_cluster_checks
    from trunkline_cli.discovery import home_directory
    from trunkline_cli.logbook import open_log

    if not cluster:
        async for finding in run_checks(home_directory(home)):
            yield finding
        return
    async with open_log(home, user="admin") as bus:
        async for finding in run_cluster_checks(bus):
            yield finding


async def _doctor(as_json: bool, home: Path | None, *, cluster: bool) -> int:
    from trunkline_cli.output import ndjson

    failed = False
    async for finding in _findings(home, cluster=cluster):
        failed = failed or finding.state == "fail"
        if as_json:
            ndjson(finding)
            continue
        mark = click.style(f"{finding.state:<4}", fg=_COLOURS[finding.state])
        click.echo(f"{mark}  {finding.check:<{WIDTH}}  {finding.found}")
        if finding.advice:
            click.echo(f"      {'':<{WIDTH}}  -> {finding.advice}")
    return 1 if failed else 0
