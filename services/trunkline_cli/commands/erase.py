"""`trunkline erase`: a session's content, gone."""

from pathlib import Path

import click

EPILOG = """\b
Examples:
  trunkline erase 0199f3 --reason "a password was pasted"
  trunkline erase ses_0199f3a1... --yes --json

For a leaked secret or a person's right to be forgotten. What goes: all events of the session, its streaming pieces, commands
and answers, dead letters and observations that name it, its state in every bucket, and the large values that no other session
refers to. What stays: one event, session.erased, with who and why; the audit; backups that were made before.

It needs the administrator's NATS key (nats/keys/admin.nk of the state directory, or TRUNKLINE_NATS_SEED), which only the owner of
the instance has; no service may purge. Close the session first. Running it again is harmless: what was left half done is finished.
"""


@click.command(epilog=EPILOG)
@click.argument("session")
@click.option("--reason", help="Why; it stays in the log.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="What is gone, as one line.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def erase(session: str, reason: str | None, yes: bool, as_json: bool, home: Path | None) -> int:
    """Erase the content of SESSION for good; a tombstone stays."""
    from trunkline_cli.context import finish

    return finish(_erase(session, reason, yes, as_json, home))


async def _erase(reference: str, reason: str | None, yes: bool, as_json: bool, home: Path | None) -> int:
    import getpass

    from trunkline_bus.erase import erase as erase_session
    from trunkline_bus.requests import Requests
    from trunkline_cli.logbook import find_logged, open_log
    from trunkline_cli.output import ndjson
    from trunkline_wire import SystemRecord, timestamp
    from trunkline_wire.ids import new_event_id

    async with open_log(home, user="admin") as bus:
        session = await find_logged(bus, reference)
        if not yes:
            click.confirm(f"erase the content of {session} for good?", abort=True, err=True)
        actor = getpass.getuser()
        erased = await erase_session(bus, session, by=actor, reason=reason, say=lambda line: click.echo(line, err=True))
        details = {"reason": reason, "sequence": erased.sequence, "purged": erased.purged, "blobs": erased.blobs}
        record = SystemRecord(
            id=new_event_id(), kind="erasure", time=timestamp(), actor=actor, session=session, details=details
        )
        await Requests(bus, "admin").record(record)
    if as_json:
        ndjson(erased)
    else:
        gone = ", ".join(f"{count} of {stream}" for stream, count in erased.purged.items()) or "nothing was left"
        kept = f"; {erased.blobs_kept} blobs stay, others refer to them" if erased.blobs_kept else ""
        click.echo(f"{session} is erased: {gone}{kept}; what remains stands at {erased.sequence}")
    return 0
