"""Team events from facts, and the board from team events: many teams, in one process and without a server."""

import gc
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import psutil
from tests.bench.report import Figure, cpu

from trunkline_fold.team import Input, fold_teams, hear, initial_deriver, initial_teams, next_event
from trunkline_wire import Data, Event, decode_event, encode, make_event
from trunkline_wire.blocks import TextBlock
from trunkline_wire.subjects import EVENTS
from trunkline_wire.turn import ToolCompleted, ToolStarted

MEMBERS = 10
TEAMS = 1000
TASKS = 20
ROUNDS = 100
TIME = "2026-11-27T21:00:00.000000Z"


T = TypeVar("T")


def life(tasks: int) -> Iterator[tuple[Data, str, str | None]]:
    """(fact, item, lane): a team of MEMBERS that works off `tasks` tasks, with a message for each."""
    number = 0

    def call(
        tool: str, words: str, lane: str | None = None, structured: object = None, /, **given: object
    ) -> Iterator[tuple[Data, str, str | None]]:
        nonlocal number
        number += 1
        item = f"itm_{number:032x}"
        yield ToolStarted(name=tool, input=given), item, lane
        done = ToolCompleted(status="completed", content=[TextBlock(text=words)], structured=structured)
        yield done, item, lane

    yield from call("TeamCreate", "", None, {"team_name": "bench"}, team_name="bench")
    lanes: list[str] = []
    for member in range(MEMBERS):
        lanes.append(f"itm_{number + 1:032x}")
        spawned = {"status": "teammate_spawned", "name": f"m{member}", "team_name": "bench"}
        yield from call("Task", "", None, spawned, team_name="bench", name=f"m{member}")
    for task in range(1, tasks + 1):
        lane = lanes[task % MEMBERS]
        yield from call("TaskCreate", f"Task #{task} created successfully: x", subject="x" * 40, description="y" * 200)
        yield from call(
            "TaskUpdate", f"Updated task #{task} owner, status", lane, taskId=str(task), status="in_progress"
        )
        yield from call("SendMessage", '{"success":true}', lane, to="team-lead", message=f"done with {task} " * 10)
        yield from call("TaskUpdate", f"Updated task #{task} status", lane, taskId=str(task), status="completed")


def facts(session: str, tasks: int) -> list[bytes]:
    return [
        encode(make_event(data, session=session, time=TIME, item=item, lane=lane)) for data, item, lane in life(tasks)
    ]


def derive(session: str, raw: list[bytes]) -> tuple[list[bytes], object]:
    """The team events of a session's facts, and the deriver and the board that are left of them."""
    deriver, board, sequence = initial_deriver(session), initial_teams(session), 0
    written: list[bytes] = []
    for place, one in enumerate(raw, 1):
        heard = hear(deriver, Input(stream=EVENTS, sequence=place, what=decode_event(one)))
        while (derived := next_event(board, heard)) is not None:
            sequence += 1
            event = derived.event()
            board = fold_teams(board, event, sequence)
            written.append(encode(event))
    return written, (deriver, board)


def fold(session: str, written: list[bytes]) -> object:
    board = initial_teams(session)
    for sequence, one in enumerate(written, 1):
        board = fold_teams(board, decode_event(one), sequence)
    return board


def decode_only(written: list[bytes]) -> list[Event]:
    return [decode_event(one) for one in written]


def _of(work: Callable[[], T]) -> tuple[T, float]:
    """What `work` gives, and its seconds of CPU, the mean of ROUNDS."""
    result, began = work(), cpu()
    for _ in range(ROUNDS):
        work()
    return result, (cpu() - began) / ROUNDS


async def measure() -> list[Figure]:
    """1,000 teams of 10: their facts derived, their events folded; and the same for teams with four times the tasks."""
    session = "ses_" + "0" * 32
    raw, long = facts(session, TASKS), facts(session, 4 * TASKS)
    derive(session, raw)
    kept: list[object] = []
    gc.collect()
    before = psutil.Process().memory_full_info().uss
    began = cpu()
    written: list[bytes] = []
    for _ in range(TEAMS):
        written, state = derive(session, raw)
        kept.append(state)
    derived = (cpu() - began) / TEAMS
    memory = (psutil.Process().memory_full_info().uss - before) / TEAMS
    kept.clear()
    long_written, long_derived = _of(lambda: derive(session, long)[0])
    began, wall = cpu(), time.perf_counter()
    for _ in range(TEAMS):
        fold(session, written)
    folded, wall = (cpu() - began) / TEAMS, time.perf_counter() - wall
    _, long_folded = _of(lambda: fold(session, long_written))
    _, bare = _of(lambda: decode_only(written))
    rate, events = len(written) * TEAMS / wall, len(written)
    return [
        Figure(
            name=f"{TEAMS} teams of {MEMBERS}: facts to team events",
            unit="us/fact",
            value=derived / len(raw) * 1e6,
            limit=long_derived / len(long) * 1e6,
            limit_name="a fact of teams with four times the tasks",
            goal=0.6,
            at_least=True,
            note=f"{1 / derived * len(raw):,.0f} facts/s, {events} events a team",
        ),
        Figure(
            name=f"{TEAMS} teams of {MEMBERS}: events to boards",
            unit="us/event",
            value=folded / events * 1e6,
            limit=long_folded / len(long_written) * 1e6,
            limit_name="an event of teams with four times the tasks",
            goal=0.6,
            at_least=True,
            note=f"{rate:,.0f} events/s",
        ),
        Figure(
            name="an event folded into its board",
            unit="us/event",
            value=folded / events * 1e6,
            limit=bare / events * 1e6,
            limit_name="decoding it",
            goal=10,
        ),
        Figure(
            name="memory of a team: deriver and board",
            unit="KB",
            value=memory / 1024,
            limit=100,
            limit_name="100 KB",
            goal=1,
        ),
    ]
