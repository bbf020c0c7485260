"""The soak: sessions that live in turns, a killer that waits only until all works again, and judges after every round."""

import asyncio
import random
import shutil
import sys
import tempfile
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, Literal

from tests.chaos.soak import ground, up_ground
from tests.chaos.soak.conversation import Conversation, StuckError
from tests.chaos.soak.ground import PYTHONPATH, Ground
from tests.chaos.soak.load import crowd, stretch
from tests.chaos.soak.report import Report

from trunkline_bus import direct, kv, mirror
from trunkline_bus.reader import read_session
from trunkline_bus.views import View, decode_document
from trunkline_permissions.view import AsksView
from trunkline_projector.histories import PagesView
from trunkline_projector.sessions import SessionsView
from trunkline_testkit import eventually
from trunkline_testkit.chaos import oracles
from trunkline_testkit.chaos.census import census, rivals
from trunkline_testkit.chaos.evidence import Evidence, Violation, around, read_journal, read_recording
from trunkline_testkit.chaos.faults import Fault, plan
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError, encode, subjects

SILENT: Final = frozenset({"text", "tool_output"})
"""The demo agent's messages that yield only deltas."""

VIEWS: Final[tuple[View[Any], ...]] = (SessionsView(), PagesView(), AsksView())
ONE_HOST_S: Final = 10.0
LEADER_S: Final = 25.0
On = Literal["up", "R1", "R3"]
"""`trunkline up`; services side by side on one nats-server; the same on three."""

MOMENT_S: Final = 1.0
"""Seconds that a fault waits for its moment."""
SETTLE_S: Final = 30.0
UNDER_WAY_S: Final = 1.0
"""Seconds after which the log holds what was said before."""


