"""Sessions whose agents start what they like, and the process table as their judge."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import psutil
import pytest_asyncio
from tests.integration.agentkit.hand import Hand

from trunkline_agentkit.place import Place, Record
from trunkline_testkit import eventually
from trunkline_testkit.chaos.stage import Stage
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.processes import ProcessInfo, kill_all, marked, snapshot
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionOptions

ROOT: Final = Path(__file__).parents[3]
ENVIRONMENT: Final = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests/chaos/orphans/installed'}"}

TAME: Final = ("child", "deaf", "alone", "daemon", "stopped", "wrapper", "avenger")
HIDING: Final = ("unmarked", "bare", "hydra")
ALL: Final = (*TAME, *HIDING)


def belonging(session: str) -> list[ProcessInfo]:
    """Every process that bears a session's id in its arguments or its environment."""
    found = {info.pid: info for info in marked("TRUNKLINE_SESSION", session)}
    for process in psutil.process_iter():
        try:
            if session in process.cmdline() and (info := snapshot(process.pid)) is not None:
                found[info.pid] = info
        except psutil.Error:
            continue
    return list(found.values())


class Zoo:
    """Makes sessions of the unruly agent, and ends whatever the product has not."""

    def __init__(self, hand: Hand, home: Path) -> None:
        self.hand = hand
        self.home = home
        self.sessions: list[str] = []

    async def begin(self, kinds: Sequence[str] = ALL, *, then: str = "slow") -> str:
        """A session in a turn whose agent has started a creature of each kind, and goes on with `then`."""
        session = new_session_id()
        self.sessions.append(session)
        creatures = self.home / f"zoo-{session}"
        creatures.mkdir()
        options = SessionOptions(prompt=f"zoo {' '.join(kinds)}; {then}", environment={"UNRULY_DIR": str(creatures)})
        await self.hand.spawn("unruly", session=session, cwd=str(self.home), options=options)
        await self.hand.has(session, "message.assistant", within=60)
        assert len(belonging(session)) >= len(kinds)
        return session

    def record(self, session: str) -> Record:
        record = Place(self.home, session).record
        assert record is not None
        return record

    def agent(self, session: str) -> int:
        registration = self.record(session).agent
        assert registration is not None
        return registration.pid

    def holder(self, session: str) -> int:
        registration = self.record(session).agent
        assert registration is not None
        assert registration.holder is not None
        return registration.holder[0]

    async def empty(self, session: str, within: float = 10.0, of: str = "") -> None:
        """Waits until nothing of the session runs that has `of` in its command. Raises AssertionError naming what is left."""

        def none_left() -> bool:
            left = [info for info in belonging(session) if of in info.command]
            names = "; ".join(f"{info.pid} (parent {info.ppid}) {info.command[-120:]}" for info in left)
            assert not left, f"left of {session}: {names}"
            return True

        await eventually(none_left, within, interval=0.1)

    def clear(self) -> None:
        for session in self.sessions:
            while left := belonging(session):
                kill_all(left)


@pytest_asyncio.fixture
async def host_stage(chaos_home: Path) -> AsyncIterator[Stage]:
    """A stage on which the unruly agent is installed."""
    async with Stage(NatsServer(sync_interval="always"), chaos_home, environment=ENVIRONMENT) as stage:
        yield stage


@pytest_asyncio.fixture
async def zoo(host_stage: Stage) -> AsyncIterator[Zoo]:
    async with host_stage.bus() as bus:
        zoo = Zoo(Hand(bus, host_stage.home), host_stage.home)
        try:
            yield zoo
        finally:
            await asyncio.to_thread(zoo.clear)


def kill_pids(*pids: int) -> None:
    """SIGKILL for all of them, in one go; one may have died with another by then."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
