"""Whatever an agent has started and however it ends: nothing of it is left.

The creatures leave their group, session and parent, empty their environment, close what they inherited, ignore signals,
start each other again; `unruly/zoo.py` names them.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.chaos.orphans.conftest import HIDING, TAME, Zoo, belonging, kill_pids
from tests.integration.agentkit.hand import those

from trunkline_testkit.chaos.stage import Part, Stage
from trunkline_wire.commands import Close, Kill

pytestmark = [pytest.mark.chaos]

End = Callable[[Zoo, str, Part], Awaitable[Any]]


async def kill_worker(_zoo: Zoo, _session: str, worker: Part) -> None:
    worker.kill()
    await worker.gone()


async def kill_agent(zoo: Zoo, session: str, _worker: Part) -> None:
    kill_pids(zoo.agent(session))


async def kill_holder(zoo: Zoo, session: str, _worker: Part) -> None:
    kill_pids(zoo.holder(session))


async def kill_agent_and_worker(zoo: Zoo, session: str, worker: Part) -> None:
    kill_pids(zoo.agent(session), worker.pid)
    await worker.gone()


async def stop_worker(_zoo: Zoo, session: str, worker: Part) -> None:
    assert await worker.terminate() == 0
    assert belonging(session) == []


async def close_session(zoo: Zoo, session: str, _worker: Part) -> None:
    await zoo.hand.command(session, Close())
    await zoo.hand.has(session, "session.closed")
    assert belonging(session) == []


async def kill_session(zoo: Zoo, session: str, _worker: Part) -> None:
    await zoo.hand.command(session, Kill())
    await zoo.hand.has(session, "session.closed")


@pytest.mark.parametrize(
    "end",
    [
        kill_worker,
        kill_agent,
        kill_holder,
        stop_worker,
        close_session,
        pytest.param(kill_agent_and_worker, marks=pytest.mark.long),
        pytest.param(kill_session, marks=pytest.mark.long),
    ],
    ids=lambda end: end.__name__,
)
async def test_nothing_is_left(host_stage: Stage, zoo: Zoo, end: End) -> None:
    worker = await host_stage.start("adapters", only="unruly", close_grace=0.2)
    session = await zoo.begin()
    await end(zoo, session, worker)
    await zoo.empty(session)
    if worker.running:
        await zoo.hand.has(session, "turn.completed")
    else:
        await worker.launch()  # the log gets its ends from the next worker
    events = await zoo.hand.has(session, "turn.completed")
    assert those(events, "turn.completed")[0].data.outcome in {"aborted", "error"}
    await zoo.hand.verify(session)


async def test_when_the_holder_is_killed_with_the_worker_the_next_worker_ends_what_bears_mark_or_lock(
    host_stage: Stage, zoo: Zoo
) -> None:
    worker = await host_stage.start("adapters", only="unruly")
    session = await zoo.begin([*TAME, "unmarked"])
    kill_pids(zoo.holder(session), worker.pid)
    await worker.gone()
    await worker.launch()
    await zoo.hand.has(session, "turn.completed", outcome="aborted")
    await zoo.empty(session)


@pytest.mark.long
async def test_what_shows_nothing_outlives_only_the_death_of_holder_and_worker_at_once(
    host_stage: Stage, zoo: Zoo
) -> None:
    """The limit of what is contained without a supervisor. `trunkline up` ends this, too (`test_supervisor`)."""
    worker = await host_stage.start("adapters", only="unruly")
    session = await zoo.begin(["bare"])
    kill_pids(zoo.holder(session), worker.pid)
    await worker.gone()
    await worker.launch()
    await zoo.hand.has(session, "turn.completed", outcome="aborted")
    assert all("bare_now" in info.command for info in belonging(session))
    assert set(HIDING) >= {"bare"}
