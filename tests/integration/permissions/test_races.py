"""Replicas, deaths and rivals: whatever meets whatever, every ask ends once, and every answer has one outcome."""

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.integration.permissions.stage import Stage, rejections

from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.reader import read_session
from trunkline_permissions.app import permissions
from trunkline_permissions.settings import PermissionsSettings
from trunkline_testkit.nats import NatsServer
from trunkline_wire import Event, subjects
from trunkline_wire.asks import AnswerRejected, AskDecided, AskExpired, AskWithdrawn, PermissionRequested

SEEDS = range(50)
KILLS = 12
POLICY = '[[rule]]\nname = "short"\naction = "ask"\ncommand = "short*"\nexpires_after = 0.15\n'


class Replica:
    """A decider on a bus of its own that can be killed at any await and started again."""

    def __init__(self, url: str, settings: PermissionsSettings) -> None:
        self._url = url
        self._settings = settings
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def kill(self) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        async with Bus.open(BusSettings(url=self._url)) as bus, permissions(bus, self._settings):
            await asyncio.Event().wait()


@asynccontextmanager
async def two_replicas(url: str, settings: PermissionsSettings) -> AsyncGenerator[list[Replica]]:
    replicas = [Replica(url, settings) for _ in range(2)]
    for replica in replicas:
        replica.start()
    try:
        yield replicas
    finally:
        for replica in replicas:
            await replica.kill()


async def rivals(stage: Stage, chance: random.Random) -> tuple[list[str], set[str]]:
    """Asks, and everything that can end them, at random moments. The asks' ids, and the ids of the answers."""
    answers: set[str] = set()
    asks: list[str] = []

    async def later(action: str, ask: str) -> None:
        await asyncio.sleep(chance.random() * 0.3)
        if action == "withdraw":
            await stage.withdraw(ask)
            return
        given = await stage.answer(ask, action, chance.choice(["ann", "bob", "eve"]))
        answers.add(given)
        if chance.random() < 0.3:
            await stage.answer(ask, action, id=given)

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            ask = await stage.ask(number, command=chance.choice(["ls", "short"]))
            asks.append(ask)
            for action in chance.choices(["allow", "deny", "withdraw"], k=chance.randrange(4)):
                group.create_task(later(action, ask))
    # whatever chance left open is ended now, so that the test knows when to look
    for ask in asks:
        answers.add(await stage.answer(ask, "deny", "end"))
    return asks, answers


def first_ends(events: list[tuple[int, Event]]) -> dict[str, tuple[int, str]]:
    """By ask: (stream sequence, type) of the first that could end it. The rule, spelled out once more."""
    open_asks: set[str] = set()
    ends: dict[str, tuple[int, str]] = {}
    for sequence, event in events:
        match event.data:
            case PermissionRequested(ask=ask):
                open_asks.add(ask)
            case AskDecided(ask=ask) | AskExpired(ask=ask) | AskWithdrawn(ask=ask) if ask in open_asks:
                ends.setdefault(ask, (sequence, event.type))
            case _:
                pass
    return ends


async def test_fifty_sessions_with_rivals_under_two_dying_replicas(
    bus: Bus, fresh_nats: NatsServer, settings: PermissionsSettings
) -> None:
    settings.policy_path.write_text(POLICY)
    stages = [await Stage.open(bus) for _ in SEEDS]
    async with two_replicas(fresh_nats.url, settings) as replicas:
        playing = asyncio.gather(*(rivals(s, random.Random(seed)) for seed, s in zip(SEEDS, stages, strict=True)))
        chance = random.Random(7)
        kills = 0
        while not playing.done() or kills < KILLS:
            replica = chance.choice(replicas)
            await asyncio.sleep(0.02 + chance.random() * 0.1)
            await replica.kill()
            replica.start()
            kills += 1
        played = await playing
        for stage, (asks, answers) in zip(stages, played, strict=True):
            await stage.ended(*asks, timeout=30)
            await stage.until_said(len(answers), timeout=30)
    for stage, (asks, answers) in zip(stages, played, strict=True):
        events = [(stored.sequence, stored.event()) for stored in await read_session(bus, stage.session)]
        state = await stage.state()
        ends = first_ends(events)
        assert set(ends) == set(asks)
        for ask in asks:
            record = state.asks[ask]
            assert (record.ended_sequence, f"ask.{record.status}") == ends[ask]
        said = [event for _, event in events if event.type.startswith(("ask.decided", "ask.expired", "answer."))]
        decided = Counter(e.data.ask for e in said if isinstance(e.data, AskDecided | AskExpired))
        assert max(decided.values(), default=1) == 1
        outcomes = Counter(
            e.data.answer for e in said if isinstance(e.data, AskDecided | AnswerRejected) and e.data.answer
        )
        assert outcomes == Counter(answers)
        sources = [e.src[1] for e in said if e.src is not None and e.src[0] == subjects.COMMANDS]
        assert sources == sorted(set(sources)), "answers are taken in their order, each once"
    for stage in stages:
        await stage.writer.close()


async def test_a_kill_between_answer_and_decision_loses_nothing(
    bus: Bus, fresh_nats: NatsServer, settings: PermissionsSettings, home: Path
) -> None:
    environment = {"PATH": os.defpath, "TRUNKLINE_HOME": str(home), "TRUNKLINE_NATS_URL": fresh_nats.url}

    async def start() -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "trunkline_permissions", env=environment, stderr=asyncio.subprocess.DEVNULL
        )

    async with await Stage.open(bus) as stage:
        ask, other = await stage.ask(1), await stage.ask(2)
        process = await start()
        await stage.answer(other, "allow")
        await stage.ended(other, timeout=30)
        process.send_signal(signal.SIGSTOP)
        winner = await stage.answer(ask, "allow", "ann")
        loser = await stage.answer(ask, "deny", "bob")
        process.kill()
        await process.wait()
        process = await start()
        try:
            state = await stage.ended(ask, timeout=30)
            events = await stage.until_said(3)
        finally:
            process.terminate()
            await process.wait()
        decision = state.asks[ask].decision
        assert decision is not None
        assert decision.answer == winner
        assert rejections(events) == {loser: "already_decided"}
        assert process.returncode == 0
        assert settings.home == home


async def test_a_server_that_comes_back_finds_the_decider_at_work(
    bus: Bus, fresh_nats: NatsServer, settings: PermissionsSettings
) -> None:
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        ask = await stage.ask(1)
        await stage.answer(ask, "allow")
        await stage.ended(ask)
        await asyncio.to_thread(fresh_nats.restart)
        again = await stage.ask(2)
        while True:
            try:
                await stage.answer(again, "deny")
                break
            except Exception:  # noqa: BLE001 - the commands connection may not be back yet
                await asyncio.sleep(0.05)
        state = await stage.ended(again)
        assert state.asks[again].status == "decided"
