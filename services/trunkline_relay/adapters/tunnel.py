"""A relay here on loopback, and a program that makes it reachable: started, read, and started again when it dies."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from trunkline_bus.tasks import end
from trunkline_relay.adapters.local import LocalRelay
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

FIRST_S: Final = 1.0
LONGEST_S: Final = 30.0
STEADY_S: Final = 60.0
"""A program that has run so long was a good one: the next starts begin with FIRST_S."""
SILENT_S: Final = 20.0
"""Seconds that a program may take to say its address, before the log has that it does not."""
END_S: Final = 3.0
MAX_LINE: Final = 64 * 1024
INHERITED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK")
MISSING: Final = "install it, or name it with `program` of [relay]"
ADVICE: Final = "look whether this machine reaches the internet, and at what [relay] of trunkline.toml says"
PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


class Command(msgspec.Struct, frozen=True):
    """How to run the program: secrets are in `environment` alone, as anybody on the machine can read an argument."""

    argv: list[str]
    environment: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Command({self.argv!r})"


Making = Callable[[int], Command]
"""The command that makes this port of loopback reachable."""
Reading = Callable[[str], str | None]
"""The public address that a line of the program's output says; None for any other line."""


class Tunnel:
    """`public_url` is what the program says, and empty while it does not run."""

    def __init__(self, type: str, relay: LocalRelay, making: Making, reading: Reading) -> None:
        self.type = type
        self.public_url = ""
        self.starts = 0
        self.process: asyncio.subprocess.Process | None = None
        self._relay = relay
        self._making = making
        self._reading = reading
        self._keeping: asyncio.Task[None] | None = None
        self._last = ""
        """The program's last words, without secrets."""
        self._ended = ""
        """How it ended and what to do, until it stands again."""

    @property
    def connected(self) -> bool:
        return bool(self.public_url)

    @property
    def trouble(self) -> str:
        if self.connected:
            return ""
        words = f": {self._last}" if self._last else ""
        return self._ended or f"{self.type} runs, but has said no address for devices yet{words}; {ADVICE}"

    async def connect(self) -> str:
        """Returns once the relay listens; the program may take longer. Raises TrunklineError `already_running`."""
        await self._relay.start()
        self._keeping = asyncio.create_task(self._keep())
        return self._relay.url

    async def disconnect(self) -> None:
        keeping, self._keeping = self._keeping, None
        if keeping is not None:
            await end(keeping)
        await self._relay.stop()

    async def _keep(self) -> None:
        delay = FIRST_S
        while True:
            began = time.monotonic()
            try:
                self._ended = f"{self.type} ended, {await self._run(self._making(self._relay.port))}; {ADVICE}"
            except FileNotFoundError as error:
                self._ended = f"{self.type} can't be started, {error.strerror}: {MISSING}"
            except OSError as error:
                self._ended = f"{self.type} can't be started: {error.strerror}"
            if time.monotonic() - began >= STEADY_S:
                delay = FIRST_S
            log.warning("tunnel_ended", extra={"type": self.type, "reason": self._ended, "again_in_s": delay})
            await asyncio.sleep(delay)
            delay = min(LONGEST_S, delay * 2)

    async def _run(self, command: Command) -> str:
        """One life of the program; how it ended."""
        self.starts += 1
        process = await asyncio.create_subprocess_exec(
            *command.argv,
            env=environment_of(os.environ, command.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=MAX_LINE,
            start_new_session=True,
        )
        self.process = process
        self._last = ""
        silent = asyncio.get_running_loop().call_later(SILENT_S, self._tell_silence)
        try:
            await self._read(process, command)
            return f"status {await process.wait()}: {self._last}"
        finally:
            silent.cancel()
            self.public_url = ""
            self.process = None
            await _ended(process)

    def _tell_silence(self) -> None:
        if not self.connected:
            log.warning("tunnel_silent", extra={"type": self.type, "reason": self.trouble})

    async def _read(self, process: asyncio.subprocess.Process, command: Command) -> None:
        assert process.stdout is not None
        while True:
            try:
                raw = await process.stdout.readline()
            except ValueError:  # a line without an end
                continue
            if not raw:
                return
            line = "".join(sign for sign in raw.decode(errors="replace").strip() if sign.isprintable() or sign == "\t")
            found = self._reading(line)
            if found and found != self.public_url:
                self.public_url = found.rstrip("/")
                self._ended = ""
                self._relay.called(self.public_url)
                log.info("tunnel_ready", extra={"type": self.type, "url": self.public_url})
            if line:
                self._last = masked(line, command.environment)[:300]


def checked_url(url: str, why: str) -> str:
    """Raises TrunklineError `bad_settings` for a public address that is missing or none."""
    if not url.startswith(("https://", "http://")):
        raise TrunklineError("bad_settings", f"{why} wants `url` of [relay]: the address (https://…) for devices")
    return url.rstrip("/")


def environment_of(own: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """What the program needs of ours, and no more."""
    wanted = {*INHERITED, *PROXIES, *(name.lower() for name in PROXIES)}
    return {**{name: value for name, value in own.items() if name in wanted}, **added}


def masked(line: str, secrets: Mapping[str, str]) -> str:
    for secret in secrets.values():
        line = line.replace(secret, "********")
    return line


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Also its children: they are in its process group."""
    for number, patience in ((signal.SIGTERM, END_S), (signal.SIGKILL, END_S)):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await process.wait()
