"""`trunkline leaf`: this log's events at a hub, for programs that run there."""

import json
import os
from pathlib import Path

import click

EPILOG = """\b
Examples:
  trunkline leaf user --name ann                   what the hub's administrator adds for this machine
  TRUNKLINE_SUPERVISOR_LEAF_URL=tls://hub:7422 TRUNKLINE_SUPERVISOR_LEAF_NAME=ann trunkline up
  TRUNKLINE_NATS_URL=nats://hub:4222 TRUNKLINE_NATS_SEED=ops.nk trunkline leaf mirror ann      at the hub, once

The connection goes outwards: no port is open here. At the hub the stream EVENTS_of_<name> has every event, in the order and with the
numbers that it has here; it keeps what it has while the link is cut, and catches up after. Nobody there can write here, or read
anything but events.
"""


@click.group(epilog=EPILOG)
def leaf() -> None:
    """Mirror this log's events at a hub of yours: by a connection outwards, for programs that run there."""


@leaf.command(epilog=EPILOG)
@click.option("--name", required=True, help="What the hub calls this log: letters, digits, - and _.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def user(name: str, home: Path | None) -> int:
    """Print this machine's user, for an account of the hub that has JetStream; the key itself stays here."""
    from trunkline_bus.credentials import public_key
    from trunkline_bus.leaf import hub_user, leaf_key
    from trunkline_cli.discovery import home_directory
    from trunkline_wire.ids import check_token

    key = public_key(leaf_key(home_directory(home) / "nats"))
    click.echo(json.dumps(hub_user(check_token(name), key), indent=2))
    click.echo(
        "add it to `users` of an account with JetStream at the hub, whose server listens for leaf nodes: leafnodes { port: 7422 }",
        err=True,
    )
    return 0


@leaf.command(epilog=EPILOG)
@click.argument("name")
@click.option("--replicas", type=click.IntRange(1, 5), default=1, show_default=True, help="Copies at the hub.")
@click.option("--max-bytes", type=int, default=-1, help="Limit of the mirror; it then forgets its oldest events.")
def mirror(name: str, replicas: int, max_bytes: int) -> int:
    """At the hub: make the stream that has the events of the leaf NAME, on the server of TRUNKLINE_NATS_URL."""
    from trunkline_cli.context import finish

    return finish(_mirror(name, replicas, max_bytes))


async def _mirror(name: str, replicas: int, max_bytes: int) -> int:
    from nats.js.errors import APIError

    from trunkline_bus import leaf as leaves
    from trunkline_cli.logbook import open_log
    from trunkline_wire import TrunklineError

    if "TRUNKLINE_NATS_URL" not in os.environ:
        raise TrunklineError(
            "bad_settings", "say which server is the hub: TRUNKLINE_NATS_URL (and TRUNKLINE_NATS_SEED)"
        )
    async with open_log(None, user="admin") as bus:
        try:
            stream = await leaves.mirror(bus.js, name, replicas=replicas, max_bytes=max_bytes)
        except APIError as error:
            raise TrunklineError("topology_conflict", f"the hub makes no mirror: {error.description}") from error
    click.echo(stream)
    return 0
