"""`trunkline send`: a prompt to a session."""

import sys
from pathlib import Path
from typing import Literal

import click

EPILOG = """\b
Examples:
  trunkline send last "Now write the tests"
  trunkline send 0199f3 --wait "What is left to do?"   show the turn, end with it
  trunkline send last --steer "Use Python instead"     into the running turn, where the agent can
  git log -5 | trunkline send last                     the prompt from a pipe
"""


@click.command(epilog=EPILOG)
@click.argument("session")
@click.argument("text", required=False)
@click.option(
    "--wait", "-w", is_flag=True, help="Show what it causes and end with its turn; exit code 1 if that fails."
)
@click.option("--steer", "delivery", flag_value="steer", help="Into the running turn, where the agent can.")
@click.option("--queue", "delivery", flag_value="queue", help="After the running turn.")
@click.option("--json", "as_json", is_flag=True, help="Print the command, or with --wait the events, as JSON.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def send(
    session: str,
    text: str | None,
    wait: bool,
    delivery: Literal["steer", "queue"] | None,
    as_json: bool,
    home: Path | None,
) -> int:
    """Send TEXT to SESSION (an id, its beginning, or `last`). Without TEXT it is read from the input."""
    from trunkline_cli.context import finish

    if text is None:
        text = sys.stdin.read().strip()
    if not text:
        raise click.UsageError("there is no TEXT to send")
    return finish(_send(session, text, wait, delivery, as_json, home))


async def _send(
    reference: str,
    text: str,
    wait: bool,
    delivery: Literal["steer", "queue"] | None,
    as_json: bool,
    home: Path | None,
) -> int:
    from trunkline_cli.context import find_session, open_link
    from trunkline_cli.conversation import Conversation, View
    from trunkline_cli.output import Screen, ndjson
    from trunkline_wire.ids import new_command_id

    async with open_link(home) as link:
        session = await find_session(link, reference)
        if wait:
            view = View(prompt=text, delivery=delivery, wait=True, as_json=as_json, start="now")
            return await Conversation(link, session, Screen(apart=as_json), view).run()
        command = new_command_id()
        sent = await link.session.prompt(session=session, text=text, id=command, delivery=delivery)
    if as_json:
        ndjson(sent)
    else:
        click.echo(f"sent to {session} as {command}")
    return 0
