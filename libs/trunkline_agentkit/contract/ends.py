"""The part of the contract about ends: closing, dying, coming back."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

from trunkline_agentkit.contract.base import ContractBase
from trunkline_agentkit.contract.talk import Talk, data_of, only
from trunkline_agentkit.environment import INCARNATION_MARK
from trunkline_agentkit.sweep import marked
from trunkline_wire import TrunklineError
from trunkline_wire.session import SessionInitialized
from trunkline_wire.turn import TurnCompleted, TurnStarted


class EndContract(ContractBase):
    async def test_a_resumed_session_goes_on(self, tmp_path: Path) -> None:
        self.unless_exempt("resume")
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["say"])
            await talk.until(TurnCompleted)
            native = data_of(talk.facts, SessionInitialized)[-1].native_session
            session = talk.start.session
        assert native
        recording = tmp_path / "resumed.jsonl"
        async with self.session(tmp_path, session=session, native_session=native, recording=recording) as talk:
            command = await talk.prompt(self.prompts["say"])
            out = await talk.until(TurnCompleted)
            assert only(out, TurnStarted).cause == command
            assert data_of(out, TurnCompleted)[0].outcome == "success"

    async def test_a_session_whose_agent_was_killed_goes_on(self, tmp_path: Path) -> None:
        self.unless_exempt("resume", "long")
        async with self.session(tmp_path) as talk:
            await talk.turn(self.prompts["say"])
            native = data_of(talk.facts, SessionInitialized)[-1].native_session
            await talk.prompt(self.prompts["long"])
            await talk.until(TurnStarted)
            await _kill(talk)
            await talk.until_over()
            session = talk.start.session
        assert native
        recording = tmp_path / "resumed.jsonl"
        async with self.session(tmp_path, session=session, native_session=native, recording=recording) as talk:
            command = await talk.prompt(self.prompts["say"])
            out = await talk.until(TurnCompleted)
            assert only(out, TurnStarted).cause == command
            assert data_of(out, TurnCompleted)[0].outcome == "success"

    async def test_closing_leaves_no_process(self, tmp_path: Path) -> None:
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["say"])
            await talk.until(TurnCompleted)
            marks = {INCARNATION_MARK: talk.start.incarnation}
            assert "stays" in self.exempt or await asyncio.to_thread(marked, marks)
            exit = await talk.session.close()
            assert await talk.session.close() == exit
            assert await asyncio.to_thread(marked, marks) == []
            with pytest.raises(TrunklineError) as refused:
                await talk.prompt(self.prompts["say"])
            assert refused.value.code == "agent_failed"

    async def test_a_killed_agent_ends_its_messages(self, tmp_path: Path) -> None:
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts.get("long", self.prompts["say"]))
            await talk.until(TurnStarted)
            await _kill(talk)
            await talk.until_over()
            exit = await talk.session.close()
            assert exit.signal == signal.SIGKILL or exit.code not in {0, None}

    async def test_a_crash_in_mid_turn_tells_its_last_words(self, tmp_path: Path) -> None:
        self.unless_exempt("crash")
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["crash"])
            await talk.until(TurnStarted)
            await talk.until_over()
            exit = await talk.session.close()
            assert exit.code != 0
            assert exit.stderr_tail.strip()


async def _kill(talk: Talk) -> None:
    """SIGKILL for every process of the agent."""
    for pid, _ in await asyncio.to_thread(marked, {INCARNATION_MARK: talk.start.incarnation}):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
