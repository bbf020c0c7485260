"""`trunkline devices`: what people have signed in with, or paired."""

from pathlib import Path
from typing import Any

import click

EPILOG = """\b
Examples:
  trunkline devices                     what is registered
  trunkline devices rename dev_0f "Ann's phone"
  trunkline devices revoke dev_0f       its key counts no more, and it is signed out everywhere
"""


@click.group(invoke_without_command=True, epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
@click.pass_context
def devices(ctx: click.Context, as_json: bool, home: Path | None) -> int:
    """List the registered devices; rename or revoke one."""
    from trunkline_cli.context import finish

    ctx.obj = home
    return 0 if ctx.invoked_subcommand is not None else finish(_list(home, as_json))


async def _list(home: Path | None, as_json: bool) -> int:
    from trunkline_cli.context import open_link
    from trunkline_cli.output import ago, ndjson, table

    async with open_link(home) as link:
        found = (await link.device.list(limit=500))["devices"]
    if as_json:
        for one in found:
            ndjson(one)
    elif found:
        table(
            ["device", "actor", "name", "comes", "role", "since", "last seen", "fingerprint"],
            [
                [
                    one["id"][:16],
                    one["actor"],
                    one["name"],
                    "paired" if "identity" in one else "signed in",
                    one.get("role", ""),
                    ago(one["created"]),
                    ago(one.get("seen")),
                    one.get("fingerprint", ""),
                ]
                for one in found
            ],
        )
    else:
        click.echo(
            "no devices; a browser registers itself when it opens a link of `trunkline sign-in`, `trunkline pair` takes one in",
            err=True,
        )
    return 0


@devices.command(epilog=EPILOG)
@click.argument("device")
@click.argument("name")
@click.pass_obj
def rename(home: Path | None, device: str, name: str) -> int:
    """Give a device another name."""
    from trunkline_cli.context import finish

    return finish(_change(home, device, "device.rename", name=name))


@devices.command()
@click.argument("device")
@click.pass_obj
def revoke(home: Path | None, device: str) -> int:
    """Revoke a device: it is signed out everywhere, and what it signs counts no more. For a paired one the host changes its keys."""
    from trunkline_cli.context import finish

    return finish(_change(home, device, "device.revoke"))


async def _change(home: Path | None, reference: str, method: str, **params: Any) -> int:
    from trunkline_cli.context import open_link, unique

    async with open_link(home) as link:
        known = {one["id"]: one for one in (await link.device.list(limit=500))["devices"]}
        device = unique(reference, "dev", list(known), "bad_params", "see `trunkline devices`")
        await link.call(method, id=device, **params)
    click.echo(f"{method.partition('.')[2]}d {device[:16]}")
    if method == "device.revoke" and "identity" in known[device]:
        click.echo("its connections have ended; the host rotates its keys, and tells its other devices")
    return 0
