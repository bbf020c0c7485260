"""Scenario 2: the path is cut; a phone allows and repeats itself, a laptop denies 50 ms later; the path heals."""

import asyncio
import contextlib
import json
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from tests.chaos.cursor import cuts
from tests.chaos.soak.ground import PYTHONPATH
from tests.chaos.soak.line import DROPPED
from tests.chaos.soak.load import stretch

from trunkline_testkit import eventually
from trunkline_testkit.chaos.stage import Part, Service, Stage
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_testkit.product import Client, Frame
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_command_id

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]

Side = Literal["adapters", "gateway", "permissions", "namespace", "leader"]
SHORT_S: Final = 3.0
LONG_S: Final = 20.0
LATER_S: Final = 0.05
AGAIN: Final = frozenset({"log_unavailable", "timeout", "not_ready", "internal"})
WITHIN_S: Final = 45.0


class Person:
    """Somebody with a gateway of their own, who answers an ask with one id until there is an outcome, and once more."""

    def __init__(self, gateway: Part, session: str) -> None:
        self.command = new_command_id()
        self.outcomes: list[str] = []
        self.client: Client
        self._gateway = gateway
        self._session = session

    async def watch(self) -> Frame:
        """The ask, as soon as it is seen."""
        self.client = await self._gateway.client()
        await self.client.subscribe(self._session, start="start")
        return await self.client.wait("permission.requested", within=WITHIN_S * stretch())

    async def answer(self, ask: str, behaviour: str) -> None:
        """Until the outcome, asked anew each second."""
        within = WITHIN_S * stretch()
        self.outcomes.append(await eventually(lambda: self._try(ask, behaviour), within, interval=0.1))

    async def _try(self, ask: str, behaviour: str) -> str | None:
        try:
            answered: Frame = await self.client.call(
                "ask.answer", within=1, id=self.command, ask=ask, session=self._session, behaviour=behaviour
            )
        except TrunklineError as error:
            if error.code in AGAIN:
                return None
            return error.code
        except DROPPED:
            return None
        return answered["outcome"]

    def decisions(self) -> list[Frame]:
        return self.client.events("ask.decided")


def heard_by_agent(journal: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return [line for line in lines if line["kind"] == "answer"]


async def cut_for(stage: Stage, side: Side, seconds: float) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(stage)
        parts: dict[str, Part] = {}
        cut: cuts.Cut | None = None
        if side == "namespace":
            cut = await stack.enter_async_context(cuts.namespace(stage.nats.url))
        elif side != "leader":
            cut = await stack.enter_async_context(cuts.line(stage.nats.url))
        cut_off: Service | None = "adapters" if side == "namespace" else None if side == "leader" else side
        wanted: tuple[tuple[str, Service], ...] = (
            ("adapters", "adapters"),
            ("permissions", "permissions"),
            ("gateway", "gateway"),
            ("gateway2", "gateway"),
        )
        for name, service in wanted:
            away = cut if name == cut_off else None
            parts[name] = await stage.start(
                service, name=name, wait=False, via=away and away.via, within=away.within if away else ()
            )
        for name, part in parts.items():
            if not (side == "namespace" and name == cut_off):  # its health is in there with it
                await part.ready()

        journal = stage.home / "journal.jsonl"
        async with await parts["gateway2"].client() as maker:
            options = {"environment": {"CHAOS_JOURNAL": str(journal), "PYTHONPATH": PYTHONPATH}}
            created = await maker.call(
                "session.create",
                within=60,
                adapter="chaos",
                cwd=str(stage.home),
                options=options | {"prompt": "ask deploy"},
            )
        phone, laptop = (Person(parts[name], created["session"]) for name in ("gateway", "gateway2"))
        ask = (await phone.watch())["data"]["ask"]
        assert (await laptop.watch())["data"]["ask"] == ask

        if cut is None:
            assert isinstance(stage.nats, NatsCluster)
            cut = await asyncio.to_thread(cuts.frozen_leader, stage.nats)
        await asyncio.to_thread(cut.down)
        begun = time.monotonic()
        try:
            async with asyncio.TaskGroup() as both:
                allowing = both.create_task(phone.answer(ask, "allow"))
                await asyncio.sleep(LATER_S)
                denying = both.create_task(laptop.answer(ask, "deny"))
                await asyncio.wait((allowing, denying), timeout=seconds)
                if side in ("adapters", "namespace"):
                    assert allowing.done(), "a decision waited for an agent that is cut off"
                    assert heard_by_agent(journal) == []
                elif side == "permissions":
                    assert not allowing.done()
                    assert not denying.done()
                await asyncio.sleep(max(0, begun + seconds - time.monotonic()))
                await asyncio.to_thread(cut.up)
        finally:
            with contextlib.suppress(Exception):
                await asyncio.to_thread(cut.up)
        await phone.answer(ask, "allow")
        await laptop.answer(ask, "deny")

        for person in (phone, laptop):
            await person.client.wait("turn.completed", within=WITHIN_S * stretch())
        (decided,) = phone.decisions()
        assert laptop.decisions() == [decided]
        phone_won = decided["data"]["answer"] == phone.command
        assert phone_won or decided["data"]["answer"] == laptop.command
        if side != "leader":
            # Who was not cut off, or came first, is who decided.
            assert phone_won == (side != "gateway")
        won, lost = (phone, laptop) if phone_won else (laptop, phone)
        assert won.outcomes == ["decided", "decided"]
        assert lost.outcomes == ["already_decided", "already_decided"]
        await eventually(lambda: heard_by_agent(journal), 10)
        assert [heard["allow"] for heard in heard_by_agent(journal)] == [phone_won]
        for person in (phone, laptop):
            await person.client.close()


def on(nats: NatsServer | NatsCluster, home: Path) -> Stage:
    return Stage(nats, home, environment={"PYTHONPATH": PYTHONPATH})


@pytest.mark.parametrize("side", ["adapters", "gateway", "permissions"])
async def test_one_decision_reaches_the_agent_whichever_line_is_cut(side: Side, chaos_home: Path) -> None:
    await cut_for(on(NatsServer(sync_interval="always"), chaos_home), side, SHORT_S)


async def test_one_decision_reaches_the_agent_behind_an_interface_that_is_down(chaos_home: Path) -> None:
    if not await asyncio.to_thread(cuts.namespaces_allowed):
        pytest.skip("needs root, `ip`, and the right to make network namespaces")
    await cut_for(on(NatsServer(sync_interval="always"), chaos_home), "namespace", SHORT_S)


async def test_one_decision_reaches_the_agent_while_the_leader_is_cut_off(chaos_home: Path) -> None:
    await cut_for(on(NatsCluster(sync_interval="always"), chaos_home), "leader", SHORT_S)


@pytest.mark.long
@pytest.mark.parametrize("side", ["adapters", "gateway", "permissions", "namespace", "leader"])
async def test_one_decision_after_twenty_seconds(side: Side, chaos_home: Path) -> None:
    if side == "namespace" and not await asyncio.to_thread(cuts.namespaces_allowed):
        pytest.skip("needs root, `ip`, and the right to make network namespaces")
    nats = NatsCluster(sync_interval="always") if side == "leader" else NatsServer(sync_interval="always")
    await cut_for(on(nats, chaos_home), side, LONG_S)
