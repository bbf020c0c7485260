"""`trunkline auth`: the NATS users of the services, for servers that others run."""

from pathlib import Path

import click

EPILOG = """\b
Examples:
  trunkline auth init ./nats                       keys and accounts for a nats-server of your own
  echo 'include "accounts.conf"' >> nats.conf      next to its `jetstream {}` block
  TRUNKLINE_NATS_URL=nats://nats:4222 TRUNKLINE_NATS_SEED=nats/keys/gateway.nk python -m trunkline_gateway
  trunkline auth show reader                       what a user may publish and hear

Each service has a user of its own with the rights it needs, the same that `trunkline up` uses. `reader` is for programs of
others: it lives in an account of its own, and can write nowhere.
"""


@click.group()
def auth() -> None:
    """The NATS users of the services: keys, accounts, rights."""


@auth.command(epilog=EPILOG)
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def init(directory: Path) -> int:
    """Make keys for all users in DIRECTORY/keys and the server's DIRECTORY/accounts.conf; what is there already stays."""
    from trunkline_bus.credentials import ensure_keys, public_key, server_config

    before = {path.stem for path in (directory / "keys").glob("*.nk")}
    keys = ensure_keys(directory / "keys")
    (directory / "accounts.conf").write_text(
        f"{server_config({user: public_key(file) for user, file in keys.items()})}\n"
    )
    for user, file in keys.items():
        click.echo(f"{user}\t{public_key(file)}\t{'kept' if user in before else 'made'}\t{file}")
    click.echo(f"include {str(directory / 'accounts.conf')!r} in the server's configuration", err=True)
    return 0


@auth.command()
@click.argument("user", required=False)
def show(user: str | None) -> int:
    """Print what each user, or one, may publish to and subscribe to beside its own inbox."""
    from trunkline_bus.credentials import GRANTS
    from trunkline_wire import TrunklineError

    if user is not None and user not in GRANTS:
        raise TrunklineError("bad_params", f"there is no user {user!r}; there are {', '.join(GRANTS)}")
    for name, grants in GRANTS.items():
        if user in (None, name):
            for verb, rights in (("publish", grants.publish), ("subscribe", grants.subscribe)):
                for subject in rights:
                    click.echo(f"{name}\t{verb}\t{subject}")
    return 0
