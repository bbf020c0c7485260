"""What agents tell by their hooks, over real HTTP, and what is seen of their teams' files: into a real log."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from tests.integration.agentkit.conftest import Host
from tests.integration.agentkit.hand import Hand, those

from trunkline_adapters.claude.adapter import ClaudeAdapter
from trunkline_agentkit.hook_receiver import BURST, LARGEST, HookReceiver
from trunkline_agentkit.hooks import Hook, HookEndpoint, endpoint_file, ensure_endpoint
from trunkline_agentkit.observing import HostObserver
from trunkline_agentkit.registry import load
from trunkline_bus.connection import Bus
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError, encode, subjects
from trunkline_wire.ids import new_session_id
from trunkline_wire.observed import Observation, decode_observation

STOP = {"session_id": "native-1", "hook_event_name": "Stop", "last_assistant_message": "done", "cwd": "/x"}


async def observed(bus: Bus) -> list[Observation]:
    """All that is in the stream."""
    info = await bus.js.stream_info(subjects.OBSERVED)
    found: list[Observation] = []
    for sequence in range(1, info.state.last_seq + 1):
        message = await bus.js.get_msg(subjects.OBSERVED, sequence)
        found.append(decode_observation(message.data or b""))
    return found


@pytest.fixture
def adapters(tmp_path: Path) -> dict[str, Any]:
    return {"demo": load("demo"), "claude": ClaudeAdapter({"HOME": str(tmp_path / "user")})}


@pytest.fixture
def endpoint(home: Path) -> HookEndpoint:
    """With a port of this test's own."""
    minted = ensure_endpoint(home)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        mine = HookEndpoint(port=free.getsockname()[1], secret=minted.secret)
    endpoint_file(home).write_bytes(encode(mine))
    return mine


class Caller:
    """An agent that calls its hooks."""

    def __init__(self, endpoint: HookEndpoint, client: aiohttp.ClientSession) -> None:
        self.endpoint = endpoint
        self._client = client

    async def call(
        self, body: Any, *, session: str = "", secret: str | None = None, adapter: str = "claude"
    ) -> tuple[int, bytes]:
        headers = {
            "Authorization": f"Bearer {self.endpoint.secret if secret is None else secret}",
            "Trunkline-Session": session,
        }
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self._client.post(self.endpoint.url(adapter), data=data, headers=headers) as response:
            return response.status, await response.read()

    async def heard(self) -> None:
        async def listens() -> bool:
            return (await self.call({}))[0] == 400

        await eventually(listens, 20, ignore=(aiohttp.ClientConnectorError,))


@pytest_asyncio.fixture
async def caller(endpoint: HookEndpoint) -> AsyncIterator[Caller]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as client:
        yield Caller(endpoint, client)


async def test_a_hook_of_our_session_is_a_fact_of_it_and_others_are_observed(
    hand: Hand, run_host: Host, caller: Caller, adapters: dict[str, Any], bus: Bus
) -> None:
    host = await run_host(adapters)
    session = await hand.create()
    await hand.prompt(session, "say hello")
    initialized = those(await hand.has(session, "turn.completed"), "session.initialized")[0].data
    await caller.heard()

    by_mark = STOP | {"hook_event_name": "TeammateIdle", "teammate_name": "alpha"}
    assert await caller.call(by_mark, session=session) == (204, b"")
    assert await caller.call(STOP | {"session_id": initialized.native_session}) == (204, b"")
    assert await caller.call(STOP | {"session_id": "stranger"}, session="ses_" + "0" * 32) == (204, b"")
    # Known by its mark once, and by its own name from then on: in tmux the mark is another.
    assert await caller.call(STOP) == (204, b"")
    events = await hand.has(session, "hook.fired", 3)
    fired = [event.data for event in those(events, "hook.fired")]
    assert [one.hook_event for one in fired] == ["TeammateIdle", "Stop", "Stop"]
    assert fired[0].input == by_mark
    assert fired[0].status == "completed"
    await hand.verify(session)

    await eventually(lambda: _count(bus, 1))
    seen = (await observed(bus))[0]
    assert (seen.host, seen.native_session, seen.session) == (host.host, "stranger", None)
    assert seen.data.hook_event == "Stop"  # type: ignore[attr-defined]
    assert seen.data.input == STOP | {"session_id": "stranger"}  # type: ignore[attr-defined]


async def test_what_is_no_call_of_ours_is_refused_and_leaves_nothing(
    run_host: Host, caller: Caller, adapters: dict[str, Any], bus: Bus
) -> None:
    await run_host(adapters)
    await caller.heard()
    assert await caller.call(STOP, secret="x" * 43) == (401, b"")
    assert await caller.call(STOP, secret="") == (401, b"")
    assert await caller.call(STOP, adapter="demo") == (404, b"")
    assert await caller.call(b"{") == (400, b"")
    assert await caller.call(b"\xff\xfe") == (400, b"")
    assert await caller.call([STOP]) == (400, b"")
    assert await caller.call(b'{"a":' * 50_000) == (400, b"")
    assert await caller.call(STOP | {"last_assistant_message": "x" * LARGEST}) == (413, b"")
    assert await caller.call(b"[" * 100_000) == (400, b"")
    # A replay: the same call again, and one that can happen only once however late.
    once = {"session_id": "s", "hook_event_name": "TaskCreated", "task_id": "1", "task_subject": "one"}
    assert [(await caller.call(body))[0] for body in (STOP, STOP, once, once, once)] == [204] * 5
    await eventually(lambda: _count(bus, 2))
    assert {one.data.hook_event for one in await observed(bus)} == {"Stop", "TaskCreated"}  # type: ignore[attr-defined]


