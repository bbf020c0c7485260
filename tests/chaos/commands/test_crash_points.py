"""Every fact around a command is a moment at which its worker, its agent or the server dies.

Each id has at most one effect, by the agent's own record, and always one outcome, in the log; an id that is sent again before,
during and after the crash gets that outcome. The facts are counted in an undisturbed run of each verb: accepted, what is written
about the effect, finished. A sample of the points is taken by default, all of them with `-m long`.
"""

import asyncio
import contextlib
import datetime as dt
import os
import random
import signal
from collections import Counter
from typing import Any, Final, Literal

import pytest
from tests.chaos.commands.ground import ENDS, WAIT_S, Ground
from tests.chaos.commands.scenes import SCENES, Scene

from trunkline_fold.check import check_session
from trunkline_testkit import eventually
from trunkline_testkit.chaos import oracles
from trunkline_testkit.chaos.evidence import Evidence
from trunkline_testkit.chaos.points import Mark, Point, points
from trunkline_wire import Data, parse_time
from trunkline_wire.commands import CONTROL_LIFETIME_S, Fork, Prompt
from trunkline_wire.ids import new_command_id

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

Act = Literal["worker", "server", "agent"]
SAMPLE: Final[dict[Act, int]] = {"worker": 16, "server": 8, "agent": 6}
ALWAYS: Final = (
    ("close", Point(Mark("fact", "session.closed", 1), "before")),
    ("close", Point(Mark("fact", "session.closed", 1), "after")),
    ("resume", Point(Mark("fact", "command.accepted", 1), "after")),
)
"""Where a session is closed and a command has no outcome, or the other way round."""
AT_A_TIME: Final = 24


class Case:
    """One command of one session, halted at one point."""

    def __init__(self, ground: Ground, scene: Scene, point: Point | None) -> None:
        self.ground, self.scene, self.point = ground, scene, point
        self.session = ""
        self.command = new_command_id()
        self.args: Data = scene.args()
        self.target: str | None = None
        self._sent = dt.datetime.now(dt.UTC)

    def __str__(self) -> str:
        return f"{self.scene.name} {self.point} ({self.outcome()})"

    def outcome(self) -> str | None:
        """What became of the command, as far as it is in the log."""
        events = self.ground.evidence(self.session).events
        mine = (event for event in events if event["type"] in ENDS and event["data"].get("command") == self.command)
        return next((f"{event['type']} {event['data'].get('error', {}).get('code', '')}" for event in mine), None)

    async def begin(self) -> None:
        self.session = await self.ground.create()
        await self.scene.before(self.ground, self.session)
        if self.scene.targets_turn:
            events = self.ground.evidence(self.session).events
            self.target = next(event["turn"] for event in events if event["type"] == "turn.started")

    async def send(self, *, first: bool = False) -> None:
        if first:
            self._sent = dt.datetime.now(dt.UTC)
        await self.ground.command(self.session, self.args, self.command, self.target)

    async def undisturbed(self) -> list[Point]:
        """The points around the facts of this command."""
        self.ground.halt.watch(self.session)
        await self.send()
        await self.ground.ended(self.session, self.command)
        if self.scene.done:
            await self.ground.has(self.session, self.scene.done)
        marks = list(self.ground.halt.marks[self.session])
        last = max(n for n, mark in enumerate(marks) if mark.type in {*ENDS, self.scene.done})
        return points(marks[: last + 1], ("fact",))

    async def verdict(self, act: Act) -> list[str]:
        """What went wrong."""
        where = f"{self.scene.name}, {act} dies {self.point}"
        try:
            outcome = await self.ground.ended(self.session, self.command)
        except AssertionError:
            log = [(e["type"], e["data"].get("command")) for e in self.ground.evidence(self.session).events]
            return [f"{where}: no outcome in {log}"]
        evidence = self.ground.evidence(self.session)
        if outcome["type"] == "command.finished":
            if isinstance(self.args, Fork):
                await self.ground.has(self.args.session, "session.created")
            with contextlib.suppress(AssertionError):  # the effect may be known a moment after the outcome
                await eventually(self._effect, WAIT_S / 4, interval=0.2)
            evidence = self.ground.evidence(self.session)
        return [f"{where}: {fault}" for fault in self._faults(evidence, outcome, act)]

    def _effect(self) -> bool:
        return self.scene.effect(self.ground.evidence(self.session), self.command)

    def _faults(self, evidence: Evidence, outcome: dict[str, Any], act: Act) -> list[str]:
        found = [str(fault) for fault in check_session([(s.sequence, s.subject, s.event()) for s in evidence.stored])]
        found += [fault.message for fault in oracles.journal(evidence)]
        found += [fault.message for fault in oracles.commands(evidence)]
        mine = [event for event in evidence.events if event["data"].get("command") == self.command]
        kinds = [event["type"] for event in mine if event["type"].startswith("command.")]
        if kinds not in (
            ["command.accepted", "command.finished"],
            ["command.accepted", "command.failed"],
            ["command.rejected"],
        ):
            found.append(f"its commands' events are {kinds}")
        found += [f"{what} is in the journal {n} times" for what, n in _repeated(evidence).items()]
        code = mine[-1]["data"].get("error", {}).get("code")
        seen = self.scene.effect(evidence, self.command)
        if outcome["type"] == "command.finished" and not seen:
            found.append("finished, without its effect")
        if code == "expired" and kinds == ["command.rejected"] and self._is_late(mine[-1]):
            return found  # nobody was there for it: the machine is slow
        if self.scene.again and outcome["type"] != "command.finished":
            found.append(f"{kinds[-1]} {code}, though twice is as once")
        if code == "agent_failed" and act == "agent":
            if seen:
                found.append("agent_failed, though the agent's own record has its effect")
        elif code not in {None, "outcome_unknown", "stale_target"} or (
            code == "stale_target" and not self.scene.targets_turn
        ):
            found.append(f"{kinds[-1]} {code}")
        caused = any(
            event["type"] == "turn.started" and event.get("cause") == self.command for event in evidence.events
        )
        if code == "outcome_unknown" and caused:
            found.append("outcome_unknown, though its turn is in the log")
        return found

    def _is_late(self, outcome: dict[str, Any]) -> bool:
        """Whether it waited for longer than a control verb may."""
        waited = parse_time(outcome["time"]) - self._sent
        return self.args.TYPE != Prompt.TYPE and waited.total_seconds() > CONTROL_LIFETIME_S


