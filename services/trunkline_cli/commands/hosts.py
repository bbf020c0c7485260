"""`trunkline hosts`: the hosts that this device is paired with."""

from pathlib import Path

import click

EPILOG = """\b
Examples:
  trunkline hosts                  what `trunkline --host NAME` may name
  trunkline hosts --json
  trunkline hosts forget work      its keys are deleted here; `trunkline devices revoke` at the host ends them there
"""


@click.group(invoke_without_command=True, epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
@click.pass_context
def hosts(ctx: click.Context, as_json: bool, home: Path | None) -> int:
    """List the hosts that this device is paired with; forget one."""
    from trunkline_cli.discovery import home_directory

    ctx.obj = home_directory(home)
    return 0 if ctx.invoked_subcommand is not None else _list(ctx.obj, as_json)


def _list(home: Path, as_json: bool) -> int:
    from trunkline_cli.hosts import load, names
    from trunkline_cli.output import ndjson, table
    from trunkline_seal import fingerprint

    found = [(name, load(home, name)) for name in names(home)]
    rows = [(name, one.host, one.relay, one.role, one.device, fingerprint(one.identity)) for name, one in found]
    heads = ("name", "host", "relay", "role", "device", "fingerprint")
    if as_json:
        for row in rows:
            ndjson(dict(zip(heads, row, strict=True)))
    elif rows:
        table(list(heads), [list(row) for row in rows])
    else:
        click.echo("no hosts; `trunkline pair join` pairs this device with one", err=True)
    return 0


@hosts.command(epilog=EPILOG)
@click.argument("name")
@click.pass_obj
def forget(home: Path, name: str) -> int:
    """Delete the keys for a host."""
    from trunkline_cli.hosts import forget as forgotten
    from trunkline_cli.output import safe

    paired = forgotten(home, name)
    click.echo(f"forgotten; at {safe(paired.host)}, `trunkline devices revoke {paired.device}` ends its rights, too")
    return 0
