"""A turn on a server that runs by itself goes on while no worker lives, and the next worker takes it up: over a real log."""

import asyncio
import json
import os
import signal
import subprocess
import urllib.request
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from trunkline_testkit import eventually
from trunkline_testkit.product import Client, Product, running

STAND_IN = Path(__file__).parents[2] / "contract" / "opencode_stand_in.py"

pytestmark = pytest.mark.timeout(120)


class Server:
    """The fake server as a program of its own, and a client of it that is none of ours."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        return await asyncio.to_thread(self._ask, method, path, body)

    def _ask(self, method: str, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data=data, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            raw = answer.read()
        return json.loads(raw) if raw else None

    async def rests(self) -> None:
        async def at_rest() -> bool:
            return await self.ask("GET", "/session/status") == {}

        await eventually(at_rest, 20)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    home = tmp_path / "server"
    home.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    arguments = [str(STAND_IN), "serve", "--port", "0"]
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Server(process.stdout.readline().split()[-1])
        process.kill()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


@pytest.fixture
async def product(tmp_path: Path) -> AsyncGenerator[Product]:
    async with running(tmp_path / "home", {"PATH": os.environ["PATH"]}) as product:
        yield product


class Absence:
    """No worker lives within: the one that there was is killed, and who would start another is held."""

    def __init__(self, product: Product) -> None:
        self._product = product

    async def __aenter__(self) -> None:
        assert self._product.process is not None
        self._supervisor = psutil.Process(self._product.process.pid)
        self._supervisor.suspend()
        self._old = self._product.kill("adapters")

    async def __aexit__(self, *_: object) -> None:
        self._supervisor.send_signal(signal.SIGCONT)
        await self._product.restarted("adapters", self._old)


async def begin(client: Client, server: Server, project: Path) -> tuple[str, str]:
    """A session on the server, after its first turn: its id, and the server's."""
    options = {"native": {"server": server.url}}
    created = await client.call("session.create", adapter="opencode", cwd=str(project), options=options)
    session: str = created["session"]
    await client.subscribe(session, start="start")
    await client.call("session.prompt", session=session, text="before")
    await client.wait("turn.completed")
    return session, (await client.wait("session.initialized"))["data"]["native_session"]


def said(client: Client) -> list[str]:
    return [block["text"] for event in client.events("message.assistant") for block in event["data"]["content"]]


async def taken_up(product: Product, client: Client, session: str) -> Counter[str]:
    """The types of all events once the session was taken up; the log holds what it has to."""
    resumed = await client.wait("session.resumed", within=40)
    assert resumed["data"]["how"] == "adopted"
    code, out, err = await product.cli("verify", session)
    assert code == 0, f"{out}\n{err}"
    return Counter(event["type"] for event in client.events(session=session))


async def test_an_ask_outlives_its_worker(product: Product, server: Server, project: Path) -> None:
    async with await product.client() as client:
        session, _ = await begin(client, server, project)
        await client.call("session.prompt", session=session, text="ask ls")
        asked = await client.wait("permission.requested")
        async with Absence(product):
            pass
        kinds = await taken_up(product, client, session)
        assert (kinds["permission.requested"], kinds["ask.withdrawn"], kinds["tool.started"]) == (1, 0, 1)
        await client.call("ask.answer", ask=asked["data"]["ask"], behaviour="allow")
        done = await client.wait("turn.completed", count=2)
        assert (done["data"]["outcome"], done["turn"]) == ("success", asked["turn"])
        assert len(client.events("ask.delivered")) == 1
        await client.call("session.prompt", session=session, text="and on")
        assert (await client.wait("turn.completed", count=3))["data"]["outcome"] == "success"
        assert said(client)[0] == "before"
        assert said(client)[-1] == "and on"
        assert len(said(client)) == 3


async def test_what_was_said_while_no_worker_lived_is_told_once(
    product: Product, server: Server, project: Path
) -> None:
    """Another client answers the ask, and the turn ends."""
    async with await product.client() as client:
        session, _ = await begin(client, server, project)
        await client.call("session.prompt", session=session, text="ask ls")
        asked = await client.wait("permission.requested")
        async with Absence(product):
            (waiting,) = await server.ask("GET", "/permission")
            await server.ask("POST", f"/permission/{waiting['id']}/reply", {"reply": "once"})
            await server.rests()
        kinds = await taken_up(product, client, session)
        done = await client.wait("turn.completed", count=2)
        assert (done["data"]["outcome"], done["turn"]) == ("success", asked["turn"])
        assert [one["data"]["ask"] for one in client.events("ask.withdrawn")] == [asked["data"]["ask"]]
        assert (kinds["tool.started"], kinds["tool.completed"], kinds["turn.started"]) == (1, 1, 2)
        assert said(client) == ["before", '{"reply": "once"}']


async def test_a_turn_that_was_aborted_meanwhile_ends_with_what_it_asked(
    product: Product, server: Server, project: Path
) -> None:
    async with await product.client() as client:
        session, native = await begin(client, server, project)
        await client.call("session.prompt", session=session, text="ask ls")
        asked = await client.wait("permission.requested")
        async with Absence(product):
            await server.ask("POST", f"/session/{native}/abort")
            await server.rests()
        await taken_up(product, client, session)
        done = await client.wait("turn.completed", count=2)
        assert (done["data"]["outcome"], done["turn"]) == ("interrupted", asked["turn"])
        assert [one["data"]["ask"] for one in client.events("ask.withdrawn")] == [asked["data"]["ask"]]
        assert [one["data"]["status"] for one in client.events("tool.completed")] == ["cancelled"]


async def test_a_text_that_is_written_goes_on_and_is_whole_at_its_end(
    product: Product, server: Server, project: Path
) -> None:
    async with await product.client() as client:
        session, _ = await begin(client, server, project)
        await client.call("session.prompt", session=session, text="slow")
        await client.wait("turn.started", count=2)
        async with Absence(product):
            pass
        kinds = await taken_up(product, client, session)
        assert kinds["turn.started"] == 2
        done = await client.wait("turn.completed", count=2)
        assert done["data"]["outcome"] == "success"
        assert said(client) == ["before", "word0 word1 word2 word3 "]
