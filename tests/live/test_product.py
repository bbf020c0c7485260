"""The real CLI through the whole product: watched, steered and approved by several clients, and killed part by part."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.product import Client, Product
from trunkline_wire import TrunklineError

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


async def start_session(client: Client, project: Path) -> str:
    created = await client.call("session.create", adapter="claude", cwd=str(project))
    session: str = created["session"]
    await client.subscribe(session, start="start")
    return session


def said(client: Client, session: str) -> list[str]:
    """The texts of the agent's messages; what only ends a message (its usage, its stop reason) has none."""
    return [text for e in client.events("message.assistant", session) if (text := text_of(e))]


def text_of(event: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in event["data"]["content"] if block["type"] == "text")


async def assert_clean(product: Product, session: str | None = None) -> None:
    """Of one session, or of all."""
    code, out, err = await product.cli("verify", *([session] if session else []))
    assert code == 0, f"{out}\n{err}"


async def test_a_conversation_with_two_clients(product: Product, project: Path, api: ScriptedApi) -> None:
    async with await product.client() as first, await product.client(tcp=True) as second:
        session = await start_session(first, project)

        await first.call("session.prompt", session=session, text="SCENARIO=slow N=20 DELAY_MS=50")
        done = await first.wait("turn.completed")
        assert done["data"]["outcome"] == "success"
        pieces = [(e["data"]["at"], e["data"]["text"]) for e in first.events("message.delta")]
        assert len(pieces) >= 5
        (whole,) = said(first, session)
        assert all(whole[at : at + len(text)] == text for at, text in pieces)

        # the second client approves what the first one watches
        made = project / "made"
        await first.call("session.prompt", session=session, text=f"SCENARIO=bash CMD=touch {made}")
        asked = await first.wait("permission.requested")
        assert asked["data"]["name"] == "Bash"
        open_asks = await second.call("ask.list", session=session)
        assert [a["ask"] for a in open_asks["asks"]] == [asked["data"]["ask"]]
        answer = await second.call("ask.answer", session=session, ask=asked["data"]["ask"], behaviour="allow")
        assert answer["outcome"] == "decided"
        await first.wait("ask.decided")
        await first.wait("ask.delivered")
        await first.wait("turn.completed", count=2)
        assert made.exists()

        # the loser of a race is told
        with pytest.raises(TrunklineError) as late:
            await first.call("ask.answer", session=session, ask=asked["data"]["ask"], behaviour="deny")
        assert late.value.code == "already_decided"

        # a denial
        refused = project / "refused"
        await first.call("session.prompt", session=session, text=f"SCENARIO=bash CMD=touch {refused}")
        asked = await first.wait("permission.requested", count=2)
        await second.call(
            "ask.answer", session=session, ask=asked["data"]["ask"], behaviour="deny", message="not today"
        )
        tool = await first.wait("tool.completed", count=2)
        assert tool["data"]["status"] == "rejected"
        await first.wait("turn.completed", count=3)
        assert not refused.exists()

        # a question
        await first.call("session.prompt", session=session, text="SCENARIO=question")
        question = await second_question(second, session)
        chosen = question["questions"][0]["options"][0]["label"]
        await second.call(
            "ask.answer",
            session=session,
            ask=question["ask"],
            behaviour="answered",
            answers={question["questions"][0]["id"]: chosen},
        )
        await first.wait("turn.completed", count=4)
        assert chosen in "".join(str(r) for r in api.tool_results)

        # an interrupt
        await first.call("session.prompt", session=session, text="SCENARIO=hold")
        await first.wait("turn.started", count=5)
        await api.wait_holding()
        await second.call("session.interrupt", session=session)
        ended = await first.wait("turn.completed", count=5)
        assert ended["data"]["outcome"] == "interrupted"

        # the session id never changed, and the log says nothing else
        assert {e["session"] for e in first.events()} == {session}
        assert len({e["id"] for e in first.events() if "seq" in e}) == len([e for e in first.events() if "seq" in e])
    await assert_clean(product, session)


async def second_question(client: Client, session: str) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while True:
            asks = (await client.call("ask.list", session=session))["asks"]
            if asks:
                return asks[0]["requested"]
            await asyncio.sleep(0.05)


async def test_kill_9_with_a_turn_and_an_ask_open(product: Product, project: Path) -> None:
    async with await product.client() as client:
        session = await start_session(client, project)
    for part in ("gateway", "projector", "permissions", "adapters", "nats-server"):
        made = project / part
        await kill_amid(product, session, made, part)
        assert made.exists()
    await a_second_turn_after_the_worker_was_killed(product, project)
    await assert_clean(product)


async def kill_amid(product: Product, session: str, made: Path, part: str) -> None:
    """A part is killed with a turn of the session and an ask open, which is to make a file."""
    client = await product.client_when_up()
    try:
        await client.subscribe(session, start="now")
        await client.call("session.prompt", session=session, text=f"SCENARIO=bash CMD=touch {made}")
        asked = await client.wait("permission.requested")

        old = product.kill(part)
        await product.restarted(part, old)
        cursor = client.cursor
        seen = [e["id"] for e in client.events() if "seq" in e]
        await client.close()
        client = await product.client_when_up()
        await client.subscribe(session, cursor=cursor)

        if part == "adapters":
            # the agent died with its owner: the ask is over, the next prompt goes on
            await client.wait("turn.completed", lambda e: e["data"]["outcome"] == "aborted")
            await client.call("session.prompt", session=session, text=f"SCENARIO=bash CMD=touch {made}")
            asked = await client.wait("permission.requested", lambda e: e["data"]["ask"] != asked["data"]["ask"])
        answer = await client.call("ask.answer", session=session, ask=asked["data"]["ask"], behaviour="allow")
        assert answer["outcome"] == "decided"
        await client.wait("turn.completed", lambda e: e["data"]["outcome"] == "success")
        new = [e["id"] for e in client.events() if "seq" in e]
        assert not set(seen) & set(new), "the cursor gave events twice"
        assert len(new) == len(set(new))
    finally:
        await client.close()


async def a_second_turn_after_the_worker_was_killed(product: Product, project: Path) -> None:
    async with await product.client() as client:
        session = await start_session(client, project)
        await client.call("session.prompt", session=session, text="SAY=one")
        await client.wait("turn.completed")
        native = (await client.wait("session.initialized"))["data"]["native_session"]

        await client.call("session.prompt", session=session, text="SCENARIO=hold")
        await client.wait("turn.started", count=2)
        old = product.kill("adapters")
        aborted = await client.wait("turn.completed", count=2)
        assert aborted["data"]["outcome"] == "aborted"
        await product.restarted("adapters", old)

        await client.call("session.prompt", session=session, text="SAY=two")
        await client.wait("turn.completed", count=3)
        assert said(client, session)[-1] == "two"
        again = (await client.wait("session.initialized", count=2))["data"]["native_session"]
        assert again == native


@pytest.mark.long
async def test_ten_sessions_at_once(product: Product, project: Path) -> None:
    async with await product.client() as client:
        sessions = [await start_session(client, project) for _ in range(10)]
        await asyncio.gather(
            *(client.call("session.prompt", session=s, text=f"SAY=I am {s}.") for s in sessions),
        )
        for session in sessions:
            await client.wait("turn.completed", session=session, within=120)
            assert said(client, session) == [f"I am {session}."]
        for session in sessions:
            await client.call("session.close", session=session)
            await client.wait("session.closed", session=session)
        listed = await client.call("session.list")
        assert listed["total"] == 10
    await assert_clean(product)
