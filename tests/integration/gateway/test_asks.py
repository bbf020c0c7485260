"""Asks over the gateway: who is first decides, who is late is told, who may not is refused."""

import asyncio
import contextlib
import os
import sys
import time
from asyncio.subprocess import PIPE
from typing import Any

import psutil
import pytest
from tests.integration.gateway.rig import Rig, ask, begin_turn

from trunkline_gateway import peers
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskWithdrawn, Question, QuestionAsked, QuestionOption
from trunkline_wire.ids import ask_id, new_command_id


async def test_of_two_clients_one_decides_and_the_other_is_told(rig: Rig) -> None:
    await rig.decide_asks()
    async with await rig.session() as writer, await rig.client() as phone, await rig.client(token=rig.token) as laptop:
        await phone.call("subscribe", session=writer.session)
        await laptop.call("subscribe", session=writer.session)
        id_ = ask(writer, "toolu_1", begin_turn(writer))
        await phone.wait("permission.requested")
        await laptop.wait("permission.requested")
        (listed,) = (await laptop.call("ask.list"))["asks"]
        assert (listed["ask"], listed["status"], listed["kind"]) == (id_, "open", "permission")

        mine = new_command_id()
        outcomes = await asyncio.gather(
            phone.call("ask.answer", ask=id_, behaviour="allow", id=mine),
            laptop.call("ask.answer", ask=id_, behaviour="deny"),
            return_exceptions=True,
        )
        decided = await phone.wait("ask.decided")
        assert await laptop.wait("ask.decided") == decided
        won, lost = outcomes if isinstance(outcomes[0], dict) else reversed(outcomes)
        assert isinstance(won, dict)
        assert won["outcome"] == "decided"
        assert won["decision"]["behaviour"] == decided["data"]["behaviour"]
        assert isinstance(lost, TrunklineError)
        assert (lost.code, lost.details["behaviour"]) == ("already_decided", decided["data"]["behaviour"])

        # a repetition of the winner's answer gets the winner's outcome, whoever won
        winner = decided["data"]["answer"]
        again = await laptop.call("ask.answer", ask=id_, behaviour=decided["data"]["behaviour"], id=winner)
        assert again["outcome"] == "decided"
        assert (await laptop.call("ask.list"))["asks"] == []
        assert len((await laptop.call("ask.list", status="decided"))["asks"]) == 1


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"behaviour": "answered", "answers": {}}, "behaviour"),
        ({"behaviour": "allow", "option": "maybe"}, "option"),
        ({"behaviour": "allow", "updated_input": "ls"}, "updated_input"),
        ({"behaviour": "deny", "updated_input": {}}, "updated_input"),
        ({"behaviour": "deny", "rule_updates": []}, "rule_updates"),
    ],
)
async def test_an_answer_that_does_not_fit_leaves_the_ask_open(rig: Rig, params: dict[str, Any], field: str) -> None:
    await rig.decide_asks()
    async with await rig.session() as writer, await rig.client() as client:
        id_ = ask(writer, "t")
        await writer.flush()
        await eventually(lambda: rig.running.gateway.directory.ask(id_))
        with pytest.raises(TrunklineError) as refused:
            await client.call("ask.answer", ask=id_, **params)
        assert (refused.value.code, refused.value.details["field"]) == ("bad_answer", field)
        assert rig.answers == []
        assert (await client.call("ask.answer", ask=id_, behaviour="allow", option="yes"))["outcome"] == "decided"


async def test_asks_that_are_unknown_or_over(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        with pytest.raises(TrunklineError) as refused:
            await client.call("ask.answer", ask=ask_id(writer.session, "x", "y"), behaviour="allow")
        assert refused.value.code == "unknown_ask"
        id_ = ask(writer, "t")
        writer.append(AskWithdrawn(ask=id_, why="cancelled"))
        await writer.flush()
        with pytest.raises(TrunklineError) as refused:
            await client.call("ask.answer", ask=id_, session=writer.session, behaviour="allow")
        assert refused.value.code == "withdrawn"


async def test_nobody_decides_in_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_gateway.methods.asks.DECISION_S", 0.2)
    async with await rig.session() as writer, await rig.client() as client:
        id_ = ask(writer, "t")
        await writer.flush()
        with pytest.raises(TrunklineError) as refused:
            await client.call("ask.answer", ask=id_, session=writer.session, behaviour="allow")
        assert refused.value.code == "timeout"
        assert "may still take effect" in refused.value.message


async def test_a_question_is_answered_by_its_options(rig: Rig) -> None:
    await rig.decide_asks()
    async with await rig.session() as writer, await rig.client() as client:
        id_ = ask_id(writer.session, "inc", "q")
        colours = [QuestionOption(label="red"), QuestionOption(label="blue")]
        writer.append(
            QuestionAsked(
                ask=id_,
                incarnation="inc",
                questions=[Question(id="colour", text="Which?", options=colours, free_text=False)],
            )
        )
        await writer.flush()
        for answers in ({}, {"size": "1"}, {"colour": "green"}, {"colour": 1}, {"colour": ["red", "blue"]}):
            with pytest.raises(TrunklineError) as refused:
                await client.call("ask.answer", ask=id_, session=writer.session, behaviour="answered", answers=answers)
            assert refused.value.code == "bad_answer", answers
        done = await client.call("ask.answer", ask=id_, behaviour="answered", answers={"colour": "red"})
        assert done["outcome"] == "decided"
        assert rig.answers[0].answers == {"colour": "red"}


CLIENT = """
import asyncio, sys
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError
async def main(url, socket, token, ask):
    headers = {"Authorization": f"Bearer {token}"} if token else None
    client = await Client.connect(url, socket=socket or None, headers=headers)
    for method, params in (("ask.list", {}), ("ask.answer", {"ask": ask, "behaviour": "allow"}),
                           ("token.create", {"actor": "me", "role": "owner"})):
        try:
            await client.call(method, **params)
            print(method, "ok")
        except TrunklineError as error:
            print(method, error.code)
    await client.close()
asyncio.run(main(*sys.argv[1:]))
"""


async def run_client(rig: Rig, ask: str, *, tcp: bool, environment: dict[str, str]) -> list[str]:
    where = (rig.running.url, "", rig.token) if tcp else ("http://localhost", str(rig.running.socket), "")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, *where, ask, stdout=PIPE, env={"PATH": os.environ["PATH"], **environment}
    )
    out, _ = await process.communicate()
    return out.decode().split("\n")[:-1]


