"""Sessions at work on a cluster while everything is hit at random for a while; then the judges, and `trunkline verify`."""

import asyncio
import contextlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.chaos.cluster.ground import WEIGHTS, ClusterGround, cluster_ground
from tests.chaos.cluster.pulse import Pulse
from tests.chaos.soak.conversation import Conversation
from tests.chaos.soak.ground import PYTHONPATH
from tests.chaos.soak.load import stretch
from tests.chaos.soak.report import percentile
from tests.chaos.soak.soak import SILENT, VIEWS

from trunkline_bus import kv, mirror
from trunkline_bus.reader import read_session
from trunkline_bus.views import View, decode_document
from trunkline_testkit import eventually
from trunkline_testkit.chaos import oracles
from trunkline_testkit.chaos.evidence import Evidence, Violation, around, read_journal, read_recording
from trunkline_wire import TrunklineError

SETTLE_S: Final = 60.0


@dataclass
class Result:
    """`struck` are seconds until all was there again, by what was hit; `stalls` seconds that an append waited."""

    seed: int
    struck: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[str] = field(default_factory=Counter[str])
    violations: list[str] = field(default_factory=list[str])
    stalls: list[float] = field(default_factory=list[float])
    verify: str = ""
    seconds: float = 0.0

    def text(self) -> str:
        lines = [f"seed {self.seed}: {sum(map(len, self.struck.values()))} strikes in {self.seconds:.0f} s"]
        lines.append(f"{'hit':<18}{'times':>6}{'p50 s':>8}{'max s':>8}")
        lines += [
            f"{what:<18}{len(took):>6}{percentile(took, 0.5):>8.1f}{max(took):>8.1f}"
            for what, took in sorted(self.struck.items())
        ]
        lines.append(", ".join(f"{name} {count}" for name, count in sorted(self.counts.items())))
        stalls = [f"{percentile(self.stalls, share) * 1000:.0f} ms" for share in (0.5, 0.99)]
        lines.append(
            f"an append waited {stalls[0]} (p50), {stalls[1]} (p99), {max(self.stalls, default=0):.1f} s at most, "
            f"of {len(self.stalls)}"
        )
        lines.append(f"trunkline verify: {self.verify}")
        lines.append(f"violations {len(self.violations)}")
        return "\n".join(lines)


async def run(seed: int, seconds: float, sessions: int, *, pause: float, keep: Path | None = None) -> Result:
    """Each session has an author who waits up to `pause` seconds between two prompts."""
    result, chance, begun = Result(seed), random.Random(seed), time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="tl-cl-"))
    try:
        async with cluster_ground(home) as on:
            everyone = [
                Conversation(
                    [on.gateways[n % 3]],
                    on.home,
                    random.Random(chance.random()),
                    drop_every=20.0,
                    pythonpath=PYTHONPATH,
                    pause=pause,
                    host=on.hosts[n % 2],
                )
                for n in range(sessions)
            ]
            pulse = Pulse(on.bus)
            beating = asyncio.create_task(pulse.run())
            _say("the cluster is whole, all services are ready")
            try:
                for few in range(0, sessions, 5):
                    await asyncio.gather(*(one.open(1) for one in everyone[few : few + 5]))
                _say(f"{sessions} sessions are open")
                await _attack(on, everyone, seconds, chance, result)
                ends = await asyncio.gather(*(one.close() for one in everyone), return_exceptions=True)
                result.violations += [f"{type(end).__name__}: {end}" for end in ends if end is not None]
            finally:
                beating.cancel()
                await asyncio.gather(beating, return_exceptions=True)
                await asyncio.gather(*(one.leave() for one in everyone))
            result.stalls = pulse.stalls
            await _judge(on, everyone, pulse, result)
        return result
    finally:
        result.seconds = time.monotonic() - begun
        if result.violations and keep is not None:
            shutil.copytree(home, keep, ignore=shutil.ignore_patterns("*.sock"), dirs_exist_ok=True)
        shutil.rmtree(home, ignore_errors=True)


