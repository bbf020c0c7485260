"""`trunkline acp`: an editor drives sessions over the Agent Client Protocol."""

from pathlib import Path
from typing import Any, Final

import click

FAILED_S: Final = 10.0
"""Seconds in which a start that fails is tried again: two at a time get in each other's way."""

EPILOG = """\b
Examples:
  trunkline acp --agent claude           new sessions of the editor are Claude Code's
  trunkline acp                          ... of the agent that was used last
  trunkline acp --session last           the newest session, beside the browsers that show it
  trunkline acp --up --agent codex       starts Trunkline in the background where it does not run

An editor starts it, and speaks with it over its standard streams.
What the editor leaves goes on: `trunkline attach last`, the browser, or the editor's list of sessions come back to it.
Nothing but the protocol goes to the standard output; the log goes to the error output.
"""


@click.command(epilog=EPILOG)
@click.option("--session", help="Show this session, and no other.")
@click.option("--agent", metavar="NAME", help="The agent of new sessions; `trunkline agents` lists them.")
@click.option("--model", help="The model of new sessions, as the agent calls it.")
@click.option("--mode", help="The permission mode of new sessions, as the agent calls it.")
@click.option("--up", is_flag=True, help="Start Trunkline in the background where it does not run.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="How much the log says.",
)
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def acp(session: str | None, agent: str | None, up: bool, log_level: str, home: Path | None, **given: Any) -> int:
    """Be an agent of the Agent Client Protocol, for Zed, JetBrains IDEs, Neovim and other editors."""
    from trunkline_cli.context import finish
    from trunkline_service.logs import configure_logging

    if session is not None and (agent or given["model"] or given["mode"]):
        raise click.UsageError("--session shows a session that there is: --agent, --model and --mode are of new ones")
    configure_logging("acp", log_level)
    if up:
        _bring_up(home)
    options = {name: value for name, value in given.items() if value is not None}
    return finish(_serve(session, agent, options, home))


async def _serve(reference: str | None, agent: str | None, options: dict[str, Any], home: Path | None) -> int:
    from trunkline_acp.server import Server, Wanted
    from trunkline_cli.acp.stdio import standard_streams
    from trunkline_cli.context import find_session, open_link

    session = None
    if reference is not None:
        async with open_link(home) as link:
            session = await find_session(link, reference)
    async with standard_streams() as editor:
        await Server(editor, lambda: open_link(home), Wanted(session=session, agent=agent, options=options)).run()
    return 0


def _bring_up(home: Path | None) -> None:
    """Starts the instance where none runs. Another editor may be at it already: then that one's start is waited for."""
    import os
    import time

    from trunkline_cli import daemon
    from trunkline_cli.discovery import home_directory
    from trunkline_wire import TrunklineError

    place = home_directory(home).absolute()
    begun = time.monotonic()
    while True:
        try:
            if daemon.daemon_state(place).ready:
                return
        except TrunklineError:
            try:
                daemon.start(place, [], os.environ, lambda line: click.echo(line, err=True))
            except TrunklineError:
                if time.monotonic() - begun > FAILED_S:
                    raise
            else:
                return
        if time.monotonic() - begun > daemon.START_S:
            raise TrunklineError(
                "timeout", f"it was not ready within {daemon.START_S:g} s: see `trunkline daemon status`"
            )
        time.sleep(0.2)
