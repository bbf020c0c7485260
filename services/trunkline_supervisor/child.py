"""One service kept running: started, watched, and started again when it dies."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from trunkline_bus.tasks import end
from trunkline_supervisor import processes
from trunkline_supervisor.backoff import Restarts

log = logging.getLogger(__name__)

Probe = Callable[[], Awaitable[bool]]
"""Whether the service answers as ready; asked until it does, every `PROBE_INTERVAL` seconds and then more rarely."""

PROBE_INTERVAL = 0.05
PROBE_RARELY = 0.3
PROBE_GROWTH = 1.1


class ChildSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How to run one service. `environment` is all that it gets."""

    name: str
    argv: list[str]
    environment: Mapping[str, str]
    log: Path
    probe: Probe


class Child:
    """A service's process over all of its lives.

    `run` keeps it alive until `retire`; what runs then is the caller's to end (`processes.stop`), after which `run`
    returns. One that dies again and again is given up. `ready` is set while the present process answers. `changed` is called
    after each start, each death and each readiness. `starting` is held while a process is being started.
    """

    def __init__(self, spec: ChildSpec, changed: Callable[["Child"], None]) -> None:
        self.spec = spec
        self.ready = asyncio.Event()
        self.restarts = Restarts()
        self.starts = 0
        self.last_exit: int | None = None
        self._changed = changed
        self._process: asyncio.subprocess.Process | None = None
        self._retired = asyncio.Event()
        self.starting = asyncio.Lock()

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def process(self) -> asyncio.subprocess.Process | None:
        """The running process; None between two lives."""
        return self._process if self._process is not None and self._process.returncode is None else None

    @property
    def process_id(self) -> int | None:
        """The pid of the present or last process."""
        return self._process.pid if self._process is not None else None

    async def run(self) -> None:
        """Start, wait for the end, wait the back-off, start again."""
        while not self._retired.is_set():
            begun = time.monotonic()
            await self._live()
            if self._retired.is_set():
                return
            self.restarts = self.restarts.died(time.monotonic() - begun)
            log.warning(
                "child_died",
                extra={"child": self.name, "exit": self.last_exit, "deaths": self.restarts.deaths},
            )
            self._changed(self)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if self.restarts.hopeless else self.restarts.delay):
                    await self._retired.wait()

    async def retire(self) -> None:
        """No start happens after this returns."""
        self._retired.set()
        async with self.starting:
            return

    async def _live(self) -> None:
        async with self.starting:
            if self._retired.is_set():
                return
            try:
                self._process = await processes.start(self.spec.argv, self.spec.environment, self.spec.log)
            except OSError as error:
                log.exception("child_start_failed", extra={"child": self.name, "error": str(error)})
                return
        process = self._process
        self.starts += 1
        self._changed(self)
        becoming = asyncio.create_task(self._become_ready())
        try:
            self.last_exit = await process.wait()
        finally:
            self.ready.clear()
            await end(becoming)
            # What the service started in its group must not meet its successor.
            processes.kill_group(process.pid)

    async def _become_ready(self) -> None:
        pause = PROBE_INTERVAL
        while not await self.spec.probe():  # another process tells nobody
            await asyncio.sleep(pause)
            pause = min(pause * PROBE_GROWTH, PROBE_RARELY)
        self.ready.set()
        self._changed(self)

    def log_tail(self, lines: int = 12) -> str:
        """The end of what the service wrote, for people who wonder why it died."""
        try:
            with self.spec.log.open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - 8192))
                return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""