def _repeated(evidence: Evidence) -> Counter[str]:
    """What one incarnation of the agent was told more than once."""
    notes: Counter[str] = Counter(
        f"{note['kind']} {note.get('model') or note.get('mode') or ''} of {note['incarnation']}"
        for note in evidence.journal
        if note["kind"] in {"interrupt", "native", "set"}
    )
    return Counter({what: n for what, n in notes.items() if n > 1})


async def count(ground: Ground, scenes: list[Scene]) -> list[tuple[Scene, Point]]:
    """All points of the scenes: what two undisturbed runs have in common, as a slow election may disturb one of them."""
    runs: list[list[list[Point]]] = []
    for _ in range(2):
        cases = [Case(ground, scene, None) for scene in scenes]
        await asyncio.gather(*(case.begin() for case in cases))
        runs.append(await asyncio.gather(*(case.undisturbed() for case in cases)))
    return [(scene, point) for scene, one, two in zip(scenes, *runs, strict=True) for point in one if point in set(two)]


async def crash(ground: Ground, act: Act, chosen: list[tuple[Scene, Point]]) -> list[str]:
    """One crash, at every chosen point at once; what went wrong."""
    cases = [Case(ground, scene, point) for scene, point in chosen]
    await asyncio.gather(*(case.begin() for case in cases))
    for case in cases:
        ground.halt.watch(case.session, case.point)
        await case.send(first=True)
    for case in cases[::2]:
        await case.send()
    await eventually(lambda: _all_halted(ground, cases), WAIT_S)
    for case in cases[::3]:
        await case.send()
    match act:
        case "worker":
            ground.worker.kill()
            await ground.worker.gone()
            ground.halt.release()
            await ground.worker.restart()
        case "server":
            await ground.kill_server()
            ground.halt.release()
        case "agent":
            for case in cases:
                await kill_agent(ground, case.session)
            ground.halt.release()
    for case in cases:
        await case.send()
    return [fault for faults in await asyncio.gather(*(case.verdict(act) for case in cases)) for fault in faults]


def _all_halted(ground: Ground, cases: list[Case]) -> bool:
    late = [str(case) for case in cases if case.session not in ground.halt.halted]
    assert not late, f"not reached: {late}"
    return True


async def kill_agent(ground: Ground, session: str) -> None:
    pids = {note["pid"] for note in ground.evidence(session).journal if note["kind"] == "start"}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("servers", "act"),
    [
        ("R1", "worker"),
        ("R3", "server"),
        *(
            pytest.param(*pair, marks=pytest.mark.long)
            for pair in [("R1", "server"), ("R1", "agent"), ("R3", "worker")]
        ),
    ],
    indirect=["servers"],
)
@pytest.mark.parametrize("seed", [3])
async def test_a_crash_at_some_points(ground: Ground, act: Act, seed: int) -> None:
    chance = random.Random(f"{seed} {act}")
    scenes = chance.sample(SCENES, 8)
    all_points = await count(ground, scenes)
    chosen = chance.sample(all_points, SAMPLE[act])
    if act == "worker":
        chosen += [(scene, point) for name, point in ALWAYS for scene in SCENES if scene.name == name]
    found = await crash(ground, act, chosen)
    assert not found, "\n".join(found)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("act", SAMPLE)
async def test_a_crash_at_every_point(ground: Ground, act: Act) -> None:
    all_points = await count(ground, list(SCENES))
    found: list[str] = []
    for begin in range(0, len(all_points), AT_A_TIME):
        found += await crash(ground, act, all_points[begin : begin + AT_A_TIME])
    assert not found, "\n".join(found)
