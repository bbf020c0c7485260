"""One instance a state directory, by a lock that the kernel drops with its holder, however that one ends."""

import fcntl
import os
from types import TracebackType
from typing import Self

from trunkline_supervisor import state
from trunkline_supervisor.home import PRIVATE_FILE, Home
from trunkline_wire import TrunklineError


class HomeLock:
    """Held from `__enter__` to `__exit__`. Children don't inherit it.

    Raises `already_running` with the pid and the URL of the holder.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        descriptor = os.open(self._home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise self._taken() from error
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _taken(self) -> TrunklineError:
        root = str(self._home.root)
        holder = state.read(self._home)
        if holder is None or not holder.alive():
            return TrunklineError(
                "already_running", f"another instance is just starting or ending in {root!r}; try again", home=root
            )
        return TrunklineError(
            "already_running",
            f"Trunkline runs in {root!r} already, as process {holder.pid} at {holder.gateway}; "
            "attach to it, stop it with `trunkline daemon stop` or Ctrl-C, or choose another --home",
            home=root,
            pid=holder.pid,
            gateway=holder.gateway,
        )
