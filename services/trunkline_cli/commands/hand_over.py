"""`trunkline hand-over`: a session goes into its agent's own terminal, or is taken back from there."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trunkline_client import Link
    from trunkline_client.results import CommandSent

_TIMES = 4
"""How often the gateway is asked for the outcome, half a minute each: an agent may take long to start."""

EPILOG = """\b
Examples:
  trunkline hand-over last --to terminal     prints the command to attach with
  trunkline send last "Now the edge cases"   is typed there, as before
  trunkline hand-over last --to structured   take it back, with all that was said

One interface at a time: the agent ends, and its own program takes up the same conversation in a tmux of its own, which goes on
without you and without Trunkline. Leave it with Ctrl-b d. What was said there comes into the log once the terminal has ended.
"""


@click.command(epilog=EPILOG)
@click.argument("session")
@click.option(
    "--to",
    type=click.Choice(["terminal", "structured"]),
    required=True,
    help="The agent's own terminal, or back to the agent's protocol.",
)
@click.option("--interrupt", is_flag=True, help="End what runs or is asked; without it a busy session is refused.")
@click.option("--json", "as_json", is_flag=True, help="Print the gateway's answer as JSON.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def hand_over(session: str, to: str, interrupt: bool, as_json: bool, home: Path | None) -> int:
    """Go on with SESSION in its agent's own terminal, or take it back from there."""
    from trunkline_cli.context import finish

    return finish(_hand_over(session, to, interrupt, as_json, home))


async def _hand_over(reference: str, to: str, interrupt: bool, as_json: bool, home: Path | None) -> int:
    from trunkline_cli.context import find_session, open_link
    from trunkline_cli.output import ndjson
    from trunkline_wire import TrunklineError
    from trunkline_wire.ids import new_command_id

    async with open_link(home) as link:
        session = await find_session(link, reference)
        wanted: dict[str, Any] = {"id": new_command_id(), "session": session, "to": to, "interrupt": interrupt}
        answer = await _outcome(link, wanted)
    if as_json:
        ndjson(answer)
        return 0 if answer.get("outcome") == "finished" else 1
    if (error := answer.get("error")) is not None:
        raise TrunklineError(error["code"], error["message"])
    attach = (answer.get("result") or {}).get("attach")
    click.echo(f"{session} is in its terminal; attach with:\n{attach}" if attach else f"{session} is taken back")
    return 0


async def _outcome(link: "Link", wanted: dict[str, Any]) -> "CommandSent":
    """Asked again with the same id, it is the same command."""
    from trunkline_wire import TrunklineError

    for left in reversed(range(_TIMES)):
        try:
            return await link.session.hand_over(**wanted, wait=True)
        except TrunklineError as error:
            if error.code != "timeout" or not left:
                raise
    raise AssertionError("it is asked at least once")
