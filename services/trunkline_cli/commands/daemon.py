"""`trunkline daemon`: the instance in the background, and at each sign-in."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from trunkline_cli.commands.up import up_flags, up_options

if TYPE_CHECKING:
    from trunkline_cli.daemon import DaemonState
    from trunkline_cli.units import Unit

EPILOG: Final = """\b
Examples:
  trunkline daemon start                  what `trunkline up` runs, in the background
  trunkline daemon status                 what runs, since when, and what is not well
  trunkline daemon logs -f adapters       what the workers say
  trunkline daemon stop                   agents end with it; their sessions resume with the next prompt
  trunkline daemon stop --all             and so do those that were started to go on (--hold detached, tmux)
  trunkline daemon install --now          start it at each sign-in (systemd or launchd)
"""
START_EPILOG: Final = """\b
Examples:
  trunkline daemon start
  trunkline daemon start --port 0 --home /tmp/try   beside another instance
"""
NOT_RUNNING: Final = 3
"""The exit code of `status` where nothing runs, as of init scripts (LSB)."""

_home = click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")


@click.group(epilog=EPILOG)
def daemon() -> None:
    """Run Trunkline in the background: one instance a state directory."""


@daemon.command(epilog=START_EPILOG)
@up_options
def start(home: Path | None, **options: object) -> int:
    """Start it, and return once it is ready.

    Takes what `trunkline up` takes. A second one in the same state directory is refused, with the address of the first.
    """
    return _start(_resolved(home), up_flags(options))


def _start(home: Path, flags: list[str]) -> int:
    from trunkline_cli import daemon

    state = daemon.start(home, flags, os.environ, click.echo)
    click.echo(f"It runs in the background as process {state.pid}; `trunkline daemon stop` ends it.")
    return 0


@daemon.command()
@_home
@click.option(
    "--within", type=click.FloatRange(0), default=30.0, show_default=True, help="Seconds before it is killed."
)
@click.option("--all", "everything", is_flag=True, help="End agents, too, that are held on purpose.")
def stop(home: Path | None, within: float, everything: bool) -> int:
    """Stop it: agents are ended, their sessions stay in the log.

    Agents that are held on purpose (`--hold detached`, `--hold tmux`) go on and are listed: the next start takes them up.
    """
    from trunkline_wire import TrunklineError

    place = _resolved(home)
    try:
        _stop(place, within)
    except TrunklineError as error:
        if error.code != "not_running" or not everything:
            raise
    return _settle_held(place, everything=everything)


def _settle_held(home: Path, *, everything: bool) -> int:
    """Ends what is held on purpose, or lists it."""
    import asyncio

    from trunkline_agentkit.held import held_sessions
    from trunkline_agentkit.sweep import end_processes

    held = held_sessions(home)
    if everything:
        asyncio.run(end_processes(one for processes in held.values() for one in processes))
        click.echo("stopped; nothing runs any more")
        return 0
    for session, processes in held.items():
        click.echo(f"  {session} goes on, held on purpose: process {', '.join(str(pid) for pid, _ in processes)}")
    if held:
        click.echo("stopped; `trunkline daemon start` takes up what goes on, `trunkline daemon stop --all` ends it")
    else:
        click.echo("stopped; nothing runs any more")
    return 0


def _stop(home: Path, within: float) -> None:
    from trunkline_cli import daemon

    state = daemon.daemon_state(home)
    click.echo(f"stopping process {state.pid} …")
    if daemon.stop(state, within):
        click.echo(f"it did not end within {within:g} s and was killed", err=True)


@daemon.command()
@_home
@click.option(
    "--within", type=click.FloatRange(0), default=30.0, show_default=True, help="Seconds before it is killed."
)
def restart(home: Path | None, within: float) -> int:
    """Stop it and start it again as it was started: after an update, or when a service was given up."""
    from trunkline_cli import daemon

    place = _resolved(home)
    flags = [flag for flag in daemon.daemon_state(place).flags if not flag.startswith("--home=") and flag != "--demo"]
    _stop(place, within)
    return _start(place, flags)


@daemon.command()
@_home
@click.option("--json", "as_json", is_flag=True, help="One JSON value, for programs.")
def status(home: Path | None, as_json: bool) -> int:
    """Say what runs. Exit code 0: all is well, 1: it runs, but not all of it, 3: nothing runs."""
    from trunkline_cli import daemon
    from trunkline_cli.output import ndjson
    from trunkline_wire import TrunklineError, encode

    place = _resolved(home)
    try:
        state = daemon.daemon_state(place)
    except TrunklineError as error:
        if as_json:
            ndjson({"running": False, "home": str(place)})
        else:
            click.echo(error.message)
        return NOT_RUNNING
    troubles = state.troubles(time.time())
    if as_json:
        from trunkline_wire import decode_json

        ndjson({"running": True, "home": str(place), "troubles": troubles, **decode_json(encode(state))})
    else:
        _show(place, state, troubles)
    return 1 if troubles else 0


def _show(home: Path, state: "DaemonState", troubles: list[str]) -> None:
    import datetime as dt

    from trunkline_cli.output import ago
    from trunkline_wire import timestamp

    since = dt.datetime.fromtimestamp(state.start, dt.UTC)
    click.echo(f"Trunkline {state.version} runs in {home}, as process {state.pid} for {ago(timestamp(since))}")
    click.echo(f"  {'address':<14}{state.gateway}")
    for name, process in state.children.items():
        service = state.services.get(name)
        what = state.nats if service is None else service.words
        click.echo(f"  {name:<14}{what:<30}process {process.pid}")
    for line in troubles:
        click.echo(f"  {click.style('!!', fg='yellow')}  {line}")


@daemon.command()
@click.argument("names", nargs=-1, metavar="[SERVICE]...")
@_home
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option("--lines", "-n", type=click.IntRange(0), default=20, show_default=True, help="How many lines of each.")
def logs(names: tuple[str, ...], home: Path | None, follow: bool, lines: int) -> None:
    """Show the logs: of all services, or of SERVICE (daemon, supervisor, nats-server, gateway, adapters, …)."""
    from trunkline_cli import daemon
    from trunkline_cli.output import safe

    files = daemon.log_files(_resolved(home), names)
    width = max(map(len, files), default=0)

    def show(name: str, line: str) -> None:
        click.echo(safe(line) if len(files) == 1 else f"{name:<{width}} | {safe(line)}")

    for name, path in files.items():
        for line in daemon.last_lines(path, lines):
            show(name, line)
    if follow:
        for name, line in daemon.follow(files):
            show(name, line)


@daemon.command()
@up_options
@click.option("--now", is_flag=True, help="Start it now, too.")
@click.option("--print", "only_print", is_flag=True, help="Only print the file.")
def install(home: Path | None, now: bool, only_print: bool, **options: object) -> int:
    """Make the system start it at each sign-in: a systemd user unit, or a launchd agent on macOS.

    Takes what `trunkline up` takes. Its PATH is this terminal's, as agents are looked up there.
    """
    unit = _unit(_resolved(home), up_flags(options))
    if only_print:
        click.echo(unit.text, nl=False)
        return 0
    unit.path.parent.mkdir(parents=True, exist_ok=True)
    unit.path.write_text(unit.text, encoding="utf-8")
    click.echo(f"written: {unit.path}" + (f" ({unit.note})" if unit.note else ""))
    return _run(unit.enable, now=now)


@daemon.command()
@_home
@click.option("--now", is_flag=True, help="Stop it now, too.")
def uninstall(home: Path | None, now: bool) -> int:
    """Undo `install`."""
    unit = _unit(_resolved(home), [])
    if not unit.path.exists():
        click.echo(f"it is not installed: there is no {unit.path}", err=True)
        return 1
    code = _run(unit.disable, now=now)
    if code == 0:
        unit.path.unlink()
        click.echo(f"removed: {unit.path}")
    return code


def _unit(home: Path, flags: list[str]) -> "Unit":
    from trunkline_cli.units import launchd_plist, systemd_unit

    argv = [sys.executable, "-m", "trunkline_supervisor", f"--home={home}", *flags]
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    if sys.platform == "darwin":
        return launchd_plist(argv, environment, Path.home(), home / "logs" / "daemon.log")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return systemd_unit(argv, environment, config)


def _run(commands: Any, *, now: bool) -> int:
    """Runs the commands, or says them."""
    for command in commands:
        if not now:
            click.echo(f"  {' '.join(command)}")
            continue
        try:
            done = subprocess.run(command, check=False)
        except OSError as error:
            click.echo(f"error: {command[0]} can't be run: {error.strerror}", err=True)
            return 1
        if done.returncode:
            return 1
    return 0


def _resolved(home: Path | None) -> Path:
    from trunkline_cli.discovery import home_directory

    return home_directory(home).absolute()
