"""The whole product as a user starts it, for tests: `trunkline up` in a home of its own, and clients of its gateway.

The client speaks the documented protocol over aiohttp and shares no code with the product's own clients.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Self

import aiohttp
import psutil

from trunkline_bus.tasks import end
from trunkline_testkit.forbidden import TRUST_NOBODY
from trunkline_wire import TrunklineError

Frame = dict[str, Any]


class Client:
    """One WebSocket connection to a gateway. Every frame received that is no answer is kept in `frames`, in order, or
    given to `on_frame`.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        ws: aiohttp.ClientWebSocketResponse,
        on_frame: Callable[[Frame], None] | None = None,
    ) -> None:
        self._on_frame = on_frame
        self._session = session
        self._ws = ws
        self._calls: dict[str, asyncio.Future[Frame]] = {}
        self._arrived = asyncio.Condition()
        self._number = 0
        self.frames: list[Frame] = []
        self.closed = False
        self._pump = asyncio.create_task(self._receive())

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        socket: str | None = None,
        headers: dict[str, str] | None = None,
        on_frame: Callable[[Frame], None] | None = None,
    ) -> Self:
        """Connects and says hello. `url` is the gateway's http URL; with `socket` the unix socket is used instead."""
        connector = aiohttp.UnixConnector(socket) if socket else aiohttp.TCPConnector()
        session = aiohttp.ClientSession(connector=connector)
        try:
            ws = await session.ws_connect(f"{url}/ws", headers=headers, max_msg_size=0)
        except BaseException:
            await session.close()
            raise
        client = cls(session, ws, on_frame)
        try:
            await client.call("hello", protocol=1, client="test")
        except BaseException:
            await client.close()
            raise
        return client

    async def _receive(self) -> None:
        try:
            async for message in self._ws:
                if message.type != aiohttp.WSMsgType.TEXT:
                    continue
                await self._take(json.loads(message.data))
        finally:
            self.closed = True
            for waiting in self._calls.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionError("the gateway closed the connection"))
            async with self._arrived:
                self._arrived.notify_all()

    async def _take(self, value: Any) -> None:
        for frame in value if isinstance(value, list) else [value]:
            if frame["type"] == "res":
                waiting = self._calls.pop(frame["id"], None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(frame)
            elif self._on_frame is not None:
                self._on_frame(frame)
            else:
                async with self._arrived:
                    self.frames.append(frame)
                    self._arrived.notify_all()

    async def send_raw(self, text: str) -> None:
        await self._ws.send_str(text)

    async def call(self, method: str, /, *, within: float = 30, **params: Any) -> Any:
        """The payload of a method's answer; TrunklineError with the answer's code otherwise."""
        return await self._request(method, params, within)

    async def _request(self, method: str, params: dict[str, Any], within: float) -> Any:
        self._number += 1
        number = str(self._number)
        waiting: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._calls[number] = waiting
        try:
            await self._ws.send_json({"type": "req", "id": number, "method": method, "params": params})
            # asyncio.wait_for of Python 3.11 loses a cancellation that comes with the answer: its task would run on for ever.
            async with asyncio.timeout(within):
                frame = await waiting
        finally:
            self._calls.pop(number, None)
        if frame["ok"]:
            return frame["payload"]
        error = frame["error"]
        raise TrunklineError(error["code"], error["message"], **error.get("details", {}))

    async def subscribe(self, session: str, *, start: str | None = None, cursor: str | None = None) -> Any:
        """Every event of a session: from `start` (`start`, `now`, `snapshot`), or all above a cursor."""
        where = {"from": start} if start else {"cursor": cursor} if cursor else {}
        return await self._request("subscribe", {"session": session, "patterns": ["*"], **where}, 30)

    def events(self, type_: str | None = None, session: str | None = None) -> list[Frame]:
        """The envelopes received so far, of one type or all, of one session or all."""
        return [
            f["payload"]
            for f in self.frames
            if f["type"] == "event"
            and (type_ is None or f["event"] == type_)
            and (session is None or f["payload"].get("session") == session)
        ]

    async def wait(
        self,
        type_: str,
        check: Callable[[Frame], bool] = lambda _: True,
        *,
        session: str | None = None,
        within: float = 30,
        count: int = 1,
    ) -> Frame:
        """The `count`th envelope of a type that passes `check`, received already or to come."""

        def found() -> list[Frame]:
            return [e for e in self.events(type_, session) if check(e)]

        try:
            async with asyncio.timeout(within), self._arrived:
                await self._arrived.wait_for(lambda: len(found()) >= count or self.closed)
        except TimeoutError:
            seen = [f.get("event") for f in self.frames][-40:]
            raise AssertionError(f"no {type_} number {count} within {within} s; the last events were {seen}") from None
        matching = found()
        if len(matching) < count:
            raise AssertionError(f"the connection closed before {type_} number {count}")
        return matching[count - 1]

    @property
    def cursor(self) -> str | None:
        """The cursor of the last frame that carried one."""
        return next((f["cursor"] for f in reversed(self.frames) if f.get("cursor")), None)

    async def ended(self) -> None:
        """Returns once the connection has ended, whoever ended it."""
        await asyncio.wait({self._pump})

    def mute(self) -> None:
        """Reads nothing any more, so that not even pings are answered; the connection stays."""
        self._pump.cancel()

    def drop(self) -> None:
        """Ends the connection without a word to the gateway."""
        line = self._ws.get_extra_info("socket")
        if line is not None and line.fileno() >= 0:
            # Loops lend their sockets without this method.
            with socket.socket(fileno=os.dup(line.fileno())) as same, contextlib.suppress(OSError):
                same.shutdown(socket.SHUT_RDWR)

    async def close(self) -> None:
        await self._ws.close()
        await self._session.close()
        await end(self._pump)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Product:
    """`trunkline up` as a child, in its own home and with an explicit environment.

    `within` is a command that its own is given to (`ip netns exec NAME`).
    """

    def __init__(self, home: Path, environment: dict[str, str] | None = None, *, within: Sequence[str] = ()) -> None:
        self._within = tuple(within)
        self.home = home
        self.trunkline_home = home / ".trunkline"
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TRUNKLINE_HOME": str(self.trunkline_home),
            **TRUST_NOBODY,
            **{k: v for k, v in os.environ.items() if k.startswith(("COVERAGE_", "COV_CORE_"))},
            **(environment or {}),
        }
        self.process: asyncio.subprocess.Process | None = None
        self._log = home / "up.log"

    async def start(self, *arguments: str, within: float = 60) -> None:
        """Starts it and waits until it says that it is ready and its gateway answers."""
        self.home.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self._within,
                sys.executable,
                "-m",
                "trunkline_cli",
                "up",
                "--port",
                "0",
                *arguments,
                env=self.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + within
        while not await self._answers():
            if self.process.returncode is not None or time.monotonic() > deadline:
                raise AssertionError(f"trunkline up did not get ready; its output:\n{self.output()[-4000:]}")
            await asyncio.sleep(0.05)

    async def _answers(self) -> bool:
        if "Ready at" not in self.output():
            return False
        try:
            state = self.state
            if self.process is None or state["pid"] != self.process.pid:
                return False  # what a killed one left
            # Elsewhere its port is another machine's; its socket is not.
            connector = aiohttp.UnixConnector(state["socket"]) if self._within else aiohttp.TCPConnector()
            url = "http://localhost" if self._within else state["gateway"]
            async with aiohttp.ClientSession(connector=connector) as http, http.get(f"{url}/health") as answer:
                return answer.status == 200
        except (OSError, ValueError, KeyError, aiohttp.ClientError):
            return False

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def state(self) -> dict[str, Any]:
        return json.loads((self.trunkline_home / "state.json").read_text())

    @property
    def token(self) -> str:
        return (self.trunkline_home / "token").read_text().strip()

    def processes(self) -> list[psutil.Process]:
        """Everything below the supervisor, and the supervisor."""
        assert self.process is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            top = psutil.Process(self.process.pid)
            return [top, *top.children(recursive=True)]
        return []

    def find(self, service: str) -> psutil.Process | None:
        """The running process of a service: `nats-server`, `gateway`, `projector`, `permissions`, `teams`, `adapters`."""
        wanted = "nats-server" if service == "nats-server" else f"trunkline_{service}"
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                line = process.cmdline()
                if line and (Path(line[0]).name == wanted or wanted in line):
                    return process
        return None

    def kill(self, service: str) -> int:
        """`kill -9` of one part; its pid."""
        process = self.find(service)
        assert process is not None, f"{service} does not run"
        process.kill()
        return process.pid

    async def restarted(self, service: str, old: int, within: float = 20) -> None:
        """Waits until a killed part runs again."""
        deadline = time.monotonic() + within
        while (process := self.find(service)) is None or process.pid == old:
            if time.monotonic() > deadline:
                raise AssertionError(f"{service} was not restarted within {within} s:\n{self.output()[-4000:]}")
            await asyncio.sleep(0.05)

    async def client(self, *, tcp: bool = False) -> Client:
        """A client over the unix socket, or over TCP with the owner's token."""
        if tcp:
            return await Client.connect(self.state["gateway"], headers={"Authorization": f"Bearer {self.token}"})
        return await Client.connect("http://localhost", socket=self.state["socket"])

    async def client_when_up(self, *, tcp: bool = False, within: float = 20) -> Client:
        """A client, as soon as the gateway answers again."""
        deadline = time.monotonic() + within
        while True:
            try:
                return await self.client(tcp=tcp)
            except (OSError, ConnectionError, aiohttp.ClientError, ValueError):
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.1)

    async def cli(self, *arguments: str, stdin: bytes | None = None, within: float = 60) -> tuple[int, str, str]:
        """Runs the `trunkline` command: exit code, output, error output."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "trunkline_cli",
            *arguments,
            env=self.environment,
            stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(stdin), within)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise AssertionError(f"trunkline {' '.join(arguments)} did not end within {within} s") from None
        return process.returncode or 0, out.decode(), err.decode()

    async def stop(self, within: float = 30, *, spare: Collection[int] = ()) -> int:
        """Ctrl-C; returns the exit code and fails if a process is left, but those of `spare`."""
        assert self.process is not None
        before = [process for process in self.processes() if process.pid not in spare]
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)
        code = await asyncio.wait_for(self.process.wait(), within)
        _, left = psutil.wait_procs(before, timeout=5)
        for process in left:
            process.kill()
        assert not left, f"Ctrl-C left processes behind: {[p.info if hasattr(p, 'info') else p for p in left]}"
        return code


@contextlib.asynccontextmanager
async def running(
    home: Path, environment: dict[str, str] | None = None, *arguments: str, within: Sequence[str] = ()
) -> AsyncGenerator[Product]:
    """The product for the length of a block; stopped like a user would, and nothing may be left."""
    product = Product(home, environment, within=within)
    await product.start(*arguments)
    try:
        yield product
    finally:
        await product.stop()
