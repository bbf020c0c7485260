"""`trunkline attach`: watch and steer a session."""

import sys
from pathlib import Path

import click

EPILOG = """\b
Examples:
  trunkline attach last              the newest session
  trunkline attach 0199f3            by the beginning of its id
  trunkline attach last --from start everything from its first event on
  trunkline attach last --json | jq  its events as NDJSON, from now on

The view survives a restart of the gateway and misses nothing. Ctrl-C interrupts the turn, Ctrl-D leaves.
"""


@click.command(epilog=EPILOG)
@click.argument("session", default="last")
@click.option("--from", "start", type=click.Choice(["start", "now"]), default="now", help="Where to begin.")
@click.option("--read-only", is_flag=True, help="Only watch: nothing typed is sent.")
@click.option("--json", "as_json", is_flag=True, help="Print the session's events as NDJSON.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def attach(session: str, start: str, read_only: bool, as_json: bool, home: Path | None) -> int:
    """Watch SESSION (default: the newest) and steer it: type prompts, answer what its agent asks."""
    from trunkline_cli.context import finish

    return finish(_attach(session, start, read_only, as_json, home))


async def _attach(reference: str, start: str, read_only: bool, as_json: bool, home: Path | None) -> int:
    from trunkline_cli.context import find_session, open_link
    from trunkline_cli.conversation import Conversation, View
    from trunkline_cli.output import Screen

    keyboard = sys.stdin.isatty() and sys.stdout.isatty() and not (as_json or read_only)
    async with open_link(home) as link:
        session = await find_session(link, reference)
        view = View(keyboard=keyboard, as_json=as_json, start="start" if start == "start" else "snapshot")
        return await Conversation(link, session, Screen(apart=as_json), view).run()
