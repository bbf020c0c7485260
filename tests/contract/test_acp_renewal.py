"""The ACP adapter with agents whose process has to give way to another: that heed no interrupt, or whose login was refused."""

import signal
from pathlib import Path

import pytest
from tests.contract.acp_running import STAND_IN, running

from trunkline_testkit import eventually, processes
from trunkline_wire.session import SessionInitialized
from trunkline_wire.turn import MessageUser, TurnCompleted, TurnStarted
from trunkline_wire.work import ErrorRaised


@pytest.fixture
def hasty(tmp_path: Path) -> dict[str, str]:
    """Makes the fake an agent `hasty`, whose profile gives an interrupt half a second, and knows how it says that its key was refused."""
    lines = ('title = "Hasty"', 'command = ["acp_stand_in.py"]', "interrupt_s = 0.5", "signed_out = 'key was refused'")
    (tmp_path / "hasty.toml").write_text("\n".join(lines))
    return {"TRUNKLINE_ACP_PROFILES": str(tmp_path), "TRUNKLINE_PROGRAM_ACP_HASTY": STAND_IN}


@pytest.mark.parametrize("behaviour", ["", "load"])
async def test_it_is_ended_and_its_session_goes_on(tmp_path: Path, hasty: dict[str, str], behaviour: str) -> None:
    async with running(tmp_path, behaviour, agent="hasty", source=hasty) as agent:
        await agent.turn("hello")
        await agent.session.set_mode("ask")
        await agent.session.set_model("large")
        await agent.session.set_thinking("max")
        await agent.send("deaf", command="cmd_2")
        await agent.wait(TurnStarted, 2)
        before = agent.session.pid
        await agent.send("second", command="cmd_3")
        await agent.session.interrupt()
        await agent.session.interrupt()
        ended = await agent.wait(TurnCompleted, 2)
        assert (ended.outcome, ended.error) == ("interrupted", None)
        assert processes.snapshot(before) is None
        # What waited is said to the next process, which knows of what was said before.
        assert (await agent.wait(TurnCompleted, 3)).outcome == "success"
        assert agent.session.pid != before
        assert (await agent.said("recall")).splitlines() == ["hello", "deaf", "second", "recall"]
        assert await agent.told("options") == {"mode": "ask", "model": "large", "effort": "xhigh"}
        assert [fact.cause for fact in agent.facts(TurnStarted)] == [f"cmd_{number}" for number in range(1, 6)]
        assert len({one.native_session for one in agent.all(SessionInitialized)}) == 1
        assert agent.all(MessageUser) == []


async def test_a_prompt_that_comes_meanwhile_waits_for_the_next_process(tmp_path: Path, hasty: dict[str, str]) -> None:
    async with running(tmp_path, agent="hasty", source=hasty) as agent:
        for number in (1, 3):
            await agent.send("deaf", command=f"cmd_{number}")
            await agent.session.interrupt()
            assert (await agent.wait(TurnCompleted, number)).outcome == "interrupted"
            await agent.send("hello", command=f"cmd_{number + 1}")
            assert (await agent.wait(TurnCompleted, number + 1)).outcome == "success"


@pytest.mark.parametrize(("behaviour", "told"), [("single", []), ("forgetful", ["history_lost"])])
async def test_one_that_takes_no_session_up_ends_with_it(
    tmp_path: Path, hasty: dict[str, str], behaviour: str, told: list[str]
) -> None:
    async with running(tmp_path, behaviour, agent="hasty", source=hasty) as agent:
        await agent.send("deaf")
        await agent.session.interrupt()
        assert (await agent.wait(TurnCompleted)).outcome == "interrupted"
        await agent.until_over()
        assert [one.code for one in agent.all(ErrorRaised)] == told
        # The deaf one has to be killed; the next one, which knows no session, may have left by itself before.
        ended = await agent.session.close()
        killed = ended.signal in {signal.SIGTERM, signal.SIGKILL}
        assert killed or (behaviour == "forgetful" and ended.code == 0)


async def test_one_that_heeds_it_is_left_alone(tmp_path: Path, hasty: dict[str, str]) -> None:
    async with running(tmp_path, agent="hasty", source=hasty) as agent:
        await agent.send("long")
        before = agent.session.pid
        await agent.session.interrupt()
        assert (await agent.wait(TurnCompleted)).outcome == "interrupted"
        await agent.send("long", command="cmd_2")
        # Fifty words take a second, which is twice the limit.
        await eventually(lambda: any("word50" in one.raw.decode() for one in agent.natives), 30)
        assert agent.session.pid == before
        assert len(agent.all(TurnCompleted)) == 1


async def test_one_whose_key_was_refused_is_started_again_by_the_next_prompt(
    tmp_path: Path, hasty: dict[str, str]
) -> None:
    """The fake, once refused, refuses every prompt; it may find another key when it starts."""
    async with running(tmp_path, agent="hasty", source=hasty) as agent:
        await agent.turn("hello")
        before = agent.session.pid
        ended = await agent.turn("refused")
        assert (ended.outcome, ended.error and ended.error.code) == ("error", "agent_auth")
        assert agent.session.pid == before, "nobody has prompted it"
        assert (await agent.said("recall")).splitlines() == ["hello", "refused", "recall"]
        assert agent.session.pid != before


async def test_one_whose_key_was_refused_and_that_takes_no_session_up_stays(
    tmp_path: Path, hasty: dict[str, str]
) -> None:
    async with running(tmp_path, "single", agent="hasty", source=hasty) as agent:
        before = agent.session.pid
        for _ in range(2):
            ended = await agent.turn("refused")
            assert (ended.error and ended.error.code) == "agent_auth"
        assert agent.session.pid == before
