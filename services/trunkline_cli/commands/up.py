"""`trunkline up`: this process becomes the supervisor."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

EPILOG = """\b
Examples:
  trunkline up                            everything here, at http://127.0.0.1:30086 or the next free port
  trunkline up --demo                     with a demo session to look at
  trunkline up --port 0 --home /tmp/try   beside another instance
  trunkline up --nats-url nats://nats:4222   on a server that runs already

Stop it with Ctrl-C: agents end with it, their sessions stay in the log and resume with the next prompt.
Every setting may also stand in ~/.trunkline/trunkline.toml below [supervisor].
"""


C = TypeVar("C", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--home", type=click.Path(path_type=Path), help="State directory (default: ~/.trunkline, TRUNKLINE_HOME)."
    ),
    click.option("--port", type=click.IntRange(0, 65535), help="Port of the gateway; 0 takes any free one."),
    click.option("--demo", is_flag=True, help="Start a session with the demo agent."),
    click.option("--nats-url", metavar="URL", help="Use this NATS server instead of one of our own."),
    click.option("--nats-seed", type=click.Path(path_type=Path), help="nkey seed file of an administrator there."),
    click.option("--services", metavar="NAMES", help="Run only these services (comma separated)."),
    click.option(
        "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="How much the logs say."
    ),
)


def up_options(command: C) -> C:
    """What the supervisor can be told on the command line."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def up_flags(options: Mapping[str, Any]) -> list[str]:
    """The supervisor's flags; relative paths are made whole, as it may run elsewhere."""
    flags: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        flag = f"--{name.replace('_', '-')}"
        said = value.expanduser().absolute() if isinstance(value, Path) else value
        flags.append(flag if value is True else f"{flag}={said}")
    return flags


@click.command(epilog=EPILOG)
@up_options
def up(**options: object) -> None:
    """Start Trunkline on this machine and keep it running until Ctrl-C.

    Starts a nats-server, creates the log, and runs the services: projector, permissions, teams, gateway, adapters. Whatever
    dies is started again. Logs are in the state directory's logs/. `trunkline daemon start` does the same in the background.
    """
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "trunkline_supervisor", *up_flags(options)])  # noqa: S606 - no shell is wanted
