"""The server that a session runs on: one of its own, or one that runs already."""

import asyncio
import logging
import re
import secrets
import signal
import socket
from pathlib import Path
from typing import Final, Protocol

from trunkline_adapters.opencode import launch
from trunkline_adapters.opencode.profiles import Profile
from trunkline_agentkit import AgentProcess, Exchange, Exit, LineSplitter, Start
from trunkline_agentkit.recorder import Recorder, Speaker
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

START_DEADLINE: Final = 120.0
"""Seconds that a server may take until it listens."""
_PORTS: Final = 3
"""Ports that are tried: another program may take the one that was free."""
LISTENS: Final = re.compile(r"listening on (https?://\S+)")
_TAKEN: Final = re.compile(r"EADDRINUSE|in use|Failed to start server", re.IGNORECASE)


class Server(Protocol):
    """`outlives`: it runs on without us. `secrets`: what no message may show."""

    outlives: bool
    secrets: tuple[str, ...]

    @property
    def running(self) -> bool:
        """Whether it may be there: of one that is not ours nobody knows."""
        ...

    async def open(self, exchange: Exchange) -> None:
        """Starts it, if it is ours, and says where it is. Raises TrunklineError with what keeps us from it."""
        ...

    def record(self, speaker: Speaker, line: bytes) -> None: ...

    async def close(self, grace: float) -> Exit: ...


class OwnServer:
    """A child that listens on a random port of loopback, with a password that it has in its environment alone."""

    outlives = False

    def __init__(self, start: Start, path: str, profile: Profile, password: str, environment: dict[str, str]) -> None:
        self.secrets = (password,)
        self._start = start
        self._path = path
        self._profile = profile
        self._environment = environment
        self._headers = launch.authorization(profile.user, password)
        self._process: AgentProcess | None = None
        self._printing: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    async def open(self, exchange: Exchange) -> None:
        for left in reversed(range(_PORTS)):
            url = await self._begin(exchange)
            if url is not None:
                exchange.reach(url, headers=self._headers, params={"directory": _real(self._start.cwd)})
                return
            end = await self.close(0)
            if not left or not _TAKEN.search(end.stderr_tail):
                raise end.at_start(self._profile.title)

    async def _begin(self, exchange: Exchange) -> str | None:
        """Starts it; where it listens, or None if it has ended."""
        argv = [self._path, "serve", "--hostname", "127.0.0.1", "--port", str(await asyncio.to_thread(free_port))]
        self._process = await self._start.launch(argv, environment=self._environment)
        listens: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._printing = asyncio.create_task(self._print(self._process, exchange, listens), name="output of a server")
        # Its port takes connections before, and what is sent then is never answered.
        await asyncio.wait({listens, self._printing}, timeout=START_DEADLINE, return_when=asyncio.FIRST_COMPLETED)
        if listens.done():
            return listens.result()
        if self._process.running and not self._printing.done():
            raise TrunklineError(
                "timeout",
                f"{self._profile.title} did not listen within {START_DEADLINE:g} s: is the machine overloaded?",
            )
        return None

    async def _print(self, process: AgentProcess, exchange: Exchange, listens: asyncio.Future[str]) -> None:
        splitter = LineSplitter()
        async for chunk in process.chunks():
            for line in splitter.feed(chunk):
                said = line.decode(errors="replace")
                exchange.say({"stdout": said})
                if (found := LISTENS.search(said)) is not None and not listens.done():
                    listens.set_result(found[1])

    def record(self, speaker: Speaker, line: bytes) -> None:
        if self._process is not None:
            self._process.record(speaker, line)

    async def close(self, grace: float) -> Exit:
        process = self._process
        if process is None:
            return Exit(code=0)
        # The end of its input is nothing to it.
        process.signal_group(signal.SIGTERM)
        end = await process.close(grace)
        if self._printing is not None:
            await asyncio.wait({self._printing})
        return end


class SharedServer:
    """A server that runs by itself, for others too."""

    outlives = True
    running = True

    def __init__(self, start: Start, profile: Profile, url: str, user: str | None, password: str | None) -> None:
        self.secrets = () if password is None else (password,)
        self._start = start
        self._url = url
        self._headers = launch.authorization(user or profile.user, password)
        self._recorder: Recorder | None = None

    async def open(self, exchange: Exchange) -> None:
        if self._start.recorder is not None:
            self._recorder = await self._start.recorder()
        exchange.reach(self._url, headers=self._headers, params={"directory": _real(self._start.cwd)})

    def record(self, speaker: Speaker, line: bytes) -> None:
        if self._recorder is not None:
            self._recorder.line(speaker, line)

    async def close(self, grace: float) -> Exit:
        del grace  # it runs on
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None
        return Exit(code=0)


def new_password() -> str:
    return secrets.token_urlsafe(32)


def _real(directory: str) -> str:
    """Servers compare directories by their names: that of a link would be another project."""
    return str(Path(directory).resolve())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
