"""Trip-wires: a test that leaves tasks, processes or sockets behind, talks to the outside or blocks its loop, fails.

Switched on by importing the fixture into a `conftest.py`:

    from trunkline_testkit.tripwires import trip_wires, trip_wires_of_loop

    __all__ = ["trip_wires", "trip_wires_of_loop"]

What fixtures of a wider scope started before the test is theirs and stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import multiprocessing
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
import pytest_asyncio

from trunkline_testkit.forbidden import forbid
from trunkline_testkit.processes import ProcessInfo, kill_all, tree
from trunkline_testkit.waiting import eventually, eventually_sync

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

GRACE = 5.0
"""Seconds that what a test has ended may take to be gone."""

_SERVANTS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


@pytest.fixture(autouse=True)
def trip_wires(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail the test for what it leaked and for what it must not do: reach the outside, block an event loop."""
    offences = forbid(monkeypatch)
    is_async = inspect.iscoroutinefunction(getattr(request.node, "obj", None))
    if is_async:
        # Requested first, so torn down last, in the test's own loop: after every fixture of the test has cleaned up.
        request.getfixturevalue("trip_wires_of_loop")
        yield
    else:
        before = Belongings()
        yield
        _settle(before)
    if offences:
        pytest.fail(f"the test did what tests must not: {'; '.join(dict.fromkeys(offences))}", pytrace=False)


@pytest_asyncio.fixture
async def trip_wires_of_loop() -> AsyncIterator[None]:
    """The wires of an async test; `trip_wires` asks for it."""
    before = Belongings()
    tasks = asyncio.all_tasks()
    yield

    def clean() -> bool:
        left = [task for task in asyncio.all_tasks() - tasks if task is not asyncio.current_task()]
        if left:
            raise AssertionError(f"asyncio tasks that nobody awaited: {left}")
        before.check()
        return True

    try:
        await eventually(clean, GRACE)
    except AssertionError as error:
        before.clean_up()
        pytest.fail(f"the test left something behind: {error}", pytrace=False)


class Belongings:
    """What this process has at one moment: child processes, threads, open sockets."""

    def __init__(self) -> None:
        self._processes = {info.pid for info in tree()}
        self._sockets = _open_sockets()
        self._threads = set(threading.enumerate())

    def check(self) -> None:
        """Raises AssertionError naming what is here now and was not then."""
        if processes := self._new_processes():
            raise AssertionError(f"child processes: {[(info.pid, info.command[:200]) for info in processes]}")
        if sockets := _held(_open_sockets() - self._sockets):
            raise AssertionError(f"open sockets: {sockets}")
        threads = [
            thread
            for thread in set(threading.enumerate()) - self._threads
            # The loop's own pool of workers ends with the loop.
            if thread.is_alive() and not thread.daemon and not thread.name.startswith("asyncio_")
        ]
        if threads:
            raise AssertionError(f"threads: {threads}")

    def clean_up(self) -> None:
        """Kill the new child processes, so that they do not disturb other tests."""
        kill_all(self._new_processes())

    def _new_processes(self) -> list[ProcessInfo]:
        return [
            info
            for info in tree()
            if info.pid not in self._processes and not any(servant in info.command for servant in _SERVANTS)
        ]


def _settle(before: Belongings) -> None:
    def clean() -> bool:
        multiprocessing.active_children()  # reaps those that have ended
        before.check()
        return True

    try:
        eventually_sync(clean, GRACE)
    except AssertionError as error:
        before.clean_up()
        pytest.fail(f"the test left something behind: {error}", pytrace=False)


def _open_sockets() -> set[str]:
    found: set[str] = set()
    try:
        descriptors = list(Path("/proc/self/fd").iterdir())
    except OSError:
        return found
    for descriptor in descriptors:
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue
        if target.startswith("socket:"):
            found.add(target)
    return found


def _held(sockets: set[str]) -> list[str]:
    """Those of `sockets` that count as left behind, in words."""
    if not sockets:
        return []
    described: list[str] = []
    known: set[str] = set()
    for connection in psutil.Process().net_connections(kind="all"):
        with contextlib.suppress(OSError):
            name = str(Path(f"/proc/self/fd/{connection.fd}").readlink())
            if name in sockets:
                known.add(name)
                # nats-py drops the transport of a failed reconnect unclosed: the peer has gone, and the fd goes with
                # the next collection. That is not the test's doing.
                if connection.status != psutil.CONN_CLOSE_WAIT:
                    described.append(
                        f"{_address(connection.laddr)} to {_address(connection.raddr)}, {connection.status}"
                    )
    return described + sorted(sockets - known)


def _address(address: tuple[str, int] | tuple[()] | str) -> str:
    return ":".join(map(str, address)) if isinstance(address, tuple) and address else repr(address or "nobody")