class Soak:
    """`run` the plan of a seed. `say` takes lines of progress; what went wrong is in `report.violations`."""

    def __init__(
        self,
        seed: int,
        on: On,
        kills: int,
        *,
        sessions: int = 8,
        per_round: int = 50,
        keep: Path | None = None,
        patience: float = 1.0,
    ) -> None:
        self.report = Report(seed, on)
        weights, others = (up_ground.WEIGHTS, up_ground.OTHERS) if on == "up" else (ground.WEIGHTS[on], ground.OTHERS)
        self._on: On = on
        self._faults = plan(seed, kills, weights, others=others)
        self._chance = random.Random(seed)
        self._sessions = sessions
        self._per_round = per_round
        self._keep = keep
        self._patience = patience
        self._begun = time.monotonic()
        self._rivals: dict[tuple[str, str], Violation] = {}

    async def run(self) -> Report:
        home = Path(tempfile.mkdtemp(prefix="tl-soak-"))
        try:
            async with self._ground(home) as on:
                left = list(self._faults)
                while left and not self.report.violations:
                    await self._round(on, left)
            return self.report
        finally:
            self.report.seconds = time.monotonic() - self._begun
            if self.report.violations and self._keep is not None:
                shutil.copytree(home, self._keep, ignore=shutil.ignore_patterns("*.sock"), dirs_exist_ok=True)
            shutil.rmtree(home, ignore_errors=True)

    def _ground(self, home: Path) -> AbstractAsyncContextManager[Ground]:
        return up_ground.up_ground(home) if self._on == "up" else ground.stage_ground(ground.REPLICAS[self._on], home)

    async def _round(self, on: Ground, left: list[Fault]) -> None:
        sessions = [self._conversation(on) for _ in range(self._sessions)]
        canary = self._conversation(on, drop_every=60.0)
        everyone = [canary, *sessions]
        watching = asyncio.create_task(self._watch())
        try:
            await asyncio.gather(canary.open(0), *(one.open(1 + n % 2) for n, one in enumerate(sessions)))
            await canary.prompt("say hello", on_all=True)
            kills = 0
            while left and kills < self._per_round:
                fault = left.pop(0)
                kills += fault.kind == "kill"
                await self._strike(on, fault, canary, everyone)
                for one in everyone:
                    one.failed()
                if any(one.stuck for one in everyone):
                    break
            await self._end(on, everyone)
        except (StuckError, TrunklineError) as stuck:
            self._violate(Violation(7, canary.session, str(stuck)))
            await self._judge(on, everyone, complete=False)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await asyncio.gather(*(one.leave() for one in everyone))

    def _conversation(self, on: Ground, drop_every: float = 8.0) -> Conversation:
        chance = random.Random(self._chance.random())
        return Conversation(on.gateways, on.home, chance, drop_every=drop_every, pythonpath=PYTHONPATH)

    async def _strike(self, on: Ground, fault: Fault, canary: Conversation, everyone: list[Conversation]) -> None:
        await asyncio.sleep(fault.pause)
        await self._moment(fault, everyone)
        begin = await on.strike(fault, self._chance, {one.session for one in everyone})
        await self._probe(on, canary)
        took = time.monotonic() - begin
        await on.mended()
        self.report.killed += fault.kind == "kill"
        self.report.recoveries[fault.part if fault.kind == "kill" else f"{fault.part} ({fault.kind})"].append(took)
        self._check_time(fault, took)
        self.report.seconds = time.monotonic() - self._begun
        if fault.kind == "kill" and self.report.killed % 10 == 0:
            self._say(self.report.line())

    async def _moment(self, fault: Fault, everyone: list[Conversation]) -> None:
        def there() -> bool:
            return any(one.asking if fault.at == "ask" else one.in_turn for one in everyone)

        if fault.at == "any":
            return
        try:
            await eventually(there, MOMENT_S, interval=0.005)
        except AssertionError:
            self.report.counts["moments missed"] += 1

    async def _probe(self, on: Ground, canary: Conversation) -> None:
        """A prompt with an ask, decided, seen to its end on every gateway, and in the session's stored state."""
        while (outcome := await canary.prompt("say hi; ask probe", on_all=True))["type"] != "command.finished":
            self.report.counts[f"probes {outcome['type']}"] += 1
        sessions = VIEWS[0]

        async def stored() -> bool:
            last = await direct.last(on.bus, subjects.EVENTS, subjects.session_events(canary.session))
            used = await mirror.edition(on.bus, sessions.bucket)
            entry = await kv.get(on.bus, sessions.bucket, used.key(canary.session)) if used else None
            if last is None or entry is None or entry.value is None:
                return False
            return decode_document(entry.value).progress >= last.sequence

        try:
            await eventually(stored, SETTLE_S * stretch(), ignore=(Exception,))
        except AssertionError as error:
            raise StuckError(f"{canary.session}: its stored state does not follow the log: {error}") from None

    def _check_time(self, fault: Fault, took: float) -> None:
        """A limit is stretched only by what the machine is overloaded."""
        limit = (LEADER_S if fault.part in {"leader", "node"} else ONE_HOST_S) * self._patience
        if took <= limit:
            return
        running = f"{crowd():.1f} running a core"
        if took <= limit * stretch():
            self.report.slow.append(f"{fault}: {took:.1f} s at {running}")
        else:
            self._violate(Violation(7, "", f"{fault}: recovery took {took:.1f} s, at {running}"))

    async def _watch(self) -> None:
        """(2) Never two agents alive in one session."""
        while True:
            for one, other in rivals(await asyncio.to_thread(census)):
                text = f"two agents at once: {one.incarnation} as {one.pid}, {other.incarnation} as {other.pid}"
                self._rivals.setdefault((one.incarnation, other.incarnation), Violation(2, one.session, text))
            self.report.counts["looks at the process table"] += 1
            await asyncio.sleep(0.3)

    async def _end(self, on: Ground, everyone: list[Conversation]) -> None:
        """All sessions to their end, then all judges."""
        stuck = [Violation(7, one.session, text) for one in everyone for text in one.stuck]
        if not stuck:
            await asyncio.gather(*(one.close() for one in everyone))
            await self._no_orphans(everyone)
        await self._judge(on, everyone, complete=not stuck)
        for violation in (*stuck, *self._rivals.values()):
            self._violate(violation)

    async def _no_orphans(self, everyone: list[Conversation]) -> None:
        known = {one.session for one in everyone}
        try:
            await eventually(
                lambda: not [being for being in census() if being.session in known], ONE_HOST_S * stretch()
            )
        except AssertionError:
            for being in census():
                if being.session in known:
                    self._violate(Violation(7, being.session, f"process {being.pid} of a closed session is left"))

    async def _judge(self, on: Ground, everyone: list[Conversation], *, complete: bool) -> None:
        """`complete`: all sessions are closed. Otherwise what is under way is not missing, and states run on."""
        if not complete:
            await asyncio.gather(*(one.quiet() for one in everyone))
        for one in everyone:
            evidence = await self._evidence(on, one, settle=0.0 if complete else UNDER_WAY_S)
            found = oracles.judge(evidence, SILENT)
            if complete:
                found += await self._states(on, evidence)
            else:
                found = [violation for violation in found if violation.invariant in {1, 2, 3}]
            for violation in found[:3]:
                self._violate(violation, evidence)
            if self.report.violations or not complete:
                self._keep_log(on, evidence)
            self._count(one, evidence)

    async def _evidence(self, on: Ground, one: Conversation, settle: float) -> Evidence:
        """The log is read last, so that it holds what the others saw."""
        folder = on.home / "host" / "sessions" / one.session
        recording, journal = read_recording(folder / "native.jsonl"), read_journal(one.journal)
        transcripts, told, acked = [line.transcript for line in one.lines], list(one.told), set(one.acked)
        await asyncio.sleep(settle)
        stored = await read_session(on.bus, one.session)
        return Evidence(one.session, stored, recording, journal, transcripts, told, acked)

    def _keep_log(self, on: Ground, evidence: Evidence) -> None:
        """The session's log beside the services' logs, for whoever looks for the cause."""
        lines = [f"{one.sequence} {one.time.isoformat()} {one.subject} {one.raw.decode()}\n" for one in evidence.stored]
        (on.home / f"{evidence.session}.log").write_text("".join(lines))

    async def _states(self, on: Ground, evidence: Evidence) -> list[Violation]:
        """(4) Stored documents and the gateways' own states against a replay."""
        found: list[Violation] = []
        for view in VIEWS:
            last = max((one.sequence for one in evidence.stored if view.key(one) == evidence.session), default=0)
            documents = await self._documents(on, view, evidence.session, last)
            found += oracles.projections(evidence.session, evidence.stored, view, documents)
            if view is VIEWS[0] and evidence.session in documents:
                found += await self._gateway_states(on, evidence.session, documents[evidence.session])
        return found

    async def _documents(self, on: Ground, view: View[Any], session: str, last: int) -> dict[str, bytes]:
        documents: dict[str, bytes] = {}

        async def current() -> bool:
            used = await mirror.edition(on.bus, view.bucket)
            assert used is not None
            entries = await kv.entries(on.bus, view.bucket, used.key(session))
            entries += await kv.entries(on.bus, view.bucket, used.key(session, ">"))
            documents.clear()
            documents.update({e.key.removeprefix(f"{used.prefix}."): e.value for e in entries if e.value is not None})
            return session in documents and decode_document(documents[session]).progress >= last

        try:
            await eventually(current, SETTLE_S * stretch())
        except AssertionError:
            self._violate(Violation(4, session, f"the document of {view.name} does not reach the end of the log", last))
        return documents

    async def _gateway_states(self, on: Ground, session: str, raw: bytes) -> list[Violation]:
        document = decode_document(raw)
        found: list[Violation] = []
        for gateway in on.gateways:
            async with await Client.connect("http://localhost", socket=gateway.socket) as client:
                state = (await client.call("session.get", session=session))["state"]
            if state["sequence"] == document.cursor and encode(state) != bytes(document.state):
                found.append(Violation(4, session, f"{gateway.name} gives {state}, stored is {document.state!r}"))
        return found

    def _count(self, one: Conversation, evidence: Evidence) -> None:
        counts = self.report.counts
        events = evidence.events
        counts["sessions"] += 1
        counts["events"] += len(events)
        counts["asks"] += sum(e["type"] in {"permission.requested", "question.asked"} for e in events)
        counts["decisions"] += sum(e["type"] == "ask.decided" for e in events)
        counts["decisions delivered"] += sum(note["kind"] == "answer" for note in evidence.journal)
        counts["answers"] += len(one.told)
        counts["commands"] += len(one.acked)
        counts["prompts repeated"] += one.repeated
        counts["agents started"] += sum(note["kind"] == "start" for note in evidence.journal)
        counts["claims"] += sum(e["type"] == "session.claimed" for e in events)
        counts["outcomes unknown"] += sum(
            e["type"] == "command.failed" and e["data"]["error"]["code"] == "outcome_unknown" for e in events
        )
        counts["native messages"] += len([1 for speaker, _ in evidence.recording if speaker == "agent"])
        counts["resumes"] += sum(line.transcript.resumes for line in one.lines)
        counts["gaps"] += sum(len(line.transcript.gaps) for line in one.lines)

    def _violate(self, violation: Violation, evidence: Evidence | None = None) -> None:
        self.report.violations.append(violation)
        self._say(around(evidence, violation) if evidence is not None else f"{violation}")

    def _say(self, line: str) -> None:
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
        sys.stdout.flush()
