"""`trunkline doctor`: what is wrong on this machine, and what to do about it."""

from pathlib import Path
from typing import Final

import click

EPILOG = """\b
Examples:
  trunkline doctor
  trunkline doctor --json | jq 'select(.state != "ok")'

Exit code 1 if something must be mended; warnings alone are 0.
"""

_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="One check a line.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def doctor(as_json: bool, home: Path | None) -> int:
    """Check this machine: programs, state directory, ports, disk, agents, and the running instance."""
    from trunkline_cli.context import finish

    return finish(_doctor(as_json, home))


async def _doctor(as_json: bool, home: Path | None) -> int:
    from trunkline_cli.checks import run_checks
    from trunkline_cli.discovery import home_directory
    from trunkline_cli.output import ndjson

    failed = False
    async for finding in run_checks(home_directory(home)):
        failed = failed or finding.state == "fail"
        if as_json:
            ndjson(finding)
            continue
        mark = click.style(f"{finding.state:<4}", fg=_COLOURS[finding.state])
        click.echo(f"{mark}  {finding.check:<18}{finding.found}")
        if finding.advice:
            click.echo(f"      {'':<18}-> {finding.advice}")
    return 1 if failed else 0
