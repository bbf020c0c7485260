"""The real Codex through the running product, driven from the browser's protocol and the command line at once, and killed."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.live.codex_bench import ESCALATED, app_server, codex_source
from tests.live.test_product import assert_clean, said

from trunkline_testkit import eventually, processes
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.ports import free_port
from trunkline_testkit.product import Client, Product, running
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_session_id

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

Way = Literal["websocket", "unix socket"]
Serve = Callable[[Way, Path], AbstractAsyncContextManager[dict[str, Any]]]


@pytest.fixture
async def source(tmp_path: Path, api: ScriptedApi, codex_program: Path) -> AsyncGenerator[dict[str, str]]:
    """Codex's environment; at the end nothing runs that was started with its home."""
    home = tmp_path / "home"
    yield codex_source(home, api.url, codex_program)
    await processes.assert_no_orphans("CODEX_HOME", str(home / ".codex"))


@pytest.fixture
async def product(source: dict[str, str], tmp_path: Path) -> AsyncGenerator[Product]:
    async with running(tmp_path / "home", source) as product:
        yield product


@asynccontextmanager
async def serving(way: Way, project: Path, *, source: dict[str, str], program: Path) -> AsyncGenerator[dict[str, Any]]:
    """The native options of a session on an app-server that runs by itself."""
    if way == "unix socket":
        address = f"unix://{project / 's'}"
        async with app_server(program, source, project, "--listen", address):
            yield {"server": address}
        return
    token = project / "token"
    token.write_text("a-token-for-this-test\n")
    address = f"ws://127.0.0.1:{free_port()}"
    secured = ["--ws-auth", "capability-token", "--ws-token-file", str(token)]
    async with app_server(program, source, project, "--listen", address, *secured):
        yield {"server": address, "token_file": str(token)}


async def begin(client: Client, project: Path, **options: Any) -> str:
    created = await client.call("session.create", adapter="codex", cwd=str(project), options=options)
    session: str = created["session"]
    await client.subscribe(session, start="start")
    return session


async def command(client: Client, whose: str, verb: str, **args: Any) -> Any:
    return await client.call("session.command", session=whose, verb=verb, args=args, wait=True, within=60)


async def decide_twice(product: Product, client: Client, ask: str) -> None:
    """A browser and a shell answer the same ask at the same time: one has decided it, the other is told so."""

    async def in_the_browser() -> str:
        try:
            return (await client.call("ask.answer", ask=ask, behaviour="allow"))["outcome"]
        except TrunklineError as error:
            return error.code

    async def in_the_shell() -> str:
        code, _, err = await product.cli("approve", ask)
        return "decided" if code == 0 else err.partition("error: ")[2].partition(":")[0]

    assert sorted(await asyncio.gather(in_the_browser(), in_the_shell())) == ["already_decided", "decided"]


async def test_an_agent_of_the_worker(product: Product, tmp_path: Path) -> None:
    await two_clients_and_a_killed_worker_over_stdio(product, folder(tmp_path, "killed"))
    await a_fork_at_the_item_of_a_prompt_lacks_it(product, folder(tmp_path, "fork"))
    await assert_clean(product)


@pytest.mark.long
async def test_servers_that_run_by_themselves(
    product: Product, source: dict[str, str], codex_program: Path, api: ScriptedApi, tmp_path: Path
) -> None:
    """Each case has a server of its own; the worker, or all of the product, goes under it."""
    server = partial(serving, source=source, program=codex_program)
    await an_ask_outlives_the_worker(product, server, folder(tmp_path, "ws"), "websocket")
    await an_ask_outlives_the_worker(product, server, folder(tmp_path, "unix"), "unix socket")
    await what_a_turn_said_while_no_worker_was_there_is_told(product, server, folder(tmp_path, "told"), api)
    await a_server_that_died_with_the_worker_leaves_nothing_open(product, server, folder(tmp_path, "died"))
    await an_ask_outlives_an_orderly_stop_too(product, server, folder(tmp_path, "stop"))
    await assert_clean(product)


def folder(parent: Path, name: str) -> Path:
    made = parent / name
    made.mkdir()
    return made


async def two_clients_and_a_killed_worker_over_stdio(product: Product, project: Path) -> None:
    async with await product.client(tcp=True) as client:
        session = await begin(client, project)
        code, _, err = await product.cli("send", session, f"SCENARIO=bash CMD=touch one {ESCALATED}")
        assert code == 0, err
        asked = await client.wait("permission.requested", within=60)
        assert (asked["data"]["title"], asked["data"]["reason"]) == ("touch one", "please")
        await decide_twice(product, client, asked["data"]["ask"])
        assert (await client.wait("turn.completed"))["data"]["outcome"] == "success"
        assert (project / "one").exists()

        # what is open when the worker dies ends with it, and is asked again with the next prompt
        await client.call("session.prompt", session=session, text=f"SCENARIO=bash CMD=touch two {ESCALATED}")
        asked = await client.wait("permission.requested", count=2)
        old = product.kill("adapters")
        aborted = await client.wait("turn.completed", count=2, within=60)
        assert aborted["data"]["outcome"] == "aborted"
        await product.restarted("adapters", old)
        with pytest.raises(TrunklineError) as error:
            await client.call("ask.answer", ask=asked["data"]["ask"], behaviour="allow")
        assert error.value.code == "withdrawn"
        await client.call("session.prompt", session=session, text=f"SCENARIO=bash CMD=touch two {ESCALATED}")
        again = await client.wait("permission.requested", count=3, within=60)
        assert again["data"]["ask"] != asked["data"]["ask"]
        await decide_twice(product, client, again["data"]["ask"])
        assert (await client.wait("turn.completed", count=3))["data"]["outcome"] == "success"
        assert (project / "two").exists()

        natives = {one["data"]["native_session"] for one in client.events("session.initialized")}
        assert len(natives) == 1, "it is the same thread"
        assert {one["session"] for one in client.events()} == {session}


