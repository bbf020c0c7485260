"""`trunkline import`: sessions that agents ran without Trunkline, from their own histories into the log.

It writes with the key of the instance's worker, which is the user that may write what agents do, and nothing else of the
log: no decisions, no commands, no projections. The import runs in this process and not in the worker, because the files
are of whoever calls it, a worker may run as somebody else or see another home, and reading many large files is no work
for a process that owns live sessions. The key is a file that only the instance's own user can read, so no right is new.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trunkline_agentkit.history import HistoryFile, KeepsHistories, Summary
    from trunkline_agentkit.importing import Imported

EPILOG = """\b
Examples:
  trunkline import                          what there is to import, by directory
  trunkline import gemini                   of one agent
  trunkline import claude 98ec5afe          one session; a beginning of its id will do
  trunkline import claude --all             all that is not in the log yet
  trunkline import claude --all --cwd .     all of this directory
  trunkline import --json | jq 'select(.session == null) | .id'

An imported session is closed, and otherwise like any other: `trunkline ls --all` lists it, `trunkline resume` reopens it with the
agent's own memory of it. Importing again changes nothing, and goes on where an import was cut off. Lines that can't be
read are named and left out. End an agent before you import the session that it runs: what it writes later is not followed.
"""

WORKER = "worker"
"""The NATS user that writes sessions' events."""


@click.command("import", epilog=EPILOG)
@click.argument("agent", required=False)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="Import all that is not in the log yet.")
@click.option("--cwd", type=click.Path(path_type=Path), help="Only sessions of this directory.")
@click.option("--json", "as_json", is_flag=True, help="One history a line, or what became of it.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def import_history(
    agent: str | None, ids: tuple[str, ...], everything: bool, cwd: Path | None, as_json: bool, home: Path | None
) -> int:
    """List sessions that AGENT ran without Trunkline, or import those named by ID."""
    from trunkline_cli.context import finish

    if everything and ids:
        raise click.UsageError("give IDs or --all, not both")
    if everything or ids:
        return finish(_import(agent, ids, cwd, as_json, home))
    return finish(_list(agent, cwd, as_json, home))


async def _list(agent: str | None, cwd: Path | None, as_json: bool, home: Path | None) -> int:
    from trunkline_agentkit.importing import imported_natives, known_natives
    from trunkline_cli.logbook import open_log
    from trunkline_cli.output import ndjson

    found: list[tuple[str, Summary]] = []
    async with _keeping(agent) as files:
        for name, adapter, file in files:
            summary = await _summary(adapter, file)
            if summary is not None and summary.turns and _is_in(summary, cwd):
                found.append((name, summary))
    async with open_log(home, user=WORKER) as bus:
        known = await imported_natives(bus, found) | await known_natives(bus)
    found.sort(key=lambda one: (one[1].cwd or "", one[1].ended))
    if as_json:
        for name, summary in found:
            ndjson(_described(name, summary, known.get(summary.native)))
        return 0
    _show(found, known)
    return 0


def _show(found: "list[tuple[str, Summary]]", known: dict[str, str]) -> None:
    from trunkline_cli.context import brief
    from trunkline_cli.output import safe, short, table

    rows: list[list[str]] = []
    for cwd, of_directory in groupby(found, lambda one: one[1].cwd or ""):
        for name, one in of_directory:
            session = known.get(one.native)
            state = brief(session) if session else "no"
            day = one.ended[:16].replace("T", " ")
            rows.append([cwd, one.agent or name, one.native, day, str(one.messages), state, short(safe(one.title), 60)])
    if not rows:
        click.echo("no histories here", err=True)
        return
    table(["directory", "agent", "id", "last", "messages", "imported", "title"], rows)


async def _import(agent: str | None, ids: tuple[str, ...], cwd: Path | None, as_json: bool, home: Path | None) -> int:
    from trunkline_agentkit.importing import import_history as import_one
    from trunkline_agentkit.importing import known_natives, session_of
    from trunkline_cli.discovery import home_directory, running_state
    from trunkline_cli.logbook import open_log
    from trunkline_cli.output import ndjson
    from trunkline_wire import ErrorInfo, TrunklineError

    directory = home_directory(home)
    host = running_state(directory).host
    failed = 0
    async with _keeping(agent) as files, open_log(home, user=WORKER) as bus:
        chosen = [_chosen(files, reference) for reference in ids] if ids else files
        known = await known_natives(bus)
        for name, adapter, file in chosen:
            summary = await _summary(adapter, file)
            if summary is None or not _is_in(summary, cwd):
                continue
            session = known.get(file.native)
            if session is not None and session != session_of(name, summary):
                # Trunkline has run it itself: the log has it already, and better.
                _tell_known(name, summary, session, as_json=as_json)
                continue
            try:
                done = await import_one(bus, directory, host, name, adapter, file, progress=_progress(file.native))
            except TrunklineError as error:
                failed += 1
                if as_json:
                    ndjson(
                        {
                            "agent": file.agent or name,
                            "id": file.native,
                            "outcome": "failed",
                            "error": ErrorInfo.of(error),
                        }
                    )
                else:
                    click.echo(f"error: {error.code}: {file.native}: {error.message}", err=True)
                continue
            _tell(name, done, as_json=as_json)
    return 1 if failed else 0