@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
async def test_an_agent_may_not_approve_itself(rig: Rig, tcp: bool) -> None:
    await rig.decide_asks()
    async with await rig.session() as writer:
        id_ = ask(writer, "t")
        await writer.flush()
        await eventually(lambda: rig.running.gateway.directory.ask(id_))
        refused = ["ask.list ok", "ask.answer agent_forbidden", "token.create agent_forbidden"]

        # marked by its environment
        marked = {"TRUNKLINE_SESSION": writer.session}
        assert await run_client(rig, id_, tcp=tcp, environment=marked) == refused

        # below a registered worker: this very test process plays it
        me = psutil.Process()
        await rig.announce_worker(rig.running.gateway.host, me.pid, me.create_time(), "fake")
        await eventually(rig.running.gateway.workers.all)
        assert await run_client(rig, id_, tcp=tcp, environment={}) == refused
        assert rig.answers == []

        # a process of the same number that began at another time is somebody else
        await rig.announce_worker(rig.running.gateway.host, me.pid, me.create_time() - 100, "fake")
        await eventually(lambda: rig.running.gateway.workers.all()[0].started < me.create_time() - 50)
        allowed = ["ask.list ok", "ask.answer ok", "token.create ok"]
        assert await run_client(rig, id_, tcp=tcp, environment={}) == allowed


async def test_an_instance_inside_a_session_is_its_agents_own(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark that the gateway carries itself is another instance's, unless that session is of this very log."""
    await rig.decide_asks()
    async with await rig.session() as writer:
        id_ = ask(writer, "t")
        await writer.flush()
        await eventually(lambda: rig.running.gateway.directory.ask(id_))
        refused = ["ask.list ok", "ask.answer agent_forbidden", "token.create agent_forbidden"]
        elsewhere, here = f"ses_{'0' * 31}1", writer.session
        marks = frozenset({f"TRUNKLINE_SESSION={elsewhere}".encode(), f"TRUNKLINE_SESSION={here}".encode()})
        monkeypatch.setattr(peers, "own_marks", lambda: marks)
        assert await run_client(rig, id_, tcp=False, environment={"TRUNKLINE_SESSION": here}) == refused
        third = {"TRUNKLINE_SESSION": f"ses_{'0' * 31}2"}
        assert await run_client(rig, id_, tcp=False, environment=third) == refused
        allowed = ["ask.list ok", "ask.answer ok", "token.create ok"]
        assert await run_client(rig, id_, tcp=False, environment={"TRUNKLINE_SESSION": elsewhere}) == allowed


async def test_an_orphan_of_an_agent_is_known_by_its_group(rig: Rig) -> None:
    """A process that was adopted by init, and emptied its environment, but stayed in the agent's process group."""
    await rig.decide_asks()
    async with await rig.session() as writer:
        id_ = ask(writer, "t")
        await writer.flush()
        await eventually(lambda: rig.running.gateway.directory.ask(id_))
        script = 'env -i PATH="$PATH" "$0" -c "$1" http://localhost "$2" "" "$3" >"$4" & sleep 60'
        out = rig.home / "out"
        leader = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            f"({script.removesuffix(' & sleep 60')} &); exec sleep 60",
            sys.executable,
            CLIENT,
            str(rig.running.socket),
            id_,
            str(out),
            env={"PATH": os.environ["PATH"], "TRUNKLINE_SESSION": writer.session},
            start_new_session=True,
        )
        try:
            await eventually(lambda: out.exists() and out.read_text().count("\n") == 3)
            assert out.read_text().split("\n")[1] == "ask.answer agent_forbidden"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(leader.pid, 9)
            await leader.wait()


async def test_looking_for_the_process_does_not_take_long(rig: Rig) -> None:
    await rig.decide_asks()
    async with await rig.session() as writer, await rig.client(token=rig.token) as client:
        asks = [ask(writer, str(number)) for number in range(5)]
        await writer.flush()
        await eventually(lambda: rig.running.gateway.directory.ask(asks[-1]))
        begun = time.monotonic()
        for id_ in asks:
            await client.call("ask.answer", ask=id_, behaviour="allow")
        assert (time.monotonic() - begun) / len(asks) < 1.0