async def a_fork_at_the_item_of_a_prompt_lacks_it(product: Product, project: Path) -> None:
    async with await product.client() as client:
        session = await begin(client, project)
        for number, word in enumerate(("One.", "Two."), 1):
            await client.call("session.prompt", session=session, text=f"SAY={word}")
            await client.wait("turn.completed", count=number, within=60)
        second = client.events("message.user")[1]
        forked = new_session_id()
        await command(client, session, "fork", session=forked, at=second["item"], prompt="SAY=Forked.")

        async def is_there() -> bool:
            return forked in {one["session"] for one in (await client.call("session.list"))["sessions"]}

        await eventually(is_there, 60)
        await client.subscribe(forked, start="start")
        await client.wait("turn.completed", session=forked, within=60)
        shown = json.dumps(await command(client, forked, "native", method="thread/turns/list", params={}))
        assert "SAY=Forked." in shown
        assert "SAY=One." in shown
        assert "SAY=Two." not in shown


async def an_ask_outlives_the_worker(product: Product, server: Serve, project: Path, way: Way) -> None:
    async with (
        server(way, project) as native,
        await product.client(tcp=True) as client,
    ):
        session = await begin(client, project, native=native, mode="untrusted")
        await client.call("session.prompt", session=session, text="SAY=Before.")
        await client.wait("turn.completed", within=60)
        await client.call("session.prompt", session=session, text="SCENARIO=bash CMD=touch made")
        asked = await client.wait("permission.requested")

        old = product.kill("adapters")
        await product.restarted("adapters", old)
        resumed = await client.wait("session.resumed", within=60)
        assert resumed["data"]["how"] == "adopted"
        listed = (await client.call("ask.list", session=session))["asks"]
        assert [one["ask"] for one in listed] == [asked["data"]["ask"]]
        await decide_twice(product, client, asked["data"]["ask"])
        done = await client.wait("turn.completed", count=2)
        assert (done["data"]["outcome"], done["turn"]) == ("success", asked["turn"])
        assert (project / "made").exists()

        assert len(client.events("permission.requested")) == 1
        assert len(client.events("ask.delivered")) == 1
        assert client.events("ask.withdrawn") == []
        assert said(client, session)[:2] == ["Before.", "I will use exec_command."]
        assert len(said(client, session)) == 3, "nothing is told twice"

        # and it goes on, for both clients
        code, out, err = await product.cli("send", "--wait", session, "SAY=After.")
        assert code == 0, f"{out}\n{err}"
        await client.wait("turn.completed", count=3)
        assert said(client, session)[-1] == "After."
        await client.call("session.close", session=session, wait=True)


async def what_a_turn_said_while_no_worker_was_there_is_told(
    product: Product, server: Serve, project: Path, api: ScriptedApi
) -> None:
    async with (
        server("websocket", project) as native,
        await product.client() as client,
    ):
        session = await begin(client, project, native=native)
        await client.call("session.prompt", session=session, text="SCENARIO=hold")
        await client.wait("turn.started", within=60)
        await api.wait_holding()
        old = product.kill("adapters")
        api.release()
        await product.restarted("adapters", old)
        done = await client.wait("turn.completed", within=60)
        assert (done["data"]["outcome"], done["data"]["result"]) == ("success", "Holding. Released.")
        assert said(client, session) == ["Holding. Released."]
        assert len(client.events("turn.started")) == 1
        await client.call("session.close", session=session, wait=True)


async def a_server_that_died_with_the_worker_leaves_nothing_open(
    product: Product, server: Serve, project: Path
) -> None:
    async with await product.client() as client:
        async with server("websocket", project) as native:
            session = await begin(client, project, native=native, mode="untrusted")
            await client.call("session.prompt", session=session, text="SCENARIO=bash CMD=touch made")
            asked = await client.wait("permission.requested", within=60)
            adapters = product.find("adapters")
            assert adapters is not None
            adapters.suspend()  # it sees nothing of the server's end
        old = product.kill("adapters")
        await product.restarted("adapters", old)
        withdrawn = await client.wait("ask.withdrawn", within=60)
        assert (withdrawn["data"]["ask"], withdrawn["data"]["why"]) == (asked["data"]["ask"], "agent_died")
        assert (await client.wait("turn.completed"))["data"]["outcome"] == "aborted"
        await eventually(lambda: client.events("session.status")[-1]["data"]["status"] == "stopped", 10)


async def an_ask_outlives_an_orderly_stop_too(product: Product, server: Serve, project: Path) -> None:
    async with server("websocket", project) as native:
        async with await product.client() as client:
            session = await begin(client, project, native=native, mode="untrusted")
            await client.call("session.prompt", session=session, text="SCENARIO=bash CMD=touch made")
            asked = await client.wait("permission.requested", within=60)
        await product.stop()
        await product.start()
        async with await product.client() as client:
            await client.subscribe(session, start="start")
            await client.wait("session.resumed", lambda e: e["data"]["how"] == "adopted", within=60)
            decided = await client.call("ask.answer", ask=asked["data"]["ask"], behaviour="allow")
            assert decided["outcome"] == "decided"
            assert (await client.wait("turn.completed"))["data"]["outcome"] == "success"
            assert (project / "made").exists()
            assert client.events("ask.withdrawn") == []