def _tell_known(name: str, summary: "Summary", session: str, *, as_json: bool) -> None:
    from trunkline_cli.output import ndjson

    if as_json:
        ndjson(_described(name, summary, session) | {"outcome": "already_in_log"})
    else:
        click.echo(f"{summary.native}: already in the log as {session}")


def _tell(name: str, done: "Imported", *, as_json: bool) -> None:
    from trunkline_cli.output import ndjson

    summary = done.summary
    if as_json:
        session = None if done.outcome == "empty" else done.session
        counts = {"outcome": done.outcome, "events": done.events, "written": done.written}
        ndjson(_described(name, summary, session) | counts)
        return
    match done.outcome:
        case "empty":
            click.echo(f"{summary.native}: nothing was said in it, nothing is imported")
        case "already_imported":
            click.echo(f"{summary.native}: already imported as {done.session}")
        case "imported":
            click.echo(
                f"{summary.native}: imported as {done.session}, {summary.messages} messages, {done.events} events"
            )
    for what, places in (("malformed, left out", summary.malformed), ("kept untranslated", summary.untranslated)):
        if places:
            lines = "line" if len(places) == 1 else "lines"
            click.echo(f"{summary.native}: {len(places)} {lines} {what}: {', '.join(places)}", err=True)


def _described(name: str, summary: "Summary", session: str | None) -> dict[str, Any]:
    from msgspec.structs import asdict

    fields = asdict(summary)
    agent = fields.pop("agent") or name
    return {"agent": agent, "id": fields.pop("native"), **fields, "session": session}


@asynccontextmanager
async def _keeping(agent: str | None) -> "AsyncGenerator[list[tuple[str, KeepsHistories, HistoryFile]]]":
    """The histories of one agent, or of all that keep any. Raises `unknown_adapter`, `unsupported`, and what keeps one from looking."""
    from trunkline_agentkit.history import KeepsHistories
    from trunkline_agentkit.registry import load, load_all
    from trunkline_cli.probing import say_broken
    from trunkline_wire import TrunklineError

    keeping = {name: adapter for name, adapter in load_all(say_broken).items() if isinstance(adapter, KeepsHistories)}
    if agent is not None:
        keeping = {name: adapter for name, adapter in keeping.items() if agent in adapter.history_agents}
        if not keeping:
            load(agent)
            raise TrunklineError(
                "unsupported", f"{agent!r} keeps no histories that can be imported: see `trunkline import`"
            )
    try:
        files: list[tuple[str, KeepsHistories, HistoryFile]] = []
        for name, adapter in keeping.items():
            try:
                files += [(name, adapter, file) for file in await asyncio.to_thread(adapter.histories, agent)]
            except TrunklineError as error:
                if agent is not None:
                    raise
                click.echo(f"{name}: {error}", err=True)
        yield files
    finally:
        for adapter in keeping.values():
            await adapter.close()


def _chosen(
    files: "list[tuple[str, KeepsHistories, HistoryFile]]", reference: str
) -> "tuple[str, KeepsHistories, HistoryFile]":
    """The one history whose id begins with `reference`. Raises `unknown_session`, `bad_id`."""
    from trunkline_wire import TrunklineError

    found = [one for one in files if one[2].native.startswith(reference)]
    if not found:
        raise TrunklineError("unknown_session", f"no history's id begins with {reference!r}: see `trunkline import`")
    if len(found) > 1:
        raise TrunklineError("bad_id", f"{len(found)} ids begin with {reference!r}: type more of it")
    return found[0]


async def _summary(adapter: "KeepsHistories", file: "HistoryFile") -> "Summary | None":
    """None for a file that can't be read, which is said."""
    from trunkline_agentkit.history import summarise
    from trunkline_wire import TrunklineError

    try:
        return await asyncio.to_thread(summarise, adapter, file)
    except (OSError, TrunklineError) as error:
        click.echo(f"{file.path}: {file.native}: {error}", err=True)
        return None


def _is_in(summary: "Summary", cwd: Path | None) -> bool:
    return cwd is None or (summary.cwd is not None and Path(summary.cwd).resolve() == cwd.resolve())


def _progress(native: str) -> Callable[[int], None]:
    """Says on a terminal how far a long import is."""
    import sys

    def tell(events: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{native}: {events} events\x1b[K\r", err=True, nl=False)

    return tell
