"""Two projectors and three gateways as processes: one of each dies under load, and the others do all the work in 15 s."""

import asyncio
import os
import random
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from tests.chaos.soak.conversation import Conversation
from tests.chaos.soak.ground import PYTHONPATH
from tests.chaos.soak.load import stretch
from tests.chaos.soak.soak import SILENT, VIEWS

from trunkline_bus import direct, kv, mirror
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_bus.views import decode_document
from trunkline_projector.sessions import SessionsView
from trunkline_testkit import eventually
from trunkline_testkit.chaos import oracles
from trunkline_testkit.chaos.evidence import Evidence, read_journal, read_recording
from trunkline_testkit.chaos.stage import Part, Stage
from trunkline_testkit.nats import NatsServer
from trunkline_wire import subjects

pytestmark = [pytest.mark.chaos, pytest.mark.long, pytest.mark.timeout(180)]

HANDED_ON_S: Final = 15.0
PARTS: Final = 8

ANOTHER_MACHINE: Final = ("unshare", "--uts", "sh", "-c", 'hostname another; exec "$@"', "sh")
"""So that its neighbour can't see in the process table that it is gone, and has to wait for the lease."""


async def parts_of(projector: Part) -> list[str]:
    async with aiohttp.ClientSession() as http, http.get(f"{projector.health_url}/health") as answer:
        return (await answer.json())["parts"]


async def ends(bus: Bus, sessions: list[str]) -> dict[str, int]:
    """Where each session's log ends at this moment."""
    found = {one: await direct.last(bus, subjects.EVENTS, subjects.session_events(one)) for one in sessions}
    return {session: last.sequence for session, last in found.items() if last is not None}


async def follows(bus: Bus, until: dict[str, int]) -> bool:
    """Whether the stored state of each session holds its log up to there."""
    for session, sequence in until.items():
        shown = await mirror.fetch(bus, SessionsView.bucket, session, SessionsView().decode)
        if shown is None or shown.cursor < sequence:
            return False
    return True


async def test_what_a_dead_replica_did_others_do_within_fifteen_seconds(chaos_home: Path) -> None:
    elsewhere = ANOTHER_MACHINE if os.geteuid() == 0 and shutil.which("unshare") else ()
    environment = {"PYTHONPATH": PYTHONPATH}
    async with Stage(NatsServer(sync_interval="always"), chaos_home, environment=environment) as stage:
        starts: list[tuple[Any, str, dict[str, Any]]] = [
            ("adapters", "worker", {"record_native": True, "only": "chaos"}),
            ("projector", "projector1", {"parts": PARTS}),
            ("projector", "projector2", {"parts": PARTS}),
            ("permissions", "permissions", {}),
            *(("gateway", f"gateway{n}", {}) for n in (1, 2, 3)),
        ]
        part = {
            name: await stage.start(
                service, name=name, wait=False, within=elsewhere if name == "projector1" else (), **settings
            )
            for service, name, settings in starts
        }
        for one in part.values():
            await one.ready()
        first, second = part["projector1"], part["projector2"]

        async def shared() -> bool:
            return sorted(map(len, (await parts_of(first), await parts_of(second)))) == [4, 5]

        await eventually(shared, 30 * stretch())
        async with stage.bus() as bus:
            gateways = [part[f"gateway{n}"] for n in (1, 2, 3)]
            talks = [
                Conversation([gateway], chaos_home, random.Random(n), drop_every=20.0, pythonpath=PYTHONPATH)
                for n, gateway in enumerate(gateways)
            ]
            try:
                await asyncio.gather(*(talk.open(1) for talk in talks))
                await asyncio.gather(*(talk.prompt("say before") for talk in talks))
                sessions = [talk.session for talk in talks]
                begin = time.monotonic()
                first.kill()
                gateways[0].kill()
                # Its clients go to another gateway, with the cursors that they had.
                for line in talks[0].lines:
                    line.gateway = gateways[1]

                async def taken_over() -> bool:
                    return len(await parts_of(second)) == PARTS + 1

                await eventually(taken_over, HANDED_ON_S * stretch())
                handed_on = time.monotonic() - begin
                until = await ends(bus, sessions)
                await eventually(lambda: follows(bus, until), HANDED_ON_S * stretch())
                took = time.monotonic() - begin
                await asyncio.gather(*(talk.prompt("say after") for talk in talks))
                sys.stdout.write(f"parts handed on after {handed_on:.1f} s, states current after {took:.1f} s\n")
                assert took < HANDED_ON_S * stretch()
                for talk in talks:
                    talk.failed()
                    assert talk.stuck == []
                await asyncio.gather(*(talk.close() for talk in talks))
            finally:
                await asyncio.gather(*(talk.leave() for talk in talks))
            await judge(bus, chaos_home, talks)


async def judge(bus: Bus, home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        stored = await read_session(bus, talk.session)
        recording = read_recording(home / "host" / "sessions" / talk.session / "native.jsonl")
        transcripts = [line.transcript for line in talk.lines]
        evidence = Evidence(
            talk.session, stored, recording, read_journal(talk.journal), transcripts, talk.told, talk.acked
        )
        assert oracles.judge(evidence, SILENT) == []
        assert sum(len(transcript.gaps) for transcript in transcripts) == 0
        until = await ends(bus, [talk.session])
        await eventually(lambda until=until: follows(bus, until), 10 * stretch())
        view = VIEWS[0]
        shown = await mirror.edition(bus, view.bucket)
        assert shown is not None
        entry = await kv.get(bus, view.bucket, shown.key(talk.session))
        assert entry is not None
        assert entry.value is not None
        assert decode_document(entry.value).progress == stored[-1].sequence
        assert list(oracles.projections(talk.session, stored, view, {talk.session: entry.value})) == []