async def test_so_many_calls_are_taken_at_once_and_no_more(
    caller: Caller, adapters: dict[str, Any], home: Path
) -> None:
    """By a clock that stands still."""
    taken: list[Hook] = []

    def take(hook: Hook, _: str | None) -> bool:
        taken.append(hook)
        return len(taken) <= 3

    receiver = HookReceiver(home, adapters, take, now=lambda: 0.0)
    running = asyncio.create_task(receiver.run())
    try:
        await eventually(lambda: receiver.listening)
        answers = [(await caller.call(STOP | {"n": n}))[0] for n in range(BURST + 2)]
    finally:
        running.cancel()
        await asyncio.wait([running])
    assert answers == [204] * 3 + [503] * (BURST - 3) + [429] * 2


async def test_a_receiver_listens_only_while_hooks_are_installed(
    run_host: Host, caller: Caller, adapters: dict[str, Any], home: Path
) -> None:
    kept = endpoint_file(home).read_bytes()
    endpoint_file(home).unlink()
    await run_host(adapters)
    endpoint_file(home).write_bytes(kept)
    await caller.heard()
    endpoint_file(home).write_bytes(encode(HookEndpoint(port=caller.endpoint.port, secret="n" * 43)))

    async def renewed() -> bool:
        return (await caller.call({}, secret="n" * 43))[0] == 400 and (await caller.call({}))[0] == 401

    await eventually(renewed, 20, ignore=(aiohttp.ClientError,))


async def test_a_teams_files_are_observed_where_that_is_switched_on(
    run_host: Host, adapters: dict[str, Any], bus: Bus, tmp_path: Path
) -> None:
    root = tmp_path / "user" / ".claude"
    await run_host(adapters, observe_files="always")
    team = root / "teams" / "session-1"
    (team / "inboxes").mkdir(parents=True)
    (team / "config.json").write_text('{"leadSessionId": "native-1", "members": [{"name": "al')
    (root / "tasks" / "session-1").mkdir(parents=True)
    (root / "tasks" / "session-1" / "1.json").write_text('{"id": "1", "subject": "Write", "status": "pending"}')
    (team / "config.json").write_text('{"leadSessionId": "native-1", "members": [{"name": "alpha"}]}')
    await eventually(lambda: _count(bus, 2))
    (root / "tasks" / "session-1" / "1.json").write_text('{"id": "1", "subject": "Write", "status": "completed"}')
    await eventually(lambda: _count(bus, 3))
    seen = await observed(bus)
    assert [one.data.TYPE for one in seen] == ["observed.team", "observed.task", "observed.task"]
    assert {(one.native_session, one.session) for one in seen} == {("native-1", None)}
    assert [one.path for one in seen][1:] == ["tasks/session-1/1.json"] * 2
    assert seen[2].data.task.status == "completed"  # type: ignore[attr-defined]


class Here:
    """The owner of a session whose team stands in files alone. `told`: how often it heard that they have changed."""

    native_session = "native-1"
    team_in_files = True
    told = 0

    async def team_changed(self) -> None:
        self.told += 1
        if self.told == 1:
            raise TrunklineError("agent_failed", "half written")

    async def note_hook(self, hook: Hook) -> bool:
        del hook
        return False


async def test_the_end_of_a_team_is_seen_though_its_session_has_ended(
    adapters: dict[str, Any], bus: Bus, home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "user" / ".claude" / "teams" / "mine"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"leadSessionId": "native-1", "members": []}')
    (folder.parent / "strangers").mkdir()
    (folder.parent / "strangers" / "config.json").write_text('{"leadSessionId": "native-2", "members": []}')
    session, owner = new_session_id(), Here()
    observer = HostObserver(bus, "hst_" + "0" * 32, home, adapters, {session: owner}.copy)
    running = asyncio.create_task(observer.run())
    try:
        await eventually(lambda: _count(bus, 1))
        await eventually(lambda: owner.told == 2)  # what could not be read is read again, though nothing is new
        (folder / "config.json").unlink()
        owner.team_in_files = False
        await eventually(lambda: _count(bus, 2))
    finally:
        running.cancel()
        await asyncio.wait([running])
    assert [(one.data.TYPE, one.session) for one in await observed(bus)] == [
        ("observed.team", session),
        ("observed.team_gone", session),
    ]


async def _count(bus: Bus, count: int) -> bool:
    info = await bus.js.stream_info(subjects.OBSERVED)
    assert info.state.messages <= count
    return info.state.messages == count
