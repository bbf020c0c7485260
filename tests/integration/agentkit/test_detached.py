"""Detached agents through a worker host: taken up by the next worker, and told once."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agentkit.hand import Hand, those

from trunkline_agentkit.death import HELD
from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.held import Held, end_held
from trunkline_agentkit.place import Place
from trunkline_agentkit.sweep import is_running, marked
from trunkline_testkit import eventually
from trunkline_wire.session import SessionOptions

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

DETACHED = SessionOptions(hold="detached")


def agents(session: str) -> set[int]:
    return {pid for pid, _ in marked({SESSION_MARK: f"{HELD}{session}"})}


async def kill(worker: asyncio.subprocess.Process) -> None:
    worker.kill()
    await worker.wait()


async def test_a_turn_goes_on_over_the_death_of_its_worker(hand: Hand, start_worker: Any, home: Path) -> None:
    worker = await start_worker()
    session = await hand.create(options=DETACHED)
    await hand.prompt(session, "say hello; slow 60")
    await hand.has(session, "turn.started")
    before = agents(session)
    assert len(before) == 2
    await kill(worker)
    worker = await start_worker()
    events = await hand.has(session, "turn.completed", within=40)
    assert agents(session) == before
    assert those(events, "session.resumed", how="adopted")
    assert [event.data.outcome for event in those(events, "turn.completed")] == ["success"]
    said = ["".join(block.text for block in event.data.content) for event in those(events, "message.assistant")]
    assert [text.split() for text in said] == [["hello"], [f"word{number}" for number in range(60)]]
    # The next turn is as if nothing had been.
    await hand.prompt(session, "history")
    await hand.has(session, "turn.completed", 2)
    await hand.verify(session)
    # A worker that stops in order leaves it, and kills in a row change nothing.
    worker.terminate()
    await worker.wait()
    assert agents(session) == before
    worker = await start_worker()
    await hand.prompt(session, "ask ls")
    asked = those(await hand.has(session, "permission.requested"), "permission.requested")[0]
    await kill(worker)
    await hand.decide(asked)
    worker = await start_worker()
    events = await hand.has(session, "turn.completed", 3)
    assert len(those(events, "ask.delivered")) == 1
    assert not those(events, "ask.withdrawn")
    assert agents(session) == before
    await hand.verify(session)
    assert not those(events, "command.failed")