async def _attack(
    on: ClusterGround, everyone: list[Conversation], seconds: float, chance: random.Random, result: Result
) -> None:
    names, weights = list(WEIGHTS), list(WEIGHTS.values())
    of_nats = [name for name in names if name.startswith(("leader", "node"))]
    chance.shuffle(of_nats)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        # Each kind of trouble with the servers first, so that a short run has it too.
        (what,) = [of_nats.pop()] if of_nats else chance.choices(names, weights)
        result.violations += await on.ended_by_themselves()
        took = await on.strike(what, chance, {one.session for one in everyone})
        result.struck[what].append(took)
        _say(f"{what}: back after {took:.1f} s; load {os.getloadavg()[0]:.0f}")
        for one in everyone:
            one.failed()
        if any(one.stuck for one in everyone) or result.violations:
            _say("; ".join([text for one in everyone for text in one.stuck] + result.violations))
            return
        await asyncio.sleep(chance.uniform(0.5, 2.5))


async def _judge(on: ClusterGround, everyone: list[Conversation], pulse: Pulse, result: Result) -> None:
    counts = result.counts
    for one in everyone:
        result.violations += one.stuck
        evidence = await _evidence(on, one)
        found = oracles.judge(evidence, SILENT) + await _states(on, evidence)
        result.violations += [around(evidence, violation) for violation in found[:3]]
        counts["events"] += len(evidence.events)
        counts["commands acknowledged"] += len(one.acked)
        counts["asks decided"] += sum(e["type"] == "ask.decided" for e in evidence.events)
        counts["claims"] += sum(e["type"] == "session.claimed" for e in evidence.events)
        counts["resumes"] += sum(line.transcript.resumes for line in one.lines)
        counts["gaps"] += sum(len(line.transcript.gaps) for line in one.lines)
    beats = [stored for stored in await read_session(on.bus, pulse.session) if stored.type == "message.system"]
    if len(beats) not in {pulse.acked, pulse.acked + 1}:  # the last one may be stored and not yet acknowledged
        result.violations.append(f"{pulse.acked} facts of the pulse were acknowledged, {len(beats)} are in the log")
    result.verify = await _verify(on)
    if "all is well" not in result.verify:
        result.violations.append(f"trunkline verify: {result.verify}")


async def _evidence(on: ClusterGround, one: Conversation) -> Evidence:
    recording: list[tuple[str, str]] = []
    for home in on.homes:
        recording += read_recording(home / "host" / "sessions" / one.session / "native.jsonl")
    transcripts = [line.transcript for line in one.lines]
    stored = await read_session(on.bus, one.session)
    return Evidence(one.session, stored, recording, read_journal(one.journal), transcripts, one.told, one.acked)


async def _states(on: ClusterGround, evidence: Evidence) -> list[Violation]:
    """(4) Stored documents against a replay."""
    violations: list[Violation] = []
    for view in VIEWS:
        last = max((one.sequence for one in evidence.stored if view.key(one) == evidence.session), default=0)
        documents: dict[str, bytes] = {}

        async def current(view: View[Any] = view, last: int = last, found: dict[str, bytes] = documents) -> bool:
            used = await mirror.edition(on.bus, view.bucket)
            assert used is not None
            key = used.key(evidence.session)
            entries = await kv.entries(on.bus, view.bucket, key) + await kv.entries(on.bus, view.bucket, f"{key}.>")
            found.clear()
            found.update({e.key.removeprefix(f"{used.prefix}."): e.value for e in entries if e.value is not None})
            raw = found.get(evidence.session)
            return raw is not None and decode_document(raw).progress >= last

        try:
            await eventually(current, SETTLE_S * stretch(), ignore=(TrunklineError,))
        except AssertionError:
            violations.append(Violation(4, evidence.session, f"the document of {view.name} stays behind the log", last))
        else:
            violations += oracles.projections(evidence.session, evidence.stored, view, documents)
    return violations


async def _verify(on: ClusterGround) -> str:
    """What the command says of the whole log."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trunkline_cli", "verify"),
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(on.home),
            "PYTHONPATH": PYTHONPATH,
            "TRUNKLINE_NATS_URL": on.stage.nats.url,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    with contextlib.suppress(ProcessLookupError):
        out, _ = await process.communicate()
        return out.decode().strip()[-2000:]
    return "did not run"


def _say(line: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()
