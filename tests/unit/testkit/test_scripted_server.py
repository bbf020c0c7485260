"""The scripted API over real HTTP, as an agent meets it."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from trunkline_testkit import eventually
from trunkline_testkit.model_api import ScriptedApi


def body(prompt: str, *, stream: bool = True) -> dict[str, Any]:
    return {
        "model": "scripted-1",
        "stream": stream,
        "system": [{"type": "text", "text": "Be brief."}],
        "tools": [{"name": "Bash"}],
        "messages": [{"role": "user", "content": prompt}],
    }


@pytest.fixture
async def client(scripted_api: ScriptedApi) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"X-Claude-Code-Session-Id": "session-1"}
    async with aiohttp.ClientSession(scripted_api.url, headers=headers) as session:
        yield session


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in response.content:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


async def until_it_breaks(response: aiohttp.ClientResponse) -> list[str]:
    got: list[str] = []
    try:
        async for event in events(response):
            got.append(event.get("delta", {}).get("text", event["type"]))  # noqa: PERF401 - kept when it breaks
    except aiohttp.ClientPayloadError:
        return got
    raise AssertionError(f"the stream ended in order: {got}")


async def test_a_streamed_answer_has_the_events_of_the_messages_api(client: aiohttp.ClientSession) -> None:
    async with client.post("/v1/messages?beta=true", json=body("SAY=one two three four")) as response:
        assert response.content_type == "text/event-stream"
        got = [event async for event in events(response)]
    assert [event["type"] for event in got] == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert got[0]["message"]["model"] == "scripted-1"
    assert got[0]["message"]["content"] == []
    assert [event["delta"]["text"] for event in got[3:5]] == ["one two three ", "four"]
    assert got[6]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}


async def test_a_tool_call_streams_its_input_as_partial_json(client: aiohttp.ClientSession) -> None:
    command = "touch a-file-with-quite-a-long-name && echo done"
    async with client.post("/v1/messages", json=body(f"SCENARIO=bash CMD={command}")) as response:
        got = [event async for event in events(response)]
    parts = [
        event["delta"]["partial_json"] for event in got if event.get("delta", {}).get("type") == "input_json_delta"
    ]
    assert len(parts) > 1
    assert json.loads("".join(parts))["command"] == command
    assert got[-2]["delta"]["stop_reason"] == "tool_use"


async def test_equal_requests_get_equal_ids_and_the_answer_in_one_piece_is_the_same(
    client: aiohttp.ClientSession,
) -> None:
    async with client.post("/v1/messages", json=body("SCENARIO=bash CMD=true", stream=False)) as response:
        whole = await response.json()
    async with client.post("/v1/messages", json=body("SCENARIO=bash CMD=true")) as response:
        got = [event async for event in events(response)]
    assert whole["id"] == got[0]["message"]["id"]
    assert whole["content"][0] == {"type": "text", "text": "I will use Bash."}
    started = [event["content_block"] for event in got if event["type"] == "content_block_start"]
    assert whole["content"][1]["id"] == started[1]["id"]
    assert whole["content"][1]["input"]["command"] == "true"
    assert whole["stop_reason"] == "tool_use"


async def test_a_held_stream_shows_its_first_piece_and_waits(
    client: aiohttp.ClientSession, scripted_api: ScriptedApi
) -> None:
    async with client.post("/v1/messages", json=body("SCENARIO=hold")) as response:
        stream = events(response)
        while (event := await anext(stream))["type"] != "content_block_delta":
            pass
        assert event["delta"]["text"] == "Holding. "
        await scripted_api.wait_holding()
        async with client.get("/control/holding") as answer:
            assert await answer.json() == {"holding": 1}
        async with client.post("/control/release") as answer:
            assert await answer.json() == {"released": 1}
        assert (await anext(stream))["delta"]["text"] == "Released."
        assert [event["type"] async for event in stream][-1] == "message_stop"
    assert scripted_api.holding == 0


async def test_a_client_that_hangs_up_frees_its_held_stream(
    client: aiohttp.ClientSession, scripted_api: ScriptedApi
) -> None:
    response = await client.post("/v1/messages", json=body("SCENARIO=hold"))
    await scripted_api.wait_holding()
    response.close()
    await eventually(lambda: scripted_api.holding == 0)


async def test_a_dropped_stream_breaks_behind_its_first_pieces(client: aiohttp.ClientSession) -> None:
    got = await until_it_breaks(await client.post("/v1/messages", json=body("SCENARIO=drop")))
    assert got == ["message_start", "ping", "content_block_start", "This sentence will ", "not be "]
    with pytest.raises(aiohttp.ClientError):
        await client.post("/v1/messages", json=body("SCENARIO=drop", stream=False))


async def test_an_error_is_given_always_or_once_a_prompt(client: aiohttp.ClientSession) -> None:
    async def status(prompt: str) -> int:
        async with client.post("/v1/messages", json=body(prompt)) as response:
            await response.read()
            return response.status

    async with client.post("/v1/messages", json=body("SCENARIO=err529")) as response:
        error = await response.json()
    assert error == {"type": "error", "error": {"type": "overloaded_error", "message": "Scripted error 529."}}
    assert [await status("SCENARIO=err529"), await status("SCENARIO=err529")] == [529, 529]
    assert [await status("SCENARIO=once500"), await status("SCENARIO=once500")] == [500, 200]
    assert await status("SCENARIO=once500 again") == 500


async def test_ten_thousand_pieces_arrive_whole_and_in_order(client: aiohttp.ClientSession) -> None:
    async with client.post("/v1/messages", json=body("SCENARIO=flood N=10000")) as response:
        texts = [event["delta"]["text"] async for event in events(response) if event["type"] == "content_block_delta"]
    assert texts == [f"piece {number} " for number in range(1, 10_001)]


async def test_the_log_shows_what_the_model_was_told(client: aiohttp.ClientSession, scripted_api: ScriptedApi) -> None:
    asked = body("SCENARIO=bash")
    asked["messages"] += [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True}]},
    ]
    async with client.post("/v1/messages", json=asked) as response:
        pieces = [event["delta"]["text"] async for event in events(response) if event["type"] == "content_block_delta"]
    assert "".join(pieces) == "The tool said: no"
    (request,) = scripted_api.requests
    assert (request.number, request.session, request.model) == (1, "session-1", "scripted-1")
    assert (request.prompt, request.used, request.system) == ("SCENARIO=bash", ("Bash",), "Be brief.")
    assert [(result.text, result.is_error) for result in scripted_api.tool_results] == [("no", True)]
    async with client.get("/control/requests") as answer:
        assert (await answer.json())[0]["tool_results"] == [{"id": "t1", "text": "no", "is_error": True}]


async def test_the_other_doors_that_agents_knock_at(client: aiohttp.ClientSession) -> None:
    async with client.head("/") as response:
        assert response.status == 200
    async with client.post("/v1/messages/count_tokens", json={}) as response:
        assert await response.json() == {"input_tokens": 100}


async def test_as_a_program_it_prints_its_url_and_ends_at_sigterm() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "trunkline_testkit.model_api",
        "--port",
        "0",
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.defpath},
    )
    assert process.stdout is not None
    url = json.loads(await process.stdout.readline())["url"]
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 200
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
