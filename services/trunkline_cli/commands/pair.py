"""`trunkline pair`: take in a device that comes from anywhere."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from trunkline_cli.commands.pair_join import join

if TYPE_CHECKING:
    import asyncio

EPILOG = """\b
Examples:
  trunkline pair                             a link and a QR code, for a phone of your own
  trunkline pair --actor bob --role viewer   for somebody who only looks
  trunkline pair join                        this machine becomes a device of a host elsewhere

The link is good once, for a minute. Six digits then appear here and on the device: only if they are the same, say yes.
It needs the table [relay] in trunkline.toml, for example:

\b
  [relay]
  kind = "embedded"
  url = "https://relay.example.org"
"""

ROLES: Final = ("viewer", "participant", "approver", "owner")


@click.group(invoke_without_command=True, epilog=EPILOG)
@click.option("--name", default="", help="What the device is called; by its own word without it.")
@click.option("--role", type=click.Choice(ROLES), default="owner", show_default=True, help="What it may do.")
@click.option("--actor", help="Who it is; the user of this machine without it.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
@click.pass_context
def pair(ctx: click.Context, name: str, role: str, actor: str | None, home: Path | None) -> int:
    """Pair a device, so that it reaches this host from any network."""
    from trunkline_cli.context import finish

    if ctx.invoked_subcommand is not None:
        return 0
    return finish(_pair(home, {"name": name, "role": role, "actor": actor or _user()}))


pair.add_command(join)


def _user() -> str:
    import getpass

    return getpass.getuser()


async def _pair(home: Path | None, wanted: dict[str, Any]) -> int:
    from trunkline_cli.context import open_link
    from trunkline_cli.discovery import home_directory
    from trunkline_cli.relay_door import answer, door, say

    async with door(home_directory(home)) as (reader, writer):
        async with open_link(home) as gateway:
            invited = await gateway.call("device.invite", **wanted)
        say(writer, {"do": "pair", "invitation": invited["invitation"]})
        link = await answer(reader)
        _show(link)
        arrived = await _counting(reader, link["seconds"])
        _compare(arrived)
        agree = await _agreed(reader, "  Does the device show the same? [y/N] ")
        say(writer, {"agree": agree})
        done = await answer(reader)
    click.echo(f"paired {done['name']!r} as {done['role']}: `trunkline devices` lists it, and revokes it")
    return 0


def _show(link: dict[str, Any]) -> None:
    """The link, and where there is a terminal for it the same as a QR code."""
    from trunkline_cli.output import safe

    click.echo(safe(link["link"]))
    if sys.stdout.isatty():
        import segno

        segno.make(link["link"], error="l").terminal(compact=True)
    click.echo(
        f"host {safe(link['name'])} · {link['fingerprint']} · Trunkline {link['version']}\n"
        "Open the link on the device, or give it to `trunkline pair join` there.",
        err=True,
    )


def _compare(arrived: dict[str, Any]) -> None:
    from trunkline_cli.output import safe

    click.echo(f"{safe(arrived['name'])} is here ({arrived['fingerprint']})\n\n      {arrived['code']}\n", err=True)


async def _counting(reader: "asyncio.StreamReader", seconds: float) -> dict[str, Any]:
    """What comes, with the seconds that are left shown on a terminal meanwhile."""
    import asyncio
    import math

    from trunkline_cli.relay_door import answer

    until = asyncio.get_running_loop().time() + seconds
    coming = asyncio.create_task(answer(reader))
    shown = sys.stderr.isatty()
    try:
        while not coming.done():
            left = max(0, math.ceil(until - asyncio.get_running_loop().time()))
            if shown:
                click.echo(f"\r  waiting for the device, {left} s … ", nl=False, err=True)
            await asyncio.wait({coming}, timeout=1.0 if shown else None)
        return coming.result()
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
        if shown:
            click.echo("\r\x1b[K", nl=False, err=True)


async def _agreed(reader: "asyncio.StreamReader", question: str) -> bool:
    """Yes only for a yes. Raises TrunklineError for what the relay says before there is an answer."""
    import asyncio
    import contextlib

    from trunkline_cli.keyboard import Keyboard
    from trunkline_cli.relay_door import answer

    click.echo(question, nl=False, err=True)
    with contextlib.ExitStack() as stack:
        try:
            keyboard = stack.enter_context(Keyboard().open())
        except OSError:  # nobody is there
            return False
        typing, hearing = asyncio.create_task(keyboard.lines.get()), asyncio.create_task(answer(reader))
        try:
            await asyncio.wait({typing, hearing}, return_when=asyncio.FIRST_COMPLETED)
            if hearing.done():
                hearing.result()
            return (await typing or "").strip().lower() in {"y", "yes"}
        finally:
            for task in (typing, hearing):
                task.cancel()
            await asyncio.gather(typing, hearing, return_exceptions=True)
