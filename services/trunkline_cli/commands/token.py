"""`trunkline token`: where the owner's token is. It is never printed: what is printed ends in logs and on screens."""

from pathlib import Path

import click

EPILOG = """\b
Examples:
  trunkline token                                     the file's path
  curl -H "Authorization: Bearer $(cat "$(trunkline token)")" -H "Content-Type: application/json" \\
    -d '{}' http://127.0.0.1:30086/api/v1/session.list

On this machine commands need no token: they use the unix socket.
"""


@click.command(epilog=EPILOG)
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def token(home: Path | None) -> int:
    """Print the path of the file with the gateway's owner token, for browsers and programs that come over TCP."""
    from trunkline_cli.discovery import home_directory
    from trunkline_wire import TrunklineError

    path = home_directory(home) / "token"
    if not path.exists():
        raise TrunklineError("not_running", f"there is no token at {str(path)!r} yet: `trunkline up` makes it")
    click.echo(str(path))
    return 0
