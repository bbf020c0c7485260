"""`trunkline auth`: the NATS users of the services, for servers that others run."""

import contextlib
import os
from pathlib import Path

import click

EPILOG = """\b
Examples:
  trunkline auth init ./nats                       keys and accounts for a nats-server of your own
  echo 'include "accounts.conf"' >> nats.conf      next to its `jetstream {}` block
  TRUNKLINE_NATS_URL=nats://nats:4222 TRUNKLINE_NATS_SEED=nats/keys/gateway.nk python -m trunkline_gateway
  trunkline auth show reader                       what a user may publish and hear
  trunkline auth init ./nats --tenant acme --tenant globex     two logs on one server, that know nothing of each other

Each service has a user of its own with the rights it needs, the same that `trunkline up` uses. `reader` is for programs of
others: it lives in an account of its own, and can write nowhere.
"""


@click.group()
def auth() -> None:
    """The NATS users of the services: keys, accounts, rights."""


def _ensure_token(path: Path) -> None:
    from trunkline_wire.ids import new_token

    with (
        contextlib.suppress(FileExistsError),
        os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file,
    ):
        file.write(f"{new_token()}\n")


@auth.command(epilog=EPILOG)
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--tenant", "tenants", multiple=True, help="A log of its own in accounts of its own; keys in DIRECTORY/NAME/keys."
)
@click.option("--max-store", type=click.IntRange(1), help="Bytes that each tenant may store.")
def init(directory: Path, tenants: tuple[str, ...], max_store: int | None) -> int:
    """Make keys for all users in DIRECTORY/keys, the server's DIRECTORY/accounts.conf, and the owner's DIRECTORY/token.

    What is there already stays. Gateways that share a log share the token: it is the file `token` in the state directory of
    each. With tenants, name all of them each time: the accounts of those that are not named are left out.
    """
    from trunkline_bus.credentials import Tenant, ensure_keys, public_key, tenants_config
    from trunkline_wire.ids import check_token

    made: list[Tenant] = []
    for name in tenants or ("",):
        own = directory / check_token(name) if name else directory
        before = {path.stem for path in (own / "keys").glob("*.nk")}
        keys = {user: public_key(file) for user, file in ensure_keys(own / "keys").items()}
        _ensure_token(own / "token")
        made.append(Tenant(name=name, keys=keys, max_store=max_store))
        for user, key in keys.items():
            click.echo(f"{user}\t{key}\t{'kept' if user in before else 'made'}\t{own / 'keys' / user}.nk")
    (directory / "accounts.conf").write_text(f"{tenants_config(made)}\n")
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
