"""A lead's session, whose agent makes a team; what the team service says of it, and the boards that it stores."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any, ClassVar, Self

from trunkline_bus import direct, kv, leader, mirror
from trunkline_bus.connection import Bus
from trunkline_bus.projection import Projection
from trunkline_bus.reader import read
from trunkline_bus.writer import SessionWriter
from trunkline_fold.team import TeamsState, decode_teams, fold_teams, initial_teams
from trunkline_teams.view import TeamsView
from trunkline_testkit import eventually
from trunkline_wire import AgentRef, Data, Event, encode, subjects, timestamp
from trunkline_wire.blocks import TextBlock
from trunkline_wire.ids import item_id, new_session_id
from trunkline_wire.observed import make_observation
from trunkline_wire.session import Capabilities, SessionCreated, SessionInitialized, SessionOptions
from trunkline_wire.turn import MessageAssistant, ToolCompleted, ToolStarted

HOST = "hst_" + "0" * 32
AGENT = AgentRef(adapter="claude", agent="claude", version="2.1.101")

LIFE = [
    "team.created",
    "team.member_joined",
    "team.member_joined",
    "team.task_created",
    "team.task_created",
    "team.task_updated",
    "team.task_updated",
    "team.task_claimed",
    "team.message",
    "team.task_completed",
    "team.member_idle",
    "team.shutdown_requested",
]
"""What `Lead.life` calls for, by hand: task 2 waits for task 1, which names 2 among those that it blocks."""


class Lead:
    """Its session is written by a SessionWriter, as a worker does."""

    def __init__(self, bus: Bus, writer: SessionWriter) -> None:
        self.bus = bus
        self.writer = writer
        self.session = writer.session
        self._calls = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, bus: Bus, native: str | None = "native-1", command: list[str] | None = None
    ) -> AsyncGenerator[Self]:
        options = SessionOptions(native={"command": command} if command else {})
        created = SessionCreated(adapter="claude", cwd="/src", host=HOST, workspace="ws_" + "a" * 32, options=options)
        writer = await SessionWriter.create(bus, created, session=new_session_id(), worker="wrk_x", agent=AGENT)
        try:
            if native is not None:
                writer.append(SessionInitialized(capabilities=Capabilities(), native_session=native))
            yield cls(bus, writer)
        finally:
            await writer.close()

    async def call(
        self, tool: str, words: str = "", structured: Any = None, *, lane: str | None = None, **given: Any
    ) -> str:
        """A call of a tool with its result; its item."""
        self._calls += 1
        item = item_id(self.session, "tool", f"{self._calls}")
        self.writer.append(ToolStarted(name=tool, input=given), item=item, lane=lane)
        done = ToolCompleted(status="completed", content=[TextBlock(text=words)], structured=structured)
        self.writer.append(done, item=item, lane=lane)
        await self.writer.flush()
        return item

    async def team(self, name: str = "lab") -> None:
        made = {"team_name": name, "lead_agent_id": f"team-lead@{name}"}
        await self.call("TeamCreate", "", made, team_name=name, description="Two writers")

    async def spawn(self, member: str, team: str = "lab") -> str:
        spawned = {"status": "teammate_spawned", "name": member, "team_name": team, "teammate_id": f"{member}@{team}"}
        return await self.call("Task", "Spawned successfully.", spawned, team_name=team, name=member, prompt="go")

    async def life(self) -> str:
        """All that LIFE tells; the lane of ann."""
        await self.team()
        ann, _ = await self.spawn("ann"), await self.spawn("bob")
        await self.call("TaskCreate", "Task #1 created successfully: a", subject="Write a", description="a")
        await self.call("TaskCreate", "Task #2 created successfully: b", subject="Write b", description="b")
        await self.call("TaskUpdate", "Updated task #2 blockedBy", taskId="2", addBlockedBy=["1"])
        await self.call("TaskUpdate", "Updated task #1 status", lane=ann, taskId="1", status="in_progress", owner="ann")
        await self.call("SendMessage", "", {"success": True}, lane=ann, to="team-lead", message="on it", summary="s")
        await self.call("TaskUpdate", "Updated task #1 status", lane=ann, taskId="1", status="completed")
        self.writer.append(MessageAssistant(content=[TextBlock(text="done")]), lane=ann)
        asked = {"type": "shutdown_request", "reason": "thanks"}
        done = {"success": True, "request_id": "shutdown-1@bob", "target": "bob"}
        await self.call("SendMessage", "", done, to="bob", message=asked)
        return ann

    async def events(self) -> list[Event]:
        """What stands on its team subject."""
        found = await read(self.bus, subjects.EVENTS, [subjects.event(self.session, "team")])
        return [stored.event() for stored in found]

    async def said(self, count: int, within: float = 20) -> list[Event]:
        """Its team events, once there are `count`."""

        async def there() -> bool:
            return len(await self.events()) >= count

        await eventually(there, within)
        return await self.events()

    async def board(self) -> TeamsState:
        """The fold of its team events, from the first."""
        state = initial_teams(self.session)
        for stored in await read(self.bus, subjects.EVENTS, [subjects.event(self.session, "team")]):
            state = fold_teams(state, stored.event(), stored.sequence)
        return state

    async def stored(self, within: float = 20) -> TeamsState:
        """Its document in `trunk_teams`, once it holds the last of its team events."""
        found: list[TeamsState] = []

        async def there() -> bool:
            last = await direct.last(self.bus, subjects.EVENTS, subjects.event(self.session, "team"))
            shown = await mirror.fetch(self.bus, subjects.KV_TEAMS, self.session, decode_teams)
            if shown is not None:
                found[:] = [shown.state]
            return last is not None and shown is not None and shown.state.sequence == last.sequence

        await eventually(there, within)
        return found[0]


def types(events: list[Event]) -> list[str]:
    return [event.type for event in events]


async def observe(bus: Bus, data: Data, **fields: Any) -> None:
    """An observation, as a watcher on the host stores it."""
    seen = make_observation(data, host=HOST, time=timestamp(), **fields)
    headers = {subjects.HEADER_ID: seen.id, subjects.HEADER_TYPE: data.TYPE}
    answer = await leader.publish(bus.mux, subjects.observed(HOST), encode(seen), headers)
    assert isinstance(answer, int), answer


class ZeroTeams(TeamsView):
    """The same fold beside the original: what a replay from zero gives."""

    name: ClassVar[str] = "zero-teams"
    bucket: ClassVar[str] = subjects.KV_ASKS


async def documents(bus: Bus, view: type[TeamsView]) -> dict[str, bytes]:
    """Everything of a view's edition in use, by key without the edition."""
    used = await mirror.edition(bus, view.bucket)
    assert used is not None
    prefix = f"{used.prefix}."
    entries = await kv.entries(bus, view.bucket, f"{prefix}>")
    return {entry.key.removeprefix(prefix): entry.value for entry in entries if entry.value is not None}


def projection(bus: Bus, view: TeamsView) -> Projection[TeamsState]:
    return Projection(bus, view, "test")
