"""The team service over a real log: what it writes, once, whatever is killed, and the boards that it stores of that."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.integration.teams.stage import LIFE, Lead, ZeroTeams, documents, observe, projection, types

from trunkline_bus import direct
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_fold.team import TeamsState
from trunkline_teams.app import Teams
from trunkline_teams.view import TeamsView
from trunkline_testkit import eventually
from trunkline_testkit.chaos.stage import Stage
from trunkline_testkit.nats import NatsServer
from trunkline_wire import Event, subjects
from trunkline_wire.observed import SeenMember, TeamSeen
from trunkline_wire.session import SessionErased


@contextlib.asynccontextmanager
async def at_work(bus: Bus, replicas: int = 1) -> AsyncGenerator[list[Teams]]:
    """Replicas in this process, without a lease: the fence alone keeps them apart."""
    teams = [Teams(bus) for _ in range(replicas)]
    tasks = [asyncio.create_task(one.run()) for one in teams]
    try:
        for one in teams:
            await asyncio.wait_for(one.wait_ready(), 30)
        yield teams
        assert [task for task in tasks if task.done()] == []
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def shown(state: TeamsState) -> object:
    team = state.teams["lab"]
    tasks = {id: (task.status, task.owner, task.blocks, task.blocked_by) for id, task in team.tasks.items()}
    return {name: member.status for name, member in team.members.items()}, tasks, list(team.open)


BOARD = (
    {"ann": "idle", "bob": "active"},
    {"1": ("completed", "ann", ["2"], []), "2": ("pending", None, [], ["1"])},
    ["shutdown-1@bob"],
)


async def test_a_life_is_told_and_its_board_is_stored(bus: Bus) -> None:
    async with at_work(bus) as (teams,), Lead.open(bus) as lead:
        await lead.life()
        events = await lead.said(len(LIFE))
        assert types(events) == LIFE
        stored = await lead.stored()
        assert shown(stored) == BOARD
        assert stored == await lead.board()
        assert teams.keeper.teams == 1
        # each is caused by the fact that told it, and bears that one's time
        told = {event.id: event.time for event in await facts(lead)}
        assert {event.cause for event in events} <= told.keys()
        assert all(event.time == told[event.cause or ""] for event in events)


async def facts(lead: Lead) -> list[Event]:
    stored = await read_session(lead.bus, lead.session)
    return [one.event() for one in stored if one.subject == subjects.event(lead.session, "agent.fact")]


async def test_what_was_written_before_a_start_is_not_written_again_and_what_lacks_is(bus: Bus) -> None:
    async with Lead.open(bus) as lead:
        await lead.team()
        async with at_work(bus):
            await lead.said(1)
        await lead.spawn("ann")
        async with at_work(bus):
            before = await lead.said(2)
        assert types(before) == ["team.created", "team.member_joined"]
        async with at_work(bus):
            await lead.stored()
        assert await lead.events() == before


async def test_two_replicas_write_each_event_once(bus: Bus) -> None:
    async with at_work(bus, 2), contextlib.AsyncExitStack() as stack:
        leads = [await stack.enter_async_context(Lead.open(bus, f"native-{n}")) for n in range(4)]
        await asyncio.gather(*(lead.life() for lead in leads))
        for lead in leads:
            assert types(await lead.said(len(LIFE))) == LIFE
            assert shown(await lead.stored()) == BOARD


async def test_a_replay_from_zero_gives_the_same_bytes(bus: Bus) -> None:
    async with at_work(bus), Lead.open(bus) as one, Lead.open(bus, "native-2") as other:
        await asyncio.gather(one.life(), other.life())
        for lead in (one, other):
            await lead.said(len(LIFE))
            await lead.stored()
        other.writer.append(SessionErased(by="ann"))
        await other.writer.flush()
        await eventually(lambda: erased(bus, other.session), 20)
        live = await documents(bus, TeamsView)
        zero = projection(bus, ZeroTeams())
        task = asyncio.create_task(zero.run())
        try:
            await asyncio.wait_for(zero.ready.wait(), 30)
            end = await direct.end(bus, subjects.EVENTS)
            await eventually(lambda: zero.stored >= end, 30)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert await documents(bus, ZeroTeams) == live


async def erased(bus: Bus, session: str) -> bool:
    return b'"teams":{}' in (await documents(bus, TeamsView))[session]


async def test_what_is_seen_of_a_native_session_goes_to_the_session_that_runs_it(bus: Bus) -> None:
    members = [SeenMember(name="team-lead"), SeenMember(name="ann", agent_id="ann@lab", pane="%3")]
    seen = TeamSeen(team="lab", description="From a file", lead="team-lead@lab", members=members)
    async with at_work(bus):
        # seen before the agent's session has said who it is; and of an agent that no session runs
        await observe(bus, seen, native_session="native-1")
        await observe(bus, seen, native_session="somebody-else")
        async with Lead.open(bus) as lead:
            events = await lead.said(2)
            assert types(events) == ["team.created", "team.member_joined"]
            # the lead's own stream tells of the same member: nothing is told twice
            await lead.team()
            await lead.spawn("ann")
            await lead.spawn("bob")
            stored = await lead.said(3)
            assert (await lead.stored()).teams["lab"].agents == ["ann", "bob"]
            assert types(stored).count("team.created") == 1
            assert (await lead.stored()).teams["lab"].members["ann"].pane == "%3"


async def test_a_member_with_a_session_of_its_own_is_joined_to_its_lead(bus: Bus) -> None:
    async with at_work(bus), Lead.open(bus) as lead:
        await lead.team()
        await lead.spawn("ann")
        await lead.said(2)
        command = ["claude", "--agent-name", "ann", "--team-name", "lab"]
        async with Lead.open(bus, "native-ann", command) as ann:
            await lead.said(3)
            await ann.call("TaskCreate", "Task #7 created successfully: own", subject="own")
            await lead.said(4)
            team = (await lead.stored()).teams["lab"]
            assert team.members["ann"].session == ann.session
            assert [task.subject for task in team.tasks.values()] == ["own"]
            assert await ann.events() == []


@pytest.mark.parametrize("replicas", [1, 2])
async def test_killed_in_the_middle(fresh_nats: NatsServer, home: Path, replicas: int) -> None:
    """`kill -9` of the process that works, three times in one life: the log is that of an undisturbed one."""
    async with Stage(fresh_nats, home) as stage, stage.bus() as bus:
        parts = [await stage.start("teams", name=f"teams{n}") for n in range(replicas)]
        async with Lead.open(bus) as lead:
            living = asyncio.create_task(lead.life())
            for count in (2, 5, 8):
                await lead.said(count, 60)
                parts[0].kill()
                await parts[0].restart()
                parts.reverse()
            await living
            assert types(await lead.said(len(LIFE), 60)) == LIFE
            assert shown(await lead.stored(60)) == BOARD
            assert await lead.board() == await lead.stored()
