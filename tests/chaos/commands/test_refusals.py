"""Commands that come too late, name what is gone, or reach a closed session: each has an outcome, none an effect."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.chaos.commands.ground import ENDS, PYTHONPATH, Ground, ground_on

from trunkline_testkit.chaos.stage import Stage
from trunkline_testkit.nats import NatsServer
from trunkline_wire import Data
from trunkline_wire.commands import Close, Interrupt, Resume, SetModel
from trunkline_wire.ids import new_command_id

pytestmark = pytest.mark.chaos

ANOTHER_TURN = "tur_" + "0" * 32


@pytest_asyncio.fixture
async def ground(chaos_home: Path) -> AsyncIterator[Ground]:
    servers = NatsServer(sync_interval="always")
    async with Stage(servers, chaos_home, environment={"PYTHONPATH": PYTHONPATH}) as stage, ground_on(stage) as ground:
        yield ground


def minted(ago: dt.timedelta) -> str:
    """A command's id of `ago`: its first 48 bits are milliseconds since 1970."""
    moment = int((dt.datetime.now(dt.UTC) - ago).timestamp() * 1000)
    return f"cmd_{moment:012x}{new_command_id()[16:]}"


async def refused(ground: Ground, session: str, args: Data, id: str | None = None, target: str | None = None) -> str:
    """The code with which a command is rejected."""
    command = await ground.command(session, args, id, target)
    outcome = await ground.ended(session, command)
    assert outcome["type"] == "command.rejected"
    return str(outcome["data"]["error"]["code"])


async def test_what_comes_too_late_is_refused_without_an_effect(ground: Ground) -> None:
    session = await ground.create()
    assert await refused(ground, session, SetModel(model="a"), minted(dt.timedelta(hours=25))) == "expired"
    assert await refused(ground, session, Interrupt(), target=ANOTHER_TURN) == "stale_target"
    assert await refused(ground, session, Interrupt()) == "stale_target"

    young = await ground.command(session, SetModel(model="b"), minted(dt.timedelta(hours=23)))
    assert (await ground.ended(session, young))["type"] == "command.finished"

    await ground.prompt(session, "silent")
    await ground.has(session, "turn.started")
    assert await refused(ground, session, Interrupt(), target=ANOTHER_TURN) == "stale_target"
    events = ground.evidence(session).events
    assert not [event for event in events if event["data"].get("status") == "interrupting"]
    assert next(event["data"]["model"] for event in events if event["data"].get("model")) == "b"


async def test_a_command_behind_the_end_of_its_session_has_its_outcome_by_derivation(ground: Ground) -> None:
    session = await ground.create()
    closing = await ground.command(session, Close())
    closed = await ground.has(session, "session.closed")
    await ground.ended(session, closing)
    late = await ground.prompt(session, "say too late")
    sequence = (await ground.bus.js.get_last_msg("COMMANDS", f"trunk.cmd.{session}.*", direct=False)).seq
    assert sequence is not None
    assert sequence > closed["data"]["cmd_seq"]

    # Reopened, the session has an owner that reads on behind its end: what came in between stays refused.
    reopening = await ground.command(session, Resume())
    assert (await ground.ended(session, reopening))["type"] == "command.finished"
    after = await ground.prompt(session, "say in time")
    assert (await ground.ended(session, after))["type"] == "command.finished"
    evidence = ground.evidence(session)
    outcomes = [e["data"] for e in evidence.events if e["type"] in ENDS and e["data"]["command"] == late]
    assert [outcome["error"]["code"] for outcome in outcomes] in ([], ["session_closed"])
    assert {note["id"] for note in evidence.journal if note["kind"] == "prompt"} == {after}


@pytest.mark.long
@pytest.mark.slow
async def test_a_control_verb_that_waited_half_a_minute_for_an_owner_is_expired(ground: Ground) -> None:
    session = await ground.create()
    ground.worker.kill()
    await ground.worker.gone()
    control = await ground.command(session, SetModel(model="late"))
    prompt = await ground.prompt(session, "say patient")
    await asyncio.sleep(31)  # what is waited for is the server's own time
    await ground.worker.restart()
    outcome = await ground.ended(session, control)
    assert (outcome["type"], outcome["data"]["error"]["code"]) == ("command.rejected", "expired")
    assert (await ground.ended(session, prompt))["type"] == "command.finished"
