"""The real OpenCode through the whole product: its server is killed and started anew, and its events are cut off for ten seconds.

What counts is the log: against what the server itself keeps, nothing is lost in it and nothing told twice.
"""

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.live.opencode_bench import Bench
from tests.live.opencode_server import PASSWORD, Server

from trunkline_testkit import eventually
from trunkline_testkit.agents import require
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.product import Client, Product, running

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(900)]

CUT_S = 10.0
SLOW = 180.0
"""Seconds that a step may take: the program is slow to begin."""


@pytest.fixture
def bench(tmp_path: Path, scripted_api: ScriptedApi) -> Iterator[Bench]:
    require("opencode")
    made = Bench(tmp_path / "bench", scripted_api)
    yield made
    scripted_api.release()
    assert made.left() == [], "processes of the agent outlive the test"


@pytest.fixture
async def server(bench: Bench) -> AsyncGenerator[Server]:
    made = Server(bench.source, bench.project)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def product(bench: Bench, tmp_path: Path) -> AsyncGenerator[Product]:
    async with running(tmp_path / "home", {"PATH": bench.source["PATH"]}) as started:
        yield started


async def begin(client: Client, bench: Bench, server: Server, tmp_path: Path) -> str:
    file = tmp_path / "password"
    file.write_text(PASSWORD)
    native = {"server": server.url, "password_file": str(file)}
    created = await client.call(
        "session.create", adapter="opencode", cwd=str(bench.project), options={"native": native}
    )
    session: str = created["session"]
    await client.subscribe(session, start="start")
    return session


async def kept(server: Server, native: str, project: Path) -> list[dict[str, Any]]:
    """The session's messages as the server has stored them, asked past the relay."""
    word = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
    url = f"{server.direct}/session/{native}/message"
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Basic {word}"}) as http,
        http.get(url, params={"directory": str(project)}) as answer,
    ):
        return await answer.json()


def stored_texts(messages: list[dict[str, Any]]) -> list[str]:
    return [
        part["text"]
        for message in messages
        if message["info"]["role"] == "assistant"
        for part in message["parts"]
        if part["type"] == "text" and part["text"]
    ]


def told_texts(client: Client) -> list[str]:
    told = [event["data"] for event in client.events("message.assistant") if not event["data"].get("aborted")]
    return [block["text"] for data in told for block in data["content"] if block["type"] == "text"]


def assert_in_pairs(client: Client) -> None:
    """Every turn and every call has one beginning and one end, and no event came twice."""
    assert len(client.events("turn.started")) == len(client.events("turn.completed"))
    for kind in ("tool.started", "tool.completed", "permission.requested"):
        times = Counter(event["item"] for event in client.events(kind))
        assert not times or max(times.values()) == 1, kind
    started = {event["item"] for event in client.events("tool.started")}
    assert started == {event["item"] for event in client.events("tool.completed")}
    numbers = [event["seq"] for event in client.events() if "seq" in event]
    assert len(numbers) == len(set(numbers))


async def assert_clean(product: Product, session: str) -> None:
    code, out, err = await product.cli("verify", session, within=SLOW)
    assert code == 0, f"{out}\n{err}"


async def test_events_that_are_cut_off_for_ten_seconds_in_a_burst(
    bench: Bench, server: Server, product: Product, tmp_path: Path
) -> None:
    async with await product.client() as client:
        session = await begin(client, bench, server, tmp_path)
        await client.call("session.prompt", session=session, text="SAY=Before the cut.", within=SLOW)
        await client.wait("turn.completed", within=SLOW)
        native = (await client.wait("session.initialized"))["data"]["native_session"]

        # A burst of pieces over some fifteen seconds, of which the middle ten are not heard.
        await client.call("session.prompt", session=session, text="SCENARIO=slow N=300 DELAY_MS=50", within=SLOW)
        await client.wait("turn.started", count=2, within=SLOW)
        await client.wait("message.delta", within=SLOW)
        server.cut()
        connections = server.accepted
        clock = asyncio.get_running_loop().time
        end = clock() + CUT_S
        await eventually(lambda: clock() >= end, CUT_S + 5)
        assert server.accepted == connections, "nothing has passed meanwhile"
        server.heal()

        done = await client.wait("turn.completed", count=2, within=SLOW)
        assert done["data"]["outcome"] == "success"
        await client.call("session.prompt", session=session, text="SAY=After the cut.", within=SLOW)
        await client.wait("turn.completed", count=3, within=SLOW)

        whole = "".join(f"piece {number} " for number in range(1, 301))
        assert told_texts(client) == ["Before the cut.", whole, "After the cut."]
        assert told_texts(client) == stored_texts(await kept(server, native, bench.project))
        assert_in_pairs(client)
    await assert_clean(product, session)


