"""The team service on a real log: facts to team events and boards, and its start behind a log that holds them already."""

import asyncio
import gc
from collections.abc import Iterator

import psutil
from nats.aio.client import Client
from tests.bench import projecting
from tests.bench.reading import raw_pull
from tests.bench.report import Figure, Measured, timed
from tests.bench.teams import MEMBERS, life

from trunkline_bus import direct
from trunkline_bus.connection import Bus
from trunkline_teams.app import Teams
from trunkline_testkit import eventually
from trunkline_wire import Data, decode_event, subjects
from trunkline_wire.ids import new_host_id, new_session_id
from trunkline_wire.session import SessionCreated

TEAMS = 100
TASKS = 20
ORDINARY = 400
PUBLISHED = 1000
WITHIN_S = 600.0


def led() -> Iterator[tuple[Data, str | None]]:
    """A session that leads a team, without the lanes of its members: their calls are its own."""
    yield SessionCreated(adapter="bench", cwd="/", host=new_host_id(), workspace="ws_" + "0" * 32), None
    for data, item, _ in life(TASKS):
        yield data, item


async def prepare(bus: Bus) -> int:
    """Store the facts; returns how many there are of sessions with a team."""
    lives = iter([*[led] * TEAMS, *[projecting.session_events] * ORDINARY])

    def following() -> Iterator[tuple[Data, str | None]]:
        return next(lives)()

    count = await projecting.store(bus, TEAMS + ORDINARY, following)

    async def stored() -> bool:
        return await direct.end(bus, subjects.EVENTS) >= count

    await eventually(stored, WITHIN_S)
    return TEAMS * sum(1 for _ in led())


async def serve(bus: Bus) -> tuple[Measured, Measured, Teams]:
    """Runs the service from zero: until the log is heard, and from then on until all is written and folded."""
    teams = Teams(bus)
    running = asyncio.create_task(teams.run())
    try:
        start = await timed(lambda: asyncio.wait_for(teams.wait_ready(), WITHIN_S))
        settled = await timed(lambda: eventually(lambda: not teams.keeper.waiting, WITHIN_S))
        return start, settled, teams
    finally:
        running.cancel()
        await asyncio.wait({running})


async def measure(bus: Bus, plain: Client, told: int, setting: str) -> list[Figure]:
    begin = await direct.end(bus, subjects.EVENTS)
    gc.collect()
    before = psutil.Process().memory_full_info().uss
    _, writing, teams = await serve(bus)
    memory = (psutil.Process().memory_full_info().uss - before) / max(1, teams.keeper.teams)
    everything = await direct.end(bus, subjects.EVENTS)
    written = everything - begin
    again, _, _ = await serve(bus)
    bare = await timed(
        lambda: raw_pull(
            plain, subjects.EVENTS, subjects.ALL_EVENTS, everything, lambda message: decode_event(message.data)
        )
    )
    figures = [
        Figure(
            name=f"team service, start behind {everything:,} events, {TEAMS} teams of {MEMBERS} ({setting})",
            unit="us/event",
            value=again.cpu / everything * 1e6,
            limit=bare.cpu / everything * 1e6,
            limit_name="a bare pull that decodes each",
            goal=4,
            note=f"of CPU; {again.wall:.1f} against {bare.wall:.1f} s; {memory / 1024:.0f} KB a team and its share of the reading",
        )
    ]
    if written:
        raw = await direct.at(bus, subjects.EVENTS, everything)
        assert raw is not None
        one_by_one = await timed(lambda: publish(plain, raw.raw))
        figures.append(
            Figure(
                name=f"team service, {written:,} team events of {told:,} facts written ({setting})",
                unit="/s",
                value=written / writing.wall,
                limit=PUBLISHED / one_by_one.wall,
                limit_name="plain publishes of one of them, one by one",
                goal=0.4,
                at_least=True,
                note=f"CPU {writing.cpu / written * 1e6:.0f} against {one_by_one.cpu / PUBLISHED * 1e6:.0f} us an event",
            )
        )
    return figures


async def publish(plain: Client, raw: bytes) -> None:
    """As a writer that awaits each of its events, which are of a session of their own."""
    js, subject = plain.jetstream(), subjects.event(new_session_id(), "agent.fact")
    for _ in range(PUBLISHED):
        await js.publish(subject, raw)
