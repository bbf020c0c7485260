"""Requests and events over real loopback HTTP: order, recording, secrets, limits, and servers that misbehave."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from trunkline_agentkit import Decoded, Exchange, Native
from trunkline_agentkit.recorder import Recorder, read_recording
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError

RELEASED = web.AppKey("released", asyncio.Event)
"""Is set when the test is over: no handler may hang on."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def understand(decoded: Decoded) -> Native:
    return Native(raw=decoded.raw, kind="test")


@asynccontextmanager
async def serving(handler: Handler, **options: Any) -> AsyncGenerator[Exchange]:
    app = web.Application()
    app[RELEASED] = asyncio.Event()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    exchange = Exchange(understand, **options)
    exchange.reach(f"http://127.0.0.1:{runner.addresses[0][1]}", params={"directory": "/a b"})
    try:
        yield exchange
    finally:
        await exchange.close()
        app[RELEASED].set()
        await runner.cleanup()


async def told(exchange: Exchange) -> list[Any]:
    """All that has come, once the exchange has ended."""
    exchange.end()
    return [json.loads(native.raw) async for native in exchange.messages()]


async def streaming(request: web.Request, *chunks: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for chunk in chunks:
        await response.write(chunk)
    return response


async def test_requests_answers_and_events_come_in_order_and_are_recorded(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path == "/event":
            return await streaming(request, b'data: {"n": 1}\n\ndata: {"n"', b": 2}\n\n")
        assert request.query["directory"] == "/a b"
        return web.json_response({"said": await request.json()}, status=201)

    recorder = Recorder(tmp_path / "native.jsonl")
    async with serving(handler, record=recorder.line) as exchange:
        answer = await exchange.request("POST", "/thing?x=1", {"a": 1})
        assert (answer.status, answer.ok, answer.body) == (201, True, {"said": {"a": 1}})
        async with exchange.events("/event", silence=5) as stream:
            assert await stream.begin()
            await stream.follow()
        messages = await told(exchange)
    recorder.close()
    assert messages == [
        {"http": "POST /thing?x=1", "n": 1, "status": 201, "body": {"said": {"a": 1}}},
        {"sse": "/event", "status": 200},
        {"sse": "/event", "data": {"n": 1}},
        {"sse": "/event", "data": {"n": 2}},
        {"sse": "/event", "lost": "ended"},
    ]
    recorded = read_recording(tmp_path / "native.jsonl")
    assert [json.loads(one.raw) for one in recorded if one.speaker == "agent"] == messages
    assert json.loads(recorded[0].raw) == {"http": "POST /thing?x=1", "n": 1, "body": {"a": 1}}
    assert recorded[0].speaker == "host"


async def test_a_secret_stands_nowhere_and_what_is_not_to_be_shown_is_taken_out(tmp_path: Path) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.json_response({"echo": "the-secret", "key": "another"})

    recorder = Recorder(tmp_path / "native.jsonl")

    def shown(request: str, body: Any) -> Any:
        assert request == "POST /config"
        return {**body, "key": "[hidden]"}

    async with serving(handler, record=recorder.line, secrets=["the-secret"], shown=shown) as exchange:
        answer = await exchange.request("POST", "/config", {"password": "the-secret"})
        assert answer.body["key"] == "another", "who asks gets it all"
        (message,) = await told(exchange)
    recorder.close()
    assert message["body"] == {"echo": "[redacted]", "key": "[hidden]"}
    assert b"the-secret" not in (tmp_path / "native.jsonl").read_bytes()


async def test_what_is_no_json_is_kept_as_text_and_a_page_is_no_answer() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        kind = "text/html" if request.path == "/page" else "text/plain"
        return web.Response(text="<html>" + "x" * 10_000, content_type=kind)

    async with serving(handler) as exchange:
        assert (await exchange.request("GET", "/text")).body is None
        with pytest.raises(TrunklineError) as error:
            await exchange.request("GET", "/page")
        assert error.value.code == "unsupported"
        messages = await told(exchange)
    assert [len(message["text"]) for message in messages] == [4096, 4096]


async def test_a_request_without_an_answer_says_whether_it_may_have_come_through() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path == "/drop":
            assert request.transport is not None
            request.transport.abort()
        await request.app[RELEASED].wait()
        return web.Response()

    async with serving(handler) as exchange:
        with pytest.raises(TrunklineError) as late:
            await exchange.request("GET", "/hang", deadline=0.2)
        with pytest.raises(TrunklineError) as dropped:
            await exchange.request("GET", "/drop")
        lost = [message["lost"] for message in await told(exchange)]
    assert (late.value.code, late.value.details["sent"]) == ("timeout", True)
    assert (dropped.value.code, dropped.value.details["sent"]) == ("agent_failed", True)
    assert len(lost) == 2
    nobody = Exchange(understand)
    nobody.reach("http://127.0.0.1:9")
    with pytest.raises(TrunklineError) as refused:
        await nobody.request("GET", "/")
    assert (refused.value.code, refused.value.details["sent"]) == ("agent_failed", False)
    await nobody.close()


async def test_a_silent_stream_counts_as_lost() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        await streaming(request, b'data: {"n": 1}\n\n')
        await request.app[RELEASED].wait()
        return web.Response()

    async with serving(handler) as exchange:
        async with exchange.events("/event", silence=0.3) as stream:
            assert await stream.begin()
            await stream.follow()
        assert (await told(exchange))[-1] == {"sse": "/event", "lost": "silent"}


@pytest.mark.parametrize(("status", "code"), [(401, "agent_auth"), (503, "agent_failed"), (200, "agent_failed")])
async def test_a_stream_that_is_none_is_refused(status: int, code: str) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(text="no", status=status)

    async with serving(handler) as exchange:
        with pytest.raises(TrunklineError) as error:
            async with exchange.events("/event", silence=5):
                pass
        assert error.value.code == code


async def test_events_of_others_are_neither_told_nor_recorded(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return await streaming(request, b'data: {"mine": true}\n\ndata: {"mine": false}\n\n')

    recorder = Recorder(tmp_path / "native.jsonl")
    concerns: Callable[[dict[str, Any]], bool] = lambda event: event["mine"]  # noqa: E731  # it is all there is to it
    async with serving(handler, record=recorder.line, concerns=concerns) as exchange:
        async with exchange.events("/event", silence=5) as stream:
            await stream.follow()
        assert [one["data"] for one in await told(exchange) if "data" in one] == [{"mine": True}]
    recorder.close()
    assert b"false" not in (tmp_path / "native.jsonl").read_bytes()


async def test_a_reader_that_does_not_read_makes_the_server_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_agentkit.unread.UNREAD_LIMIT", 1000)
    piece = b"data: " + json.dumps("x" * 400).encode() + b"\n\n"

    async def handler(request: web.Request) -> web.StreamResponse:
        return await streaming(request, *[piece] * 50)

    async with serving(handler) as exchange, exchange.events("/event", silence=5) as stream:
        following = asyncio.create_task(stream.follow())
        messages = exchange.messages()
        first = [json.loads((await anext(messages)).raw) for _ in range(2)]
        assert "status" in first[0]
        assert not following.done()
        exchange.release()
        await eventually(following.done, 10)
        assert len(await told(exchange)) == 50
