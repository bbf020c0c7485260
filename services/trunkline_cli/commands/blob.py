"""`trunkline blob`: a large value, which stands in an event as a reference."""

from pathlib import Path

import click

EPILOG = """\b
Examples:
  trunkline events last --json | grep sha256     where the references are
  trunkline blob 2c26b46b68ff… | less            what stands behind one
  trunkline blob 2c26b46b68ff… -o output.txt     into a file
"""


@click.command(epilog=EPILOG)
@click.argument("sha256")
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write it into this file.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def blob(sha256: str, output: Path | None, home: Path | None) -> int:
    """Print the bytes of the large value with this SHA256, as they were."""
    from trunkline_cli.context import finish

    return finish(_blob(sha256, output, home))


async def _blob(sha256: str, output: Path | None, home: Path | None) -> int:
    from trunkline_cli.context import open_link
    from trunkline_client import blob_parts

    async with open_link(home) as link:
        parts = blob_parts(link, sha256)
        first = await anext(parts)
        with click.open_file("-" if output is None else str(output), "wb") as out:
            out.write(first)
            async for part in parts:
                out.write(part)
    return 0
