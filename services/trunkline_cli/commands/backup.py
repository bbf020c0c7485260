"""`trunkline backup` and `trunkline restore`."""

from pathlib import Path

import click

BACKUP_EPILOG = """\b
Examples:
  trunkline backup /backups/2026-11-29
  TRUNKLINE_NATS_URL=nats://nats:4222 TRUNKLINE_NATS_SEED=admin.nk trunkline backup /backups/today

While everything runs. Copies the log, commands, the audit, tokens, devices, blobs; not the projections, which are built from the
log. Keep the state directory too (keys, policy, the secret that signs cursors), and keep both private: they hold all that
agents said. Needs the administrator's NATS key. Errors: bad_params (the directory exists), forbidden, log_unavailable.
"""

RESTORE_EPILOG = """\b
Examples:
  trunkline restore /backups/2026-11-29 --check      are the files as they were written?
  trunkline restore /backups/2026-11-29              into the empty server of the running instance
  trunkline restore DIR --replicas 3                 into a cluster

The server must have none of the streams: start it with an empty store and without services (`trunkline up` makes streams at once; a
nats-server of your own, with TRUNKLINE_NATS_URL, does not). Sequences and times stay, so that cursors stay valid; one from
after the backup ends in an explicit gap. Then: trunkline verify. Errors: bad_backup, topology_conflict (not empty), forbidden.
"""


@click.command(epilog=BACKUP_EPILOG)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="The manifest, as one line.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def backup(directory: Path, as_json: bool, home: Path | None) -> int:
    """Copy the log's truth into a new DIRECTORY, with hashes."""
    from trunkline_cli.context import finish

    return finish(_backup(directory, as_json, home))


@click.command(epilog=RESTORE_EPILOG)
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--check", is_flag=True, help="Only check the files against their hashes.")
@click.option("--replicas", type=click.IntRange(1, 5), help="Copies of each stream (default: as it was).")
@click.option("--new-log", is_flag=True, help="Give the log a new id: every client starts from a snapshot.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def restore(directory: Path, check: bool, replicas: int | None, new_log: bool, home: Path | None) -> int:
    """Put the backup in DIRECTORY into an empty server."""
    from trunkline_cli.context import finish

    return finish(_restore(directory, check, replicas, new_log, home))


def _say(line: str) -> None:
    click.echo(line, err=True)


async def _backup(directory: Path, as_json: bool, home: Path | None) -> int:
    from trunkline_bus.backup import backup as make
    from trunkline_cli.logbook import open_log
    from trunkline_cli.output import ndjson

    async with open_log(home, user="admin") as bus:
        manifest = await make(bus, directory, say=_say)
    if as_json:
        ndjson(manifest)
    else:
        messages = sum(copy.messages for copy in manifest.streams)
        size = sum(copy.size for copy in manifest.streams)
        click.echo(f"{directory}: {len(manifest.streams)} streams, {messages} messages, {size} bytes")
    return 0


async def _restore(directory: Path, only_check: bool, replicas: int | None, new_log: bool, home: Path | None) -> int:
    from trunkline_bus.backup import check
    from trunkline_bus.backup import restore as put_back
    from trunkline_cli.logbook import open_log

    if only_check:
        manifest = check(directory, say=_say)
        click.echo(f"{directory}: intact, of {manifest.time}, log {manifest.log[:8]}")
        return 0
    async with open_log(home, user="admin") as bus:
        manifest = await put_back(bus, directory, replicas=replicas, new_log=new_log, say=_say)
    click.echo(f"{directory}: restored, of {manifest.time}; now: trunkline verify")
    return 0
