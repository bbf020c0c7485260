"""Keeps the machine from sleeping while a turn runs on this host: a child that inhibits it, as long as it lives."""

import asyncio
import logging
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_supervisor import processes
from trunkline_wire import subjects

log = logging.getLogger(__name__)

INHIBITORS: Final = {
    "linux": (
        "systemd-inhibit",
        "--what=idle:sleep",
        "--who=Trunkline",
        "--why=agents are at work",
        "--mode=block",
        "sleep",
        "infinity",
    ),
    "darwin": ("caffeinate", "-i"),
}
"""By platform: a program that keeps the machine awake until it is ended."""


class _Worker(msgspec.Struct, frozen=True):
    host: str
    busy: int = 0


class Awake:
    """`tell` takes a line for people. `argv` is what inhibits sleep here; empty where nothing can."""

    def __init__(
        self, host: str, log_file: Path, tell: Callable[[str], None], argv: Sequence[str] | None = None
    ) -> None:
        self._host = host
        self._log_file = log_file
        self._tell = tell
        self._argv = INHIBITORS.get(sys.platform, ()) if argv is None else argv
        self._process: asyncio.subprocess.Process | None = None
        self._busy: dict[str, int] = {}

    @property
    def pids(self) -> list[int]:
        """Of what it runs now."""
        return [] if self._process is None or self._process.returncode is not None else [self._process.pid]

    async def run(self, bus: Bus) -> None:
        """Follows the workers of this host until it is cancelled; then the machine may sleep. Raises TrunklineError."""
        if not self._argv or shutil.which(self._argv[0]) is None:
            self._tell(
                f"the machine can't be kept awake: there is no {self._argv[0] if self._argv else 'program'} for it here"
            )
            return
        self._busy.clear()
        restarts = 0
        try:
            async with kv.watch(bus, subjects.KV_WORKERS) as reader:
                async for batch in reader.batches():
                    if reader.restarts != restarts:
                        restarts = reader.restarts
                        self._busy.clear()
                    for stored in batch:
                        entry = kv.entry(stored)
                        self._busy[entry.key] = 0 if entry.value is None else self._turns(entry.value)
                    await self._set(any(self._busy.values()))
        finally:
            await self._set(False)

    def _turns(self, value: bytes) -> int:
        try:
            worker = msgspec.json.decode(value, type=_Worker)
        except msgspec.MsgspecError:
            return 0
        return worker.busy if worker.host == self._host else 0

    async def _set(self, awake: bool) -> None:
        if awake and not self.pids:
            environment = {"PATH": os.environ.get("PATH", os.defpath)}
            try:
                self._process = await processes.start(self._argv, environment, self._log_file)
            except OSError as error:
                log.warning("not_kept_awake", extra={"error": str(error)})
                return
            log.info("kept_awake", extra={"pid": self._process.pid})
        elif not awake and self._process is not None:
            await processes.stop([self._process], 1.0)
            self._process = None
            log.info("may_sleep")
