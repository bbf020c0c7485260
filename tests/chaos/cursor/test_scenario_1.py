"""Scenario 1: a client saw event 4 and drops; 20,000 deltas and 300 facts later the gateway is another one; it resumes."""

import asyncio
from typing import Any, Final

import pytest
from tests.chaos.soak.load import stretch
from tests.integration.gateway.rig import Rig, ask, begin_turn, say

from trunkline_bus.writer import SessionWriter
from trunkline_testkit.model_client import ModelClient
from trunkline_testkit.product import Client, Frame
from trunkline_wire import encode, make_event, subjects
from trunkline_wire.codec import timestamp
from trunkline_wire.turn import DeltaKind, MessageDelta, MessageSystem

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(180)]

FINISHED: Final = 60
PIECES: Final = 200
OPEN: Final = "itm_" + "f" * 32
OPEN_PIECES: Final = 5_000
THOUGHT: Final = "itm_" + "e" * 32
THOUGHT_PIECES: Final = 3_000
PIECE: Final = "pièce 😀 "
FACTS: Final = 300
"""In all 60 times 200, 5,000 and 3,000: 20,000 deltas."""


class Agent:
    """Writes facts as a worker does, and each delta as a message of its own, not merged with others."""

    def __init__(self, rig: Rig, writer: SessionWriter, turn: str) -> None:
        self._rig = rig
        self._writer = writer
        self.turn = turn

    async def stream(self, item: str, pieces: int, kind: DeltaKind = "text", at: int = 0) -> str:
        """So many pieces of a block, from the offset `at`; their text."""
        await self._writer.flush()
        for number in range(pieces):
            data = MessageDelta(block=0, kind=kind, at=at + number * len(PIECE), text=PIECE, after=self._writer.seq)
            event = make_event(
                data,
                session=self._writer.session,
                time=timestamp(),
                epoch=self._writer.epoch,
                turn=self.turn,
                item=item,
            )
            headers = {"Trunk-Id": event.id, "Trunk-Type": event.type}
            self._rig.bus.mux.send(subjects.delta(self._writer.session), encode(event), headers)
            if number % 100 == 0:
                await asyncio.sleep(0)
        return PIECE * pieces

    async def work(self) -> int:
        """Sixty finished blocks, other facts between them, an open ask, two open blocks; the last fact's number."""
        begun = self._writer.seq
        for number in range(FINISHED):
            item = f"itm_{number:032x}"
            say(self._writer, item, await self.stream(item, PIECES), turn=self.turn)
            for more in range(3):
                self._writer.append(MessageSystem(text=f"{number} {more}"), turn=self.turn)
        for number in range(begun + FACTS - self._writer.seq - 1):
            self._writer.append(MessageSystem(text=f"{number}"), turn=self.turn)
        ask(self._writer, "toolu_1", self.turn)
        await self._writer.flush()
        await self.stream(OPEN, OPEN_PIECES)
        await self.stream(THOUGHT, THOUGHT_PIECES, "thinking")
        assert self._writer.seq == begun + FACTS
        return self._writer.seq


class Modelled:
    """A client whose frames go into a model, over all of its connections."""

    def __init__(self) -> None:
        self.model = ModelClient()
        self.client: Client
        self._early: list[Frame] | None = None

    async def come(self, rig: Rig, **params: Any) -> None:
        self._early = []
        self.client = await Client.connect("http://localhost", socket=str(rig.running.socket), on_frame=self._take)
        opened = await self.client.call("subscribe", **params)
        self.model.feed({"type": "opened", "payload": opened})
        early, self._early = self._early, None
        for frame in early:
            self.model.feed(frame)

    def _take(self, frame: Frame) -> None:
        if self._early is not None:
            self._early.append(frame)
        else:
            self.model.feed(frame)

    async def leave(self) -> None:
        self.client.drop()
        await self.client.close()

    async def until(self, check: Any, what: str) -> None:
        for _ in range(int(1500 * stretch())):
            if check():
                return
            await asyncio.sleep(0.02)
        open_ = {key: (block.at, len(block.text)) for key, block in self.model.blocks.items()}
        raise AssertionError(
            f"{what} did not come: {len(self.model.facts)} facts, open {open_}, gaps {self.model.gaps}"
        )

    def seqs(self) -> list[int]:
        return [fact["seq"] for fact in self.model.facts.values() if "seq" in fact]

    def known(self, session: str, item: str) -> tuple[int, str]:
        block = self.model.blocks.get((session, item, 0))
        return (-1, "") if block is None else (block.at, block.text)


@pytest.mark.parametrize("restart", ["while away", pytest.param("never", marks=pytest.mark.long)])
async def test_who_missed_twenty_thousand_deltas_gets_the_facts_and_the_open_text(rig: Rig, restart: str) -> None:
    async with await rig.session() as writer:
        seen, late = Modelled(), Modelled()
        await seen.come(rig, session=writer.session, **{"from": "start"})
        agent = Agent(rig, writer, begin_turn(writer))
        writer.append(MessageSystem(text="event 4"), turn=agent.turn)
        await seen.until(lambda: seen.seqs() == [1, 2, 3, 4], "event 4")
        await seen.leave()
        cursor = seen.model.cursor

        if restart == "while away":
            await rig.stop_gateway()
        last = await agent.work()
        if restart == "while away":
            await rig.start_gateway()

        texts = {OPEN: PIECE * OPEN_PIECES, THOUGHT: PIECE * THOUGHT_PIECES}
        await seen.come(rig, session=writer.session, cursor=cursor)
        await late.come(rig, session=writer.session)
        for client in (seen, late):
            for item, text in texts.items():
                await client.until(
                    lambda c=client, i=item, t=text: c.known(writer.session, i) == (0, t), f"the text of {item}"
                )
        # and on it goes
        await agent.stream(OPEN, 10, at=len(texts[OPEN]))
        for client in (seen, late):
            await client.until(
                lambda c=client: c.known(writer.session, OPEN) == (0, texts[OPEN] + PIECE * 10), "the text that follows"
            )
        say(writer, OPEN, texts[OPEN] + PIECE * 10, turn=agent.turn)
        say(writer, THOUGHT, texts[THOUGHT], turn=agent.turn)
        await writer.flush()
        for client in (seen, late):
            await client.until(lambda c=client: c.seqs()[-1:] == [last + 2], "the end")
            model = client.model
            assert (model.gaps, model.missing, model.repeated, model.replayed, model.wrong) == ([], [], 0, 0, [])
            assert model.blocks == {}
            assert model.texts[writer.session, OPEN, 0] == texts[OPEN] + PIECE * 10
            await client.leave()
        assert seen.seqs() == list(range(1, 4 + FACTS + 2 + 1))
        assert late.seqs() == [last + 1, last + 2]


async def test_open_text_that_is_still_being_read_comes_once_it_is_known(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that can't have read the open turn's deltas by the time a client comes."""
    monkeypatch.setattr("trunkline_gateway.channel.READY_S", 0.0)
    async with await rig.session() as writer:
        agent = Agent(rig, writer, begin_turn(writer))
        text = await agent.stream(OPEN, OPEN_PIECES)
        await rig.settled(writer)
        client = Modelled()
        await client.come(rig, session=writer.session)
        await client.until(lambda: client.known(writer.session, OPEN) == (0, text), "the open text")
        await client.leave()
