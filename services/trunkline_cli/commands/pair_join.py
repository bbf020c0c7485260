"""`trunkline pair join`: this machine becomes a device of a host elsewhere."""

import sys
from pathlib import Path

import click

EPILOG = """\b
Examples:
  trunkline pair join                        asks for the link that `trunkline pair` shows at the host
  trunkline pair join --as work < link.txt   and calls the host `work` here
  trunkline --host work ls                   then every command may go there

Other users of this machine see what is typed as an argument: without one the link is asked for, or read from the input.
"""


@click.command(epilog=EPILOG)
@click.argument("link", required=False)
@click.option("--as", "name", help="What the host is called here; as it calls itself without it.")
@click.option("--name", "device", help="What this device is called there; this machine's name without it.")
@click.option(
    "--pad",
    type=click.IntRange(0, 65536),
    default=0,
    metavar="BYTES",
    help="Hide lengths from the relay: messages are padded to a multiple of so many bytes (256 is good for texts).",
)
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def join(link: str | None, name: str | None, device: str | None, pad: int, home: Path | None) -> int:
    """Be a device of the host that made LINK with `trunkline pair`."""
    from trunkline_cli.context import finish

    if link is None:
        shown = sys.stdin.isatty()
        link = click.prompt("Link", hide_input=True, prompt_suffix=": ", err=True) if shown else sys.stdin.readline()
    return finish(_join(link or "", name, device, pad, home))


async def _join(text: str, name: str | None, device: str | None, pad: int, given: Path | None) -> int:
    import platform

    from msgspec.structs import replace

    from trunkline_cli import hosts
    from trunkline_cli.discovery import home_directory
    from trunkline_cli.output import safe
    from trunkline_client.pairing import pair as paired_by
    from trunkline_seal import fingerprint
    from trunkline_seal.pairing import Link

    link, home = Link.parse(text), home_directory(given)
    if name is not None:
        hosts.check(home, name, link.route)
    click.echo(f"host {fingerprint(link.identity)}", err=True)

    def show(code: str, host: str) -> None:
        click.echo(f"\n      {code}\n\nSay yes at {safe(host)} if it shows the same; waiting …", err=True)

    paired = await paired_by(link, device or platform.node() or "terminal", show)
    name = hosts.save(home, name, replace(paired, pad=pad))
    click.echo(f"paired with {safe(paired.host)} as {safe(paired.role)}: trunkline --host {name} ls")
    return 0
