"""Failures from the field, by their numbers, each with its right outcome. What is tested elsewhere:

1   resume over 20,000 deltas and a new gateway    tests/chaos/cursor/test_scenario_1.py
2   a cut path, two answers                        tests/chaos/cursor/test_scenario_2.py
3   a killed adapter, an agent with children       tests/chaos/orphans/test_mcp_children.py
4   lines of up to 64 MB                           tests/unit/agentkit/test_framing.py, tests/unit/claude/test_scenarios.py
5   messages that nobody knows                     libs/trunkline_agentkit/contract/trouble.py, for every adapter
6   the agent's session id changes                 tests/unit/claude/test_scenarios.py
7   usage is counted once                          tests/unit/claude/test_scenarios.py, tests/unit/fold/test_usage.py
10  a background task starts a turn                tests/unit/claude/test_scenarios.py
11  a model API that fails for minutes             tests/unit/claude/test_scenarios.py, tests/live/test_trouble.py

Here are 8 (other origins, wrong hosts, tokens in URLs, roles), 9 (secrets) and 12 (a history of 16,000 events and 50 MB).
"""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.bench.lengthy import EVENTS, MB, Lengthy, lengthy
from tests.chaos.ground.conftest import as_administrator

from trunkline_bus.reader import read
from trunkline_testkit import eventually
from trunkline_testkit.product import Client, Product, running
from trunkline_wire import TrunklineError, subjects

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def logs(product: Product) -> str:
    """All that the services have logged, and what `trunkline up` has printed."""
    files = sorted((product.trunkline_home / "logs").rglob("*.log"))
    assert len(files) > 4, files
    return product.output() + "".join(file.read_text(errors="replace") for file in files)


# -- 8 -----------------------------------------------------------------------------------------------------------------


async def refused_by_http(url: str, headers: dict[str, str]) -> tuple[int, str]:
    async with aiohttp.ClientSession() as http, http.post(url, json={}, headers=headers) as answer:
        return answer.status, json.loads(await answer.read())["code"]


async def refused_by_ws(url: str, headers: dict[str, str]) -> int:
    async with aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(url, headers=headers)
        return refused.value.status


async def strangers_are_refused(product: Product, directory: Path) -> list[str]:
    """Scenario 8; the tokens that were used."""
    gateway, token = product.state["gateway"], product.token
    ours = {"Authorization": f"Bearer {token}"}
    for wrong in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
        assert await refused_by_ws(f"{gateway}/ws", ours | wrong) == 403
        assert await refused_by_http(f"{gateway}/api/v1/session.list", ours | wrong) == (403, "bad_origin")
    for name in ("token", "access_token"):
        query = f"?{name}={token}"
        assert await refused_by_ws(f"{gateway}/ws{query}", {}) == 401
        assert await refused_by_http(f"{gateway}/api/v1/session.list{query}", {}) == (401, "unauthorized")
        # Beside a token that would do it is refused too: it stands in histories and logs from then on.
        assert await refused_by_ws(f"{gateway}/ws{query}", ours) == 401

    async with await product.client() as owner:
        session = (await owner.call("session.create", adapter="demo", cwd=str(directory)))["session"]
        viewer: str = (await owner.call("token.create", actor="guest", role="viewer"))["token"]
    async with await Client.connect(gateway, headers={"Authorization": f"Bearer {viewer}"}) as guest:
        assert (await guest.call("session.get", session=session))["state"]["session"] == session
        with pytest.raises(TrunklineError) as refused:
            await guest.call("session.prompt", session=session, text="hello")
        assert refused.value.code == "forbidden"

    async with as_administrator(product) as bus:

        async def recorded() -> bool:
            found = await read(bus, subjects.SYSTEM, [subjects.system("refusal")])
            assert not any(secret.encode() in one.raw for one in found for secret in (token, viewer))
            codes = {json.loads(one.raw)["details"]["code"] for one in found}
            return codes >= {"bad_origin", "unauthorized", "forbidden"}

        await eventually(recorded)
        assert await read(bus, subjects.COMMANDS, [subjects.session_commands(session)]) == []
    return [token, viewer]


# -- 9 -----------------------------------------------------------------------------------------------------------------

ARGV = "argv-0f4b9c5e77d14d53"
ENVIRONMENT = "environment-93b1c7a2f08e4c1d"
PRINTED = "printed-5d0a7be3c2f14a69"
SAID = "said-b7e2046c9d1f4e35"
GIVEN = "given-2ac8f1570e6b4d92"


