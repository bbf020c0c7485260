"""The worker as a process of its own: killed in mid-turn, told to stop, started again."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.agentkit.conftest import Start
from tests.integration.agentkit.hand import Hand, those

from trunkline_testkit import eventually
from trunkline_testkit.processes import assert_no_orphans, marked, tree
from trunkline_wire import subjects
from trunkline_wire.commands import Close, Interrupt, Rename
from trunkline_wire.session import SessionOptions


async def test_kill_9_in_mid_turn_leaves_no_process_and_the_session_goes_on(hand: Hand, start_worker: Start) -> None:
    worker = await start_worker()
    session = await hand.create()
    await hand.prompt(session, "say before; children; slow")
    await hand.has(session, "message.assistant")
    # The agent, its MCP-like child, and a grandchild that has left the group, the session and its parent.
    await eventually(lambda: len(marked("TRUNKLINE_SESSION", session)) == 3, 10)

    begin = asyncio.get_running_loop().time()
    worker.kill()
    await worker.wait()
    await eventually(lambda: not any("demo.agent" in one.command for one in marked("TRUNKLINE_SESSION", session)), 5)
    await start_worker()
    await hand.has(session, "turn.completed", outcome="aborted")
    await assert_no_orphans("TRUNKLINE_SESSION", session)
    assert asyncio.get_running_loop().time() - begin < 10, "recovery takes less than ten seconds"
    events = await hand.has(session, "session.status", status="stopped")
    assert len(those(events, "session.claimed")) == 1

    await hand.prompt(session, "history")
    events = await hand.has(session, "turn.completed", 2)
    assert those(events, "message.assistant")[-1].data.content[0].text == "prompts:2"
    assert {event.epoch for event in events} == {1, 2}
    await hand.verify(session)


async def test_kill_9_with_an_open_ask_ends_it_and_no_old_decision_is_delivered(
    hand: Hand, start_worker: Start
) -> None:
    worker = await start_worker()
    session = await hand.create()
    prompt = await hand.prompt(session, "ask dangerous")
    ask = those(await hand.has(session, "permission.requested"), "permission.requested")[0]
    worker.kill()
    await worker.wait()
    await start_worker()
    await hand.has(session, "turn.completed", outcome="aborted")
    await hand.decide(ask)
    again = await hand.prompt(session, "ask safe")
    second = those(await hand.has(session, "permission.requested", 2), "permission.requested")[1]
    assert second.data.ask != ask.data.ask
    await hand.decide(second)
    events = await hand.has(session, "turn.completed", 2)
    assert [event.data.ask for event in those(events, "ask.delivered")] == [second.data.ask]
    assert those(events, "command.finished", command=prompt)
    assert those(events, "command.finished", command=again)
    await hand.verify(session)


async def test_commands_sent_while_no_worker_runs_are_done_or_expired(hand: Hand, start_worker: Start) -> None:
    worker = await start_worker()
    session = await hand.create()
    await hand.prompt(session, "say one")
    await hand.has(session, "turn.completed")
    worker.kill()
    await worker.wait()
    waiting = await hand.prompt(session, "history")
    renamed = await hand.command(session, Rename(title="later"))
    await start_worker()
    events = await hand.has(session, "turn.completed", 2)
    assert those(events, "message.assistant")[-1].data.content[0].text == "prompts:2"
    assert those(events, "turn.started")[1].cause == waiting
    await hand.has(session, "command.finished", command=renamed)
    await hand.verify(session)


async def test_sigterm_ends_in_order_within_seven_seconds(hand: Hand, start_worker: Start) -> None:
    worker = await start_worker()
    session = await hand.create(options=SessionOptions(prompt="children; slow"))
    await hand.has(session, "turn.started")
    await eventually(lambda: len(marked("TRUNKLINE_SESSION", session)) == 3, 10)
    worker.send_signal(signal.SIGTERM)
    async with asyncio.timeout(7):
        assert await worker.wait() == 0
    events = await hand.events(session)
    assert those(events, "turn.completed", outcome="aborted")
    assert those(events, "session.status", status="stopped", reason="stopping")
    assert marked("TRUNKLINE_SESSION", session) == []
    await start_worker()
    await hand.prompt(session, "history")
    events = await hand.has(session, "turn.completed", 2)
    assert those(events, "message.assistant")[-1].data.content[0].text == "prompts:2"
    await hand.verify(session)


async def test_orphans_of_an_agent_stay_in_the_workers_tree_and_are_reaped(hand: Hand, start_worker: Start) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux has subreapers")
    worker = await start_worker()
    session = await hand.create()
    await hand.prompt(session, "children; say on")
    await hand.has(session, "turn.completed")
    grandchild = next(
        info
        for info in await eventually(lambda: _three(session), 10)
        if os.getsid(info.pid) == info.pid and "demo.agent" not in info.command
    )
    assert grandchild.pid in {info.pid for info in tree(worker.pid)}
    await hand.command(session, Close())
    await hand.has(session, "session.closed")
    await assert_no_orphans("TRUNKLINE_SESSION", session)

    def no_zombies() -> bool:
        return all(child.status() != psutil.STATUS_ZOMBIE for child in psutil.Process(worker.pid).children())

    await eventually(no_zombies, 15)


def _three(session: str) -> Any:
    found = marked("TRUNKLINE_SESSION", session)
    return found if len(found) == 3 else None


async def test_prompts_in_the_queue_of_a_killed_agent_are_told_as_cancelled(
    hand: Hand, start_worker: Start, home: Path
) -> None:
    worker = await start_worker()
    session = await hand.create()
    await hand.prompt(session, "ask first")
    await hand.has(session, "permission.requested")
    second = await hand.prompt(session, "history")
    await hand.has(session, "command.finished", command=second)
    worker.kill()
    await worker.wait()
    await start_worker()
    await hand.has(session, "turn.completed", outcome="aborted")
    events = await hand.has(session, "message.user", command=second, delivery="cancelled")
    queued, cancelled = those(events, "message.user", command=second)
    assert queued.item == cancelled.item
    interrupt = await hand.command(session, Interrupt())
    events = await hand.has(session, "command.rejected", command=interrupt)
    assert those(events, "command.rejected", command=interrupt)[0].data.error.code == "stale_target"
    await assert_no_orphans("TRUNKLINE_SESSION", session)
    assert (home / "host" / "sessions" / session / "session.json").stat().st_mode & 0o777 == 0o600
    await hand.verify(session)


async def test_spawns_wait_in_the_queue_for_a_worker(hand: Hand, start_worker: Start) -> None:
    session = await hand.spawn()
    await start_worker()
    await hand.has(session, "session.created")

    async def taken() -> bool:
        return (await hand.bus.js_cmd.stream_info(subjects.SPAWN)).state.messages == 0

    await eventually(taken)
