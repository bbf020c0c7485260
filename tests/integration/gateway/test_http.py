"""HTTP: methods, server-sent events, health, the description of the interface, the address file."""

import asyncio
import gzip
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest
from tests.integration.gateway.rig import Rig, begin_turn
from yarl import URL

from trunkline_gateway.listen import tcp_socket


@pytest.fixture
async def http(rig: Rig) -> AsyncGenerator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(
        base_url=rig.running.url, headers={"Authorization": f"Bearer {rig.token}"}
    ) as session:
        yield session


class Sse:
    """Events of a stream, parsed as the standard says."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> dict[str, str]:
        event: dict[str, str] = {}
        async with asyncio.timeout(10):
            while True:
                line = (await self._response.content.readline()).decode().rstrip("\n")
                if not line:
                    if "data" in event:
                        return event
                    event = {}
                elif not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    event[name] = value


async def test_events_over_sse_and_resumed_by_last_event_id(rig: Rig, http: aiohttp.ClientSession) -> None:
    async with await rig.session() as writer:
        path = f"/api/v1/events?session={writer.session}"
        async with http.get(f"{path}&from=start&patterns=turn.*,session.created") as answer:
            assert answer.content_type == "text/event-stream"
            events = Sse(answer)
            assert (await events.next())["event"] == "subscribed"
            assert json.loads((await events.next())["data"])["seq"] == 1
            begin_turn(writer)
            started = await events.next()
            assert (started["event"], json.loads(started["data"])["seq"]) == ("turn.started", 3)
        begin_turn(writer, 2)
        await writer.flush()
        last = {"Last-Event-ID": started["id"]}
        async with http.get(f"{path}&patterns=session.created,turn.*", headers=last) as answer:
            events = Sse(answer)
            await events.next()
            assert json.loads((await events.next())["data"])["seq"] == 5
        async with http.get(f"{path}&messages=1") as answer:
            snapshot = json.loads((await Sse(answer).next())["data"])["snapshot"]
            assert [one["event"]["seq"] for one in snapshot["messages"]] == [4]  # the second prompt
        # whoever wants more than before has missed the prompt, seq 2
        async with http.get(path, headers=last) as answer:
            events = Sse(answer)
            assert json.loads((await events.next())["data"])["gap"]["reason"] == "scope_changed"
            assert (await events.next())["event"] == "gap"
        async with http.get(f"{path}&deltas=perhaps") as answer:
            assert (answer.status, (await answer.json(content_type=None))["code"]) == (400, "bad_params")


async def test_health_counts_without_a_token(rig: Rig) -> None:
    async with (
        await rig.session(),
        await rig.client() as client,
        aiohttp.ClientSession() as http,
    ):
        await client.call("session.list")
        async with http.get(f"{rig.running.url}/health") as answer:
            body = await answer.json()
        assert (answer.status, body["status"], body["clients"]) == (200, "ok", 1)
        assert {"version", "sessions", "extensions"} <= set(body)


async def test_the_interface_describes_itself(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/v1/openapi.json") as answer:
        document = await answer.json()
    assert document["openapi"].startswith("3.1")
    prompt = document["paths"]["/api/v1/session.prompt"]["post"]
    assert prompt["requestBody"]["content"]["application/json"]["schema"]["$ref"] in (
        f"#/components/schemas/{name}" for name in document["components"]["schemas"]
    )
    assert "already_decided" in document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]


async def test_without_a_built_app_a_small_page_is_there_and_may_load_nothing_from_elsewhere(
    rig: Rig, tmp_path: Path
) -> None:
    await rig.restart_gateway(app=tmp_path)
    async with aiohttp.ClientSession(base_url=rig.running.url) as http:
        for path, media_type, part in [
            ("/", "text/html", '<script src="/app.js" defer>'),
            ("/session/ses_1", "text/html", "just web"),
            ("/app.js", "text/javascript", "session.prompt"),
            ("/signing.js", "text/javascript", "trunkline-answer-2"),
            ("/app.css", "text/css", "#log"),
        ]:
            async with http.get(path) as answer:
                text = await answer.text()
                assert (answer.status, answer.content_type) == (200, media_type)
                assert part in text
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                # the policy forbids what is inline, and text from agents never becomes markup
                assert "onclick=" not in text
                assert "innerHTML" not in text
                assert "style=" not in text
        async with http.get("/icon.svg") as answer:
            assert answer.status == 404


async def test_a_built_app_is_one_page_for_its_paths_and_files_that_may_be_kept(rig: Rig, tmp_path: Path) -> None:
    app = tmp_path / "app"
    (app / "assets").mkdir(parents=True)
    (app / "index.html").write_text("<title>built</title>")
    (app / "assets" / "index-1a.js").write_text("export {};")
    (app / "assets" / "index-1a.js.gz").write_bytes(gzip.compress(b"export {};"))
    (app / "app.webmanifest").write_text("{}")
    (app / "app.json").write_text('{"files": {}}')
    (app / "sw.js").write_text("")
    (app / "icon-192.png").write_bytes(b"png")
    (tmp_path / "secret.txt").write_text("secret")
    await rig.restart_gateway(app=app)
    async with aiohttp.ClientSession(base_url=rig.running.url) as http:
        pages = ("/", "/sign-in", "/asks", "/new", "/overview")
        for path in (*pages, "/session/ses_1", "/terminal/ses_1", "/workspace/ws_1", "/team/ses_1/lab%2F2"):
            async with http.get(path) as answer:
                assert (await answer.text(), answer.content_type) == ("<title>built</title>", "text/html")
                assert answer.headers["Cache-Control"] == "no-store"
                assert "script-src 'self';" in answer.headers["Content-Security-Policy"]
        async with http.get("/assets/index-1a.js", headers={"Accept-Encoding": "gzip"}) as answer:
            assert (await answer.text(), answer.content_type) == ("export {};", "text/javascript")
            assert answer.headers["Content-Encoding"] == "gzip"
            assert "immutable" in answer.headers["Cache-Control"]
            # of workers: that of the relay's connections runs WebAssembly
            assert "script-src 'self' 'wasm-unsafe-eval';" in answer.headers["Content-Security-Policy"]
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
        for path, media_type in (
            ("app.webmanifest", "application/manifest+json"),
            ("app.json", "application/json"),
            ("icon-192.png", "image/png"),
        ):
            async with http.get(f"/{path}") as answer:
                assert answer.content_type == media_type
        async with http.get("/sw.js") as answer:
            # kept, a browser would go on with an older build's
            assert (answer.content_type, answer.headers["Cache-Control"]) == ("text/javascript", "no-store")
        for path in ("/assets/..%2f..%2fsecret.txt", "/assets/%2e%2e", "/assets/none.js", "/assets/.built"):
            async with http.get(URL(path, encoded=True)) as answer:
                assert answer.status == 404
        # the page of a link that decides one ask stays by itself
        async with http.get("/a") as answer:
            assert "/ask.js" in await answer.text()


async def test_the_address_file_says_where_it_is(rig: Rig) -> None:
    address = json.loads((rig.home / "gateway.json").read_text())
    assert address["url"] == rig.running.url
    assert address["socket"] == str(rig.home / "gateway.sock")
    assert address["pid"] == os.getpid()
    assert (rig.home / "gateway.sock").stat().st_mode & 0o777 == 0o600


async def test_a_taken_port_moves_on_to_the_next(rig: Rig) -> None:
    with tcp_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with tcp_socket("127.0.0.1", port) as other:
            assert other.getsockname()[1] > port
    assert rig.running.url


async def test_editors_may_connect_only_where_a_setting_says_so(rig: Rig) -> None:
    headers = {"Authorization": f"Bearer {rig.token}", "Upgrade": "websocket"}
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{rig.running.url}/acp", headers=headers) as answer,
    ):
        assert answer.status == 404
