"""A hand that sends what gateway and permissions would send, and reads what came of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from trunkline_bus.connection import Bus
from trunkline_bus.derived import DerivedWriter
from trunkline_bus.reader import read_session
from trunkline_fold.check import check_session
from trunkline_testkit import eventually
from trunkline_wire import Data, Event, Spawn, encode, make_command, subjects, timestamp
from trunkline_wire.asks import AskDecided
from trunkline_wire.blocks import TextBlock
from trunkline_wire.commands import Prompt
from trunkline_wire.ids import new_command_id, new_event_id, new_session_id
from trunkline_wire.session import SessionOptions


class Hand:
    """Sends requests and commands, appends decisions, and reads what came of them."""

    def __init__(self, bus: Bus, cwd: Path) -> None:
        self.bus = bus
        self.cwd = cwd

    async def spawn(self, adapter: str = "demo", *, host: str = "any", id: str | None = None, **fields: Any) -> str:
        session = fields.pop("session", None) or new_session_id()
        options = fields.pop("options", None) or SessionOptions()
        cwd = fields.pop("cwd", None) or str(self.cwd)
        request = Spawn(
            id=id or new_event_id(),
            session=session,
            adapter=adapter,
            cwd=cwd,
            time=timestamp(),
            host=host,
            options=options,
            **fields,
        )
        await self.bus.js_cmd.publish(subjects.spawn(host, adapter), encode(request))
        return session

    async def create(self, adapter: str = "demo", **fields: Any) -> str:
        """A session that exists."""
        session = await self.spawn(adapter, **fields)
        await self.until(session, lambda events: any(event.type == "session.created" for event in events))
        return session

    async def command(self, session: str, args: Data, *, id: str | None = None, **fields: Any) -> str:
        command = make_command(args, id=id or new_command_id(), session=session, time=timestamp(), **fields)
        await self.bus.js_cmd.publish(subjects.command(session, "tester"), encode(command))
        return command.id

    async def prompt(self, session: str, text: str, *, id: str | None = None, **fields: Any) -> str:
        return await self.command(session, Prompt(content=[TextBlock(text=text)], **fields), id=id)

    async def decide(self, ask: Event, behaviour: Any = "allow", **fields: Any) -> AskDecided:
        """Appends a decision as the permission service does."""
        data: Any = ask.data
        decision = AskDecided(ask=data.ask, behaviour=behaviour, by="tester", **fields)
        stored = await read_session(self.bus, ask.session)
        asked = next(one.sequence for one in stored if one.id == ask.id)
        expected = max((one.sequence for one in stored if one.subject.endswith(".permission")), default=0)
        writer = DerivedWriter(self.bus, "permissions")
        sequence = await writer.append(
            ask.session, "permission", decision, expected=expected, src=(subjects.EVENTS, asked, 0)
        )
        assert sequence is not None
        return decision

    async def events(self, session: str) -> list[Event]:
        return [stored.event() for stored in await read_session(self.bus, session)]

    async def until(self, session: str, found: Callable[[list[Event]], Any], *, within: float = 20.0) -> list[Event]:
        """The session's events, once `found` holds for them."""

        async def check() -> list[Event]:
            events = await self.events(session)
            assert found(events), describe(events)
            return events

        return await eventually(check, within)

    async def has(self, session: str, type: str, count: int = 1, *, within: float = 20.0, **fields: Any) -> list[Event]:
        """The session's events, once `count` of `type` are there whose data has `fields`."""
        return await self.until(session, lambda events: len(those(events, type, **fields)) >= count, within=within)

    async def verify(self, session: str) -> None:
        """What the log can show of the invariants."""
        stored = await read_session(self.bus, session)
        violations = check_session([(one.sequence, one.subject, one.event()) for one in stored])
        assert not violations, f"{violations}\n{describe([one.event() for one in stored])}"


def those(events: list[Event], type: str, **fields: Any) -> list[Any]:
    """The events of a type whose data has `fields`; typed loosely, because the test names the type."""
    return [
        event
        for event in events
        if event.type == type and all(getattr(event.data, name) == value for name, value in fields.items())
    ]


def describe(events: list[Event]) -> str:
    return "\n".join(f"{event.seq} {event.type} {event.data}"[:300] for event in events)
