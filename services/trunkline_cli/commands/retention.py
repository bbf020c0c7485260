"""`trunkline retention`: closed sessions as files, and out of the log."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import datetime as dt

    from trunkline_bus.connection import Bus

EPILOG = """\b
Examples:
  trunkline retention /archive --closed-for 90d --dry-run     which sessions it would be
  trunkline retention /archive --closed-for 90d               write them; the log keeps them
  trunkline retention /archive --closed-for 90d --erase       and erase what was written: a tombstone stays

A session is written as SESSION.ndjson, every event byte for byte with its place in the log, its large values as blobs/SHA256;
what was written is in index.ndjson with hashes. Sessions that were opened again, or never closed, stay. Run it from cron. It
needs the administrator's NATS key. Errors: forbidden, busy (a worker owns the session), log_unavailable.
"""


@click.command(epilog=EPILOG)
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--closed-for", default="90d", show_default=True, help="How long ago the last thing happened (12h, 90d).")
@click.option("--erase", is_flag=True, help="Erase from the log what has been written.")
@click.option("--dry-run", is_flag=True, help="Only say which.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def retention(directory: Path, closed_for: str, erase: bool, dry_run: bool, home: Path | None) -> int:
    """Write sessions that were closed long ago into DIRECTORY, and erase them if you say so."""
    from trunkline_cli.context import finish

    return finish(_retention(directory, closed_for, erase, dry_run, home))


async def _retention(directory: Path, closed_for: str, erasing: bool, dry_run: bool, home: Path | None) -> int:
    import getpass

    from trunkline_bus.erase import erase
    from trunkline_bus.exporting import export_session
    from trunkline_cli.logbook import open_log, session_ids
    from trunkline_cli.output import ndjson
    from trunkline_cli.since import since
    from trunkline_wire import encode, parse_time

    before = parse_time(since(closed_for))
    async with open_log(home, user="admin") as bus:
        chosen = [session for session in await session_ids(bus) if await _is_over(bus, session, before)]
        click.echo(f"{len(chosen)} sessions were closed before {before:%Y-%m-%d %H:%M}", err=True)
        for number, session in enumerate(chosen, 1):
            if dry_run:
                click.echo(session)
                continue
            exported = await export_session(bus, session, directory)
            _note(directory / "index.ndjson", encode(exported))
            if erasing and not exported.missing:
                await erase(
                    bus, session, by=getpass.getuser(), reason=f"written to an archive, sha256 {exported.sha256}"
                )
            ndjson(exported)
            click.echo(f"{number} of {len(chosen)}", err=True)
    return 0


def _note(index: Path, line: bytes) -> None:
    with index.open("ab") as file:
        file.write(line + b"\n")


async def _is_over(bus: "Bus", session: str, before: "dt.datetime") -> bool:
    from trunkline_bus import direct
    from trunkline_wire import subjects
    from trunkline_wire.session import SessionArchived, SessionClosed

    last = await direct.last(bus, bus.layout.of(session), subjects.agent_fence(session))
    return last is not None and last.type in (SessionClosed.TYPE, SessionArchived.TYPE) and last.time < before
