"""`trunkline hosts`: the hosts that this device is paired with."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from trunkline_client import Address

EPILOG = """\b
Examples:
  trunkline hosts                  what `trunkline --host NAME` may name
  trunkline hosts --json
  trunkline hosts forget work      the host revokes this device, and its keys are deleted here
"""


TELL_S: Final = 10.0
"""Seconds that a host has for being told."""
TRIES: Final = 4
AGAIN_S: Final = 0.3
UNKNOWN: Final = frozenset({"unpaired", "unauthorized", "bad_params"})
"""What a host says that knows the device no more."""


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
    """Be no device of a host any more: it revokes this one, if it can be told, and the keys are deleted."""
    from trunkline_cli.context import finish

    return finish(_forget(home, name))


async def _forget(home: Path, name: str) -> int:
    import asyncio

    from trunkline_cli import hosts
    from trunkline_cli.output import safe
    from trunkline_wire import TrunklineError

    paired = hosts.load(home, name)
    why = ""
    try:
        async with asyncio.timeout(TELL_S):
            await _revoke(hosts.address(home, name), paired.device)
    except TimeoutError:
        why = "it does not answer"
    except (TrunklineError, ConnectionError) as error:
        why = str(error)
    hosts.forget(home, name)
    if why:
        click.echo(
            f"forgotten here, but {safe(paired.host)} could not be told ({safe(why)}) and still lists this device: "
            f"`trunkline devices revoke {paired.device}` there ends that",
            err=True,
        )
    else:
        click.echo(f"forgotten, here and at {safe(paired.host)}")
    return 0


async def _revoke(address: "Address", device: str) -> None:
    """Raises TrunklineError, ConnectionError, where the host was not told."""
    import asyncio

    from trunkline_client.connection import Connection
    from trunkline_wire import TrunklineError

    for left in reversed(range(TRIES)):
        try:
            async with await Connection.connect(address, name="cli") as connection:
                await connection.call("device.revoke", id=device)
        except TrunklineError as error:
            if error.code not in UNKNOWN:
                raise
        except ConnectionError:
            if not left:
                raise
            # It may have ended because the device was revoked, before its answer; then the host says so next.
            await asyncio.sleep(AGAIN_S)
            continue
        return