async def test_a_turn_that_ends_while_nobody_hears_it(
    bench: Bench, server: Server, product: Product, tmp_path: Path
) -> None:
    async with await product.client() as client:
        session = await begin(client, bench, server, tmp_path)
        await client.call("session.prompt", session=session, text="SCENARIO=hold", within=SLOW)
        await client.wait("turn.started", within=SLOW)
        native = (await client.wait("session.initialized"))["data"]["native_session"]
        await bench.api.wait_holding(timeout=SLOW)
        server.cut()
        bench.api.release()

        async def over() -> bool:
            messages = await kept(server, native, bench.project)
            return "completed" in messages[-1]["info"]["time"]

        await eventually(over, SLOW)
        server.heal()
        done = await client.wait("turn.completed", within=SLOW)
        assert (done["data"]["outcome"], done["data"]["result"]) == ("success", "Holding. Released.")
        assert told_texts(client) == stored_texts(await kept(server, native, bench.project)) == ["Holding. Released."]
        assert_in_pairs(client)
    await assert_clean(product, session)


async def test_a_server_that_is_killed_in_mid_turn_and_started_anew(
    bench: Bench, server: Server, product: Product, tmp_path: Path
) -> None:
    async with await product.client() as client:
        session = await begin(client, bench, server, tmp_path)
        await client.call("session.prompt", session=session, text="SAY=Before the kill.", within=SLOW)
        await client.wait("turn.completed", within=SLOW)
        native = (await client.wait("session.initialized"))["data"]["native_session"]
        await client.call("session.prompt", session=session, text="SCENARIO=bash CMD=touch made", within=SLOW)
        asked = await client.wait("permission.requested", within=SLOW)

        await server.kill()
        await server.start()
        done = await client.wait("turn.completed", count=2, within=SLOW)
        assert done["data"]["outcome"] == "aborted"
        # A permission does not survive its server.
        withdrawn = await client.wait("ask.withdrawn", within=SLOW)
        assert withdrawn["data"]["ask"] == asked["data"]["ask"]
        assert [event["data"]["status"] for event in client.events("tool.completed")] == ["cancelled"]
        assert not (bench.project / "made").exists()

        await client.call("session.prompt", session=session, text="SAY=After the kill.", within=SLOW)
        last = await client.wait("turn.completed", count=3, within=SLOW)
        assert (last["data"]["outcome"], last["data"]["result"]) == ("success", "After the kill.")
        told = told_texts(client)
        assert told == stored_texts(await kept(server, native, bench.project))
        assert Counter(told) == Counter(["Before the kill.", "I will use bash.", "After the kill."])
        assert len(client.events("session.initialized")) == 1, "it is the same session over the same connection"
        assert_in_pairs(client)
    await assert_clean(product, session)


async def test_its_own_server_is_killed_in_mid_turn_and_started_by_the_next_prompt(
    bench: Bench, product: Product
) -> None:
    environment = {name: value for name, value in bench.source.items() if name not in {"PATH", "TMPDIR"}}
    async with await product.client() as client:
        created = await client.call(
            "session.create", adapter="opencode", cwd=str(bench.project), options={"environment": environment}
        )
        session = created["session"]
        await client.subscribe(session, start="start")
        await client.call("session.prompt", session=session, text="SAY=One.", within=SLOW)
        await client.wait("turn.completed", within=SLOW)
        native = (await client.wait("session.initialized"))["data"]["native_session"]
        await client.call("session.prompt", session=session, text="SCENARIO=hold", within=SLOW)
        await client.wait("turn.started", count=2, within=SLOW)
        await bench.api.wait_holding(timeout=SLOW)

        served = [one for one in product.processes() if "serve" in one.cmdline() and "--port" in one.cmdline()]
        assert served
        for one in served:
            one.kill()
        done = await client.wait("turn.completed", count=2, within=SLOW)
        assert done["data"]["outcome"] == "aborted"
        bench.api.release()
        await client.call("session.prompt", session=session, text="SAY=Two.", within=SLOW)
        await client.wait("turn.completed", count=3, within=SLOW)
        assert [event["data"]["native_session"] for event in client.events("session.initialized")] == [native] * 2
        assert told_texts(client) == ["One.", "Two."]
        assert_in_pairs(client)
    await assert_clean(product, session)
