"""The part of the contract about ends: closing, dying, coming back."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from trunkline_agentkit.contract.base import ContractBase
from trunkline_agentkit.contract.talk import Talk, data_of, only, spoken
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
        await self._goes_on(tmp_path, session=session, native_session=native)

    async def test_a_copy_goes_on_by_itself(self, tmp_path: Path) -> None:
        """It knows what was said before it was made, and the session that it is a copy of goes on as it was."""
        self.unless_exempt("resume", "fork")
        async with self.session(tmp_path) as talk:
            await talk.turn(self.prompts["say"])
            if not talk.capabilities.fork:
                pytest.skip("exempt: it can't copy a session")
            native = data_of(talk.facts, SessionInitialized)[-1].native_session
            session = talk.start.session
        assert native
        copy = await self._goes_on(tmp_path, native_session=native, fork=True)
        assert copy != native
        assert await self._goes_on(tmp_path, session=session, native_session=native) == native

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
        await self._goes_on(tmp_path, session=session, native_session=native)

    async def _goes_on(self, tmp_path: Path, **start: Any) -> str | None:
        """Takes a session up that was told `say`: its next turn works, and knows of it. Its native id by now."""
        recording = tmp_path / f"{'copied' if start.get('fork') else 'resumed'}.jsonl"
        async with self.session(tmp_path, **start, recording=recording) as talk:
            command = await talk.prompt(self.prompts.get("recall", self.prompts["say"]))
            out = await talk.until(TurnCompleted)
            assert only(out, TurnStarted).cause == command
            assert data_of(out, TurnCompleted)[0].outcome == "success"
            if "recall" in self.prompts and self.said is not None:
                assert self.said in spoken(out), "it has forgotten what was said"
            return data_of(talk.facts, SessionInitialized)[-1].native_session

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
