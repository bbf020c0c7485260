"""`trunkline terminal`: a session's terminal, live."""

import sys
from pathlib import Path

import click

EPILOG = """\b
Examples:
  trunkline run pty --agent aider -d     a session of a program that has a terminal
  trunkline terminal last                sit down at it
  trunkline terminal last --read-only    only look
  trunkline terminal last --take         take the keyboard from whoever has it
  trunkline terminal last --screen       print what it shows now, and end
  trunkline terminal 0199f3 --shell      a shell in the directory of any session (owners, if the gateway allows it)

Ctrl-] d leaves; the program runs on. Ctrl-] t takes the keyboard, Ctrl-] r gives it up, Ctrl-] ? lists the rest.
Several people may look; one types at a time, and only that one sets the terminal's size. Whoever has the role of a
viewer only looks. The view survives a restart of the gateway and of the session's worker.
"""


@click.command(epilog=EPILOG)
@click.argument("session", default="last")
@click.option("--read-only", is_flag=True, help="Only look: nothing typed is sent.")
@click.option("--take", is_flag=True, help="Take the keyboard, also from somebody who has it.")
@click.option("--keep-size", is_flag=True, help="Leave the terminal's size as it is.")
@click.option("--screen", is_flag=True, help="Print the screen as it is now, and end.")
@click.option(
    "--history", type=click.IntRange(0, 2000), default=0, help="With --screen: lines above it to print first."
)
@click.option("--shell", is_flag=True, help="Open a shell in the session's directory, and sit down at that.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def terminal(
    session: str,
    read_only: bool,
    take: bool,
    keep_size: bool,
    screen: bool,
    history: int,
    shell: bool,
    home: Path | None,
) -> int:
    """Sit down at the terminal of SESSION (default: the newest): see it live, and type there."""
    from trunkline_cli.context import finish

    if read_only and take:
        raise click.UsageError("--read-only and --take exclude each other")
    if screen:
        return finish(_screen(session, history, home))
    return finish(_terminal(session, home, read_only=read_only, take=take, fits=not keep_size, shell=shell))


async def _screen(reference: str, history: int, home: Path | None) -> int:
    import base64

    from trunkline_cli.context import find_session, open_link

    async with open_link(home) as link:
        session = await find_session(link, reference)
        shown = await link.terminal.screen(session=session, history=history)
        painted = base64.b64decode(shown["paint"])
        if sys.stdout.isatty():
            sys.stdout.buffer.write(painted + b"\r\n")
        else:
            click.echo(plain(painted.decode(errors="replace")))
    return 0


def plain(painted: str) -> str:
    """The text of a painting (`trunkline_wire.terminal`): the lines above the screen, then its rows."""
    import re

    clear = "\x1b[H\x1b[2J"
    _, *before, screen = painted.split(clear)
    above = before[0].split("\r\n") if before and "\r\n" in before[0] else []
    rows: list[str] = []
    for row, text in re.findall(r"\x1b\[(\d+)H(.*?)(?=\x1b\[\d+(?:;\d+)?H|\x1b7|\Z)", screen, re.DOTALL):
        rows += [""] * (int(row) - 1 - len(rows))
        rows.append(re.sub(r"\x1b\[[0-?]*[@-~]", "", text).rstrip())
    return "\n".join([*"\n".join(above).rstrip("\n").splitlines(), *rows])


async def _terminal(reference: str, home: Path | None, *, read_only: bool, take: bool, fits: bool, shell: bool) -> int:
    from trunkline_cli.context import find_session, open_link
    from trunkline_cli.discovery import find_gateway, home_directory
    from trunkline_cli.terminal import Attached, Options
    from trunkline_wire import TrunklineError
    from trunkline_wire.ids import new_session_id

    async with open_link(home) as link:
        session = await find_session(link, reference)
        if shell:
            opened = await link.terminal.shell(session=session, id=new_session_id())
            session = opened["session"]
        keyboard = sys.stdin.isatty() and not read_only
        if keyboard:
            try:
                await link.terminal.open(session=session)
            except TrunklineError as error:
                if error.code != "forbidden":
                    raise
                keyboard = False
        if take and not keyboard:
            raise click.UsageError("--take needs a keyboard, and a role that may type")
        options = Options(writes=keyboard, takes=take, fits=fits)
        await Attached(link, lambda: find_gateway(home_directory(home)), session, options).run()
    sys.stderr.write(f"left; the session goes on: trunkline terminal {session[:16]}\n")
    return 0
