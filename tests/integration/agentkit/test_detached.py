"""Detached agents through a worker host: taken up by the next worker, and told once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.integration.agentkit.hand import Hand, those

from trunkline_agentkit.death import HELD
from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.held import held_sessions
from trunkline_agentkit.sweep import end_processes, marked
from trunkline_wire.session import SessionOptions

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

DETACHED = SessionOptions(hold="detached")
DYING = str(Path(__file__).with_name("dying_worker.py"))


@pytest_asyncio.fixture(autouse=True)
async def nothing_left(home: Path) -> AsyncIterator[None]:
    yield
    held = await asyncio.to_thread(held_sessions, home)
    await end_processes(one for processes in held.values() for one in processes)


def agents(session: str) -> set[int]:
    return {pid for pid, _ in marked({SESSION_MARK: f"{HELD}{session}"})}


async def kill(worker: asyncio.subprocess.Process) -> None:
    worker.kill()
    await worker.wait()


@pytest.mark.parametrize(
    "point",
    [
        "before put_line 3",  # behind the greeting and a prompt: this one is not written, and is given again
        "after put_line 3",  # it is, and is not
        "before said 1",
        pytest.param("after drain 3", marks=pytest.mark.long),
        pytest.param("after said 1", marks=pytest.mark.long),
        pytest.param("after pass_on 1", marks=pytest.mark.long),
        pytest.param("after pass_on 3", marks=pytest.mark.long),
        pytest.param("before end 1", marks=pytest.mark.long),
        "after end 1",
    ],
)
async def test_a_prompt_has_one_effect_wherever_the_worker_dies(hand: Hand, start_worker: Any, point: str) -> None:
    first = await (start_worker(DYING, DIE_AT=point) if "put_line" in point or "drain" in point else start_worker())
    session = await hand.create(options=DETACHED)
    await hand.prompt(session, "say first")
    await hand.has(session, "turn.completed")
    prompt = await hand.prompt(session, "say hello; ask ls; say bye")
    if "put_line" in point or "drain" in point:
        await asyncio.wait_for(first.wait(), 20)
    else:
        await hand.has(session, "permission.requested")
        await kill(first)
        await asyncio.wait_for((await start_worker(DYING, DIE_AT=point)).wait(), 20)
    await start_worker()
    asked = those(await hand.has(session, "permission.requested"), "permission.requested")
    await hand.decide(asked[0])
    events = await hand.has(session, "turn.completed", 2)
    assert [event.data.outcome for event in those(events, "turn.completed")] == ["success", "success"]
    assert [event.cause for event in those(events, "turn.started")][1:] == [prompt]
    said = ["".join(block.text for block in event.data.content) for event in those(events, "message.assistant")]
    assert said[:2] == ["first", "hello"]
    assert said[-1] == "bye"
    assert len(said) == len(set(said))
    assert len(those(events, "permission.requested")) == len(those(events, "ask.delivered")) == 1
    assert len(those(events, "command.finished", command=prompt)) == 1
    assert not those(events, "command.failed")
    await hand.verify(session)


async def test_a_turn_goes_on_over_the_death_of_its_worker(hand: Hand, start_worker: Any) -> None:
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
