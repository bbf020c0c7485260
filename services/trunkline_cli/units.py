"""How systemd and launchd are told to run Trunkline: the files' texts and places. Pure."""

import plistlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

System = Literal["systemd", "launchd"]

NAME: Final = "trunkline.service"
LABEL: Final = "dev.trunkline.daemon"
STOP_S: Final = 30
"""Seconds that the daemon may take to end: agents, services, nats-server."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """`enable` and `disable` are the commands that make the system run it, now and at each sign-in, and no more."""

    path: Path
    text: str
    enable: tuple[tuple[str, ...], ...]
    disable: tuple[tuple[str, ...], ...]
    note: str = ""


def systemd_unit(argv: Sequence[str], environment: Mapping[str, str], config: Path) -> Unit:
    """A unit of the user's own manager; `config` is `~/.config`."""
    variables = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in environment.items())
    text = f"""\
[Unit]
Description=Trunkline: coding agents on one line
After=network.target

[Service]
Type=exec
ExecStart={" ".join(_quoted(word).replace("$", "$$") for word in argv)}
{variables}Restart=on-failure
RestartSec=2
RestartPreventExitStatus=2
KillMode=mixed
TimeoutStopSec={STOP_S}

[Install]
WantedBy=default.target
"""
    return Unit(
        path=config / "systemd" / "user" / NAME,
        text=text,
        enable=(("systemctl", "--user", "daemon-reload"), ("systemctl", "--user", "enable", "--now", NAME)),
        disable=(("systemctl", "--user", "disable", "--now", NAME),),
        note="it ends when you sign out, unless `loginctl enable-linger` was said once",
    )


def launchd_plist(argv: Sequence[str], environment: Mapping[str, str], home: Path, log: Path) -> Unit:
    """A LaunchAgent of the user's; `log` takes what the daemon prints."""
    path = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    content = {
        "Label": LABEL,
        "ProgramArguments": list(argv),
        "EnvironmentVariables": dict(environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ExitTimeOut": STOP_S,
        "ProcessType": "Interactive",
        "StandardOutPath": str(log),
        "StandardErrorPath": str(log),
    }
    return Unit(
        path=path,
        text=plistlib.dumps(content, sort_keys=False).decode(),
        enable=(("launchctl", "load", "-w", str(path)),),
        disable=(("launchctl", "unload", "-w", str(path)),),
    )


def _quoted(word: str) -> str:
    """A word of a unit's line: quoted, its `%` meant as it is (systemd.service(5))."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
