"""A real `opencode serve`, or `kilo serve`, that runs by itself, behind a relay that can stop what passes, for tests."""

import asyncio
import os
import signal
from pathlib import Path

from trunkline_testkit.agents import agent_path
from trunkline_testkit.ports import free_port

PASSWORD = "a-password-of-a-test"
_LISTENS = 240.0


class Server:
    """`kill` and `start` are of the same port and data. `cut` holds new connections and drops those that are open."""

    def __init__(self, environment: dict[str, str], project: Path, agent: str = "opencode") -> None:
        own = {name: value for name, value in environment.items() if not name.startswith("TRUNKLINE_")}
        self._environment = own | {f"{agent.upper()}_SERVER_PASSWORD": PASSWORD}
        self._agent = agent
        self._project = project
        self._port = free_port()
        self._relay: asyncio.Server | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._lines: set[asyncio.Task[None]] = set()
        self._draining: asyncio.Task[bytes] | None = None
        self.process: asyncio.subprocess.Process | None = None
        self.accepted = 0

    @property
    def url(self) -> str:
        """Where the relay listens."""
        assert self._relay is not None
        return f"http://127.0.0.1:{self._relay.sockets[0].getsockname()[1]}"

    @property
    def direct(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        if self._relay is None:
            self._relay = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.process = await asyncio.create_subprocess_exec(
            str(agent_path(self._agent)),
            "serve",
            "--hostname",
            "127.0.0.1",
            "--port",
            str(self._port),
            env=self._environment,
            cwd=self._project,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        async with asyncio.timeout(_LISTENS):
            while b"listening" not in (line := await self.process.stdout.readline()):
                assert line, "the server ended before it listened"
        self._draining = asyncio.create_task(self.process.stdout.read())

    async def kill(self) -> None:
        """SIGKILL to the server and all that it has started."""
        if self.process is not None and self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
        if self._draining is not None:
            await self._draining

    def cut(self) -> None:
        self._open.clear()
        for writer in list(self._writers):
            writer.transport.abort()

    def heal(self) -> None:
        self._open.set()

    async def stop(self) -> None:
        self.cut()
        for line in list(self._lines):
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)
        if self._relay is not None:
            self._relay.close()
        await self.kill()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        self._writers.add(writer)
        try:
            await self._open.wait()
            self.accepted += 1
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
            self._writers.add(back)
            try:
                await asyncio.gather(_copy(reader, back), _copy(there, writer))
            finally:
                self._writers.discard(back)
                back.transport.abort()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            self._lines.discard(task)
            writer.transport.abort()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(65536):
            target.write(chunk)
            await target.drain()
    except ConnectionError:
        pass
    finally:
        target.close()
