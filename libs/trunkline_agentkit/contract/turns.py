"""The part of the contract about turns: prompts, text, tools, interrupts."""

import asyncio
import os
from pathlib import Path
from typing import cast

from trunkline_agentkit.contract.base import ContractBase
from trunkline_agentkit.contract.talk import assert_paired, data_of, only, spoken, streamed
from trunkline_agentkit.protocol import Fact, Piece
from trunkline_agentkit.recorder import read_recording
from trunkline_wire import encode
from trunkline_wire.session import Capabilities, SessionInitialized
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted


class TurnContract(ContractBase):
    async def test_it_is_installed(self) -> None:
        adapter = self.make_adapter()
        installed = await adapter.probe()
        assert await asyncio.to_thread(os.access, installed.path, os.X_OK)
        await adapter.close()

    async def test_a_prompt_becomes_one_turn(self, tmp_path: Path) -> None:
        async with self.session(tmp_path) as talk:
            command = await talk.prompt(self.prompts["say"])
            out = await talk.until(TurnCompleted)
            started = only(out, TurnStarted)
            assert started.cause == command
            assert cast("TurnStarted", started.data).trigger == "prompt"
            assert data_of(out, TurnCompleted)[0].outcome == "success"
            initialized = data_of(talk.facts, SessionInitialized)
            assert initialized, "the session must be initialized before its first turn is over"
            assert initialized[0].capabilities != Capabilities()
            assert spoken(out).strip()
            assert all(fact.item for fact in talk.facts if isinstance(fact.data, MessageAssistant))

    async def test_what_was_streamed_is_what_was_said(self, tmp_path: Path) -> None:
        self.unless_exempt("streaming")
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["say"])
            out = await talk.until(TurnCompleted)
            assert streamed(out)
            assert "".join(streamed(out)).strip() == spoken(out).strip()

    async def test_a_second_prompt_becomes_a_second_turn(self, tmp_path: Path) -> None:
        async with self.session(tmp_path) as talk:
            await talk.turn(self.prompts["say"])
            command = await talk.prompt(self.prompts["say"])
            out = await talk.until(TurnCompleted)
            assert only(out, TurnStarted).cause == command
            assert spoken(out).strip()

    async def test_every_line_comes_once_in_order_verbatim(self, tmp_path: Path) -> None:
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["say"])
            await talk.until(TurnCompleted)
            natives = [native for native in talk.natives if not native.ours]
        recorded = read_recording(tmp_path / "native.jsonl")
        spoken = [entry.raw for entry in recorded if entry.speaker == "agent"]
        assert [native.raw for native in natives] == spoken[: len(natives)]

    async def test_a_tool_is_told_from_its_call_to_its_end(self, tmp_path: Path) -> None:
        self.unless_exempt("tool")
        async with self.session(tmp_path) as talk:
            assert (await talk.turn(self.prompts["tool"])).outcome == "success"
            started = only([fact for fact in talk.facts if fact.lane is None], ToolStarted)
            completed = only([fact for fact in talk.facts if fact.lane is None], ToolCompleted)
            assert started.item == completed.item
            assert cast("ToolStarted", started.data).name
            tool = cast("ToolCompleted", completed.data)
            assert tool.status == "completed"
            assert self.tool_output is None or self.tool_output in encode(tool.content).decode()

    async def test_a_slow_answer_shows_as_it_comes(self, tmp_path: Path) -> None:
        self.unless_exempt("slow")
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["slow"])
            if "streaming" not in self.exempt:
                await talk.until(Piece)
                assert data_of(talk.facts, TurnCompleted) == []
            assert (await talk.end_of_turn()).outcome == "success"
            assert spoken(talk.facts).strip()

    async def test_a_huge_answer_comes_whole(self, tmp_path: Path) -> None:
        self.unless_exempt("huge")
        async with self.session(tmp_path) as talk:
            assert (await talk.turn(self.prompts["huge"])).outcome == "success"
            assert len(spoken(talk.facts)) >= self.huge_size

    async def test_a_prompt_during_a_turn_is_not_lost(self, tmp_path: Path) -> None:
        """It is steered into the turn, or waits and becomes a turn of its own."""
        self.unless_exempt("second", "slow")
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["slow"])
            await talk.until(TurnStarted)
            await talk.until(Piece)
            delivery = "queued" if talk.capabilities.queueing else "steered"
            command = await talk.prompt(self.prompts["say"], delivery)
            await talk.end_of_turn()

            def folded_in(fact: Fact) -> bool:
                said = fact.data
                return isinstance(said, MessageUser) and said.command == command and said.delivery == "steered"

            if not any(map(folded_in, talk.facts)):
                assert (await talk.end_of_turn()).outcome == "success"
                assert [fact.cause for fact in talk.facts if isinstance(fact.data, TurnStarted)][-1] == command
            assert self.said is None or self.said in spoken(talk.facts)
            assert_paired([fact.data for fact in talk.facts if fact.lane is None])

    async def test_an_interrupt_ends_the_turn_and_not_the_agent(self, tmp_path: Path) -> None:
        self.unless_exempt("interrupt", "long")
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["long"])
            await talk.until(TurnStarted)
            if "streaming" not in self.exempt:
                await talk.until(Piece)
            await talk.interrupt()
            await talk.until(TurnCompleted)
            assert data_of(talk.facts, TurnCompleted)[0].outcome == "interrupted"
            await talk.prompt(self.prompts["say"])
            await talk.until(TurnCompleted)
            assert_paired([fact.data for fact in talk.facts if fact.lane is None])