class Collector:
    """A stand-in for what receives traces: it keeps what is posted to it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.url = ""

    async def on_post(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.read())
        return web.Response()


@asynccontextmanager
async def collecting() -> AsyncGenerator[Collector]:
    collector = Collector()
    app = web.Application()
    app.router.add_post("/{path:.*}", collector.on_post)
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield collector
    finally:
        await runner.cleanup()


async def measured(product: Product) -> str:
    """The metrics of every service."""
    text = ""
    async with aiohttp.ClientSession() as http:
        for service in ("gateway", "projector", "permissions", "adapters"):
            process = product.find(service)
            assert process is not None
            port = process.environ()["TRUNKLINE_HTTP_PORT"]
            async with http.get(f"http://127.0.0.1:{port}/metrics") as answer:
                text += await answer.text()
    return text


async def refusals(client: Client, session: str) -> list[str]:
    """The error texts of calls that are wrong, with secrets in what was sent."""
    texts: list[str] = []
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("session.prompt", {"session": session, "text": GIVEN, "delivery": "pigeon"}),
        ("session.prompt", {"session": session, "content": [{"type": "nothing", "text": GIVEN}]}),
        ("session.command", {"session": session, "verb": "set_model", "args": {"model": [GIVEN]}}),
        ("session.create", {"adapter": "demo", "cwd": "/nowhere", "options": {"environment": {"API_KEY": GIVEN}}}),
        ("ask.answer", {"ask": "ask_" + "0" * 32, "behaviour": "allow", "message": GIVEN}),
        ("hello", {"protocol": 1, "token": GIVEN}),
    ]
    for method, params in wrong:
        with pytest.raises(TrunklineError) as refused:
            await client.call(method, **params)
        texts.append(f"{refused.value} {refused.value.details}")
    return texts


async def secrets_are_used(product: Product, directory: Path) -> list[str]:
    """Scenario 9: a session full of secrets; the error texts that it brought about."""
    async with await product.client() as client:
        options = {"environment": {"AGENT_TOKEN": ENVIRONMENT}}
        session = (await client.call("session.create", adapter="demo", cwd=str(directory), options=options))["session"]
        await client.subscribe(session, start="start")
        # A command line with a secret, what it prints, what the agent says, a message that nobody knows, and last words.
        text = f"ask curl -H 'X-Key: {ARGV}' # {PRINTED}; say the password is {SAID}; novelty; crash"
        await client.call("session.prompt", session=session, text=text)
        asked = await client.wait("permission.requested", session=session)
        await client.call("ask.answer", ask=asked["data"]["ask"], behaviour="allow")
        crashed = await client.wait("error", session=session)
        await client.wait("turn.completed", session=session)
        # They are what the session is about, and whoever may see it sees them.
        known = json.dumps(client.events(session=session))
        assert all(secret in known for secret in (ARGV, PRINTED, SAID))
        assert await refused_by_http(f"{product.state['gateway']}/api/v1/session.history", {}) == (401, "unauthorized")
        return [*await refusals(client, session), json.dumps(crashed["data"])]


async def test_8_and_9_strangers_are_refused_and_secrets_are_in_the_log_of_events_alone(tmp_path: Path) -> None:
    async with collecting() as collector:
        environment = {
            "TRUNKLINE_LOG_LEVEL": "debug",
            "TRUNKLINE_OTLP_ENDPOINT": collector.url,
            "SERVICE_API_KEY": ENVIRONMENT,
        }
        async with running(tmp_path / "home", environment) as product:
            secrets = await strangers_are_refused(product, tmp_path)
            texts = await secrets_are_used(product, tmp_path)
            metrics = await measured(product)
        # The services have ended: what they had to tell is told.
        told = {"logs": logs(product), "metrics": metrics, "errors": "\n".join(texts)}
        told["traces"] = b"".join(collector.bodies).decode("latin-1")
    assert 'trunkline_gateway_requests_total{code="bad_params"' in told["metrics"]
    assert "gateway session.prompt" in told["traces"]
    # `sk-demo-` begins the key that the demo agent prints before it crashes.
    secrets += [ARGV, ENVIRONMENT, PRINTED, SAID, GIVEN, "sk-demo-"]
    assert [(where, secret) for where, what in told.items() for secret in secrets if secret in what] == []


# -- 12 ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def long_history(tmp_path: Path) -> AsyncGenerator[Lengthy]:
    async with lengthy(tmp_path) as history:
        yield history


async def test_12_a_long_history_opens_at_once_and_is_read_backwards(long_history: Lengthy) -> None:
    history = long_history
    assert history.bytes > 50 * MB
    async with await history.client() as client:
        before = history.memory()
        begun = time.perf_counter()
        opened = await client.call("subscribe", session=history.long)
        page = await client.call("session.history", session=history.long)
        assert time.perf_counter() - begun < 1
        assert len(opened["snapshot"]["messages"]) == 20
        assert (page["total"], page["has_more"]) == (EVENTS, True)
        assert 50 <= len(page["events"]) <= 100
        # Older pages on demand, down to the first event; nothing is left out, nothing comes twice.
        seqs = [one["event"]["seq"] for one in page["events"]]
        while page["has_more"]:
            page = await client.call("session.history", session=history.long, before=page["before"], limit=500)
            seqs[:0] = [one["event"]["seq"] for one in page["events"]]
        assert seqs == list(range(1, EVENTS + 1))
        assert history.memory() - before < 50 * MB
