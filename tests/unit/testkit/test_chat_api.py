"""The scripted Chat Completions API against the shapes that OpenAI publishes for it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.model_api.chat import read

PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
SHELL = {"type": "function", "function": {"name": "bash", "description": "runs it", "parameters": PARAMETERS}}


def body(*messages: dict[str, Any], stream: bool = True) -> dict[str, Any]:
    return {"model": "scripted-1", "stream": stream, "tools": [SHELL], "messages": list(messages)}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


@pytest.fixture
async def client(scripted_api: ScriptedApi) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(scripted_api.url) as session:
        yield session


async def chunks(client: aiohttp.ClientSession, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """The chunks of a stream that ends as it should."""
    async with client.post("/v1/chat/completions", json=asked) as response:
        assert response.content_type == "text/event-stream"
        lines = [line[6:].strip() async for line in response.content if line.startswith(b"data: ")]
    assert lines.pop() == b"[DONE]"
    got = [json.loads(line) for line in lines]
    assert {chunk["object"] for chunk in got} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in got}) == 1
    return got


def deltas(got: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [chunk["choices"][0]["delta"] for chunk in got if chunk["choices"]]


async def test_a_text_streams_as_contents_with_a_finish_and_the_usage(client: aiohttp.ClientSession) -> None:
    got = await chunks(client, body(user("SAY=one two three four")))
    assert deltas(got) == [
        {"role": "assistant", "content": ""},
        {"content": "one two three "},
        {"content": "four"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in got[:-1]] == [None, None, None, "stop"]
    assert got[-1]["choices"] == []
    usage = got[-1]["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


async def test_tool_calls_are_numbered_and_their_arguments_come_in_pieces(client: aiohttp.ClientSession) -> None:
    long = "touch a-file-with-quite-a-long-name && echo done"
    got = await chunks(client, body(user(f"SCENARIO=twobash CMD={long} CMD2=true")))
    calls = [call for delta in deltas(got) for call in delta.get("tool_calls", ())]
    opened = [call for call in calls if "id" in call]
    assert [(call["index"], call["type"], call["function"]) for call in opened] == [
        (0, "function", {"name": "bash", "arguments": ""}),
        (1, "function", {"name": "bash", "arguments": ""}),
    ]
    arguments = ["".join(call["function"]["arguments"] for call in calls if call["index"] == n) for n in (0, 1)]
    assert [json.loads(text) for text in arguments] == [{"command": long}, {"command": "true"}]
    assert got[-2]["choices"][0]["finish_reason"] == "tool_calls"


async def test_after_a_call_the_model_repeats_the_output_in_one_piece_too(
    client: aiohttp.ClientSession, scripted_api: ScriptedApi
) -> None:
    function = {"name": "bash", "arguments": "{}"}
    asked = body(
        {"role": "system", "content": "Be brief."},
        user("SCENARIO=bash"),
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "it-ran"},
        stream=False,
    )
    async with client.post("/v1/chat/completions", json=asked) as response:
        whole = await response.json()
    assert whole["object"] == "chat.completion"
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": "The tool said: it-ran"}
    (request,) = scripted_api.requests
    assert (request.path, request.system, request.used) == ("/v1/chat/completions", "Be brief.", ("bash",))
    assert [(result.id, result.text) for result in request.tool_results] == [("c1", "it-ran")]


async def test_a_call_in_one_piece(client: aiohttp.ClientSession) -> None:
    async with client.post("/v1/chat/completions", json=body(user("SCENARIO=bash CMD=true"), stream=False)) as response:
        (choice,) = (await response.json())["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert (call["type"], json.loads(call["function"]["arguments"])) == ("function", {"command": "true"})
    assert choice["finish_reason"] == "tool_calls"


async def test_thoughts_come_before_the_answer(client: aiohttp.ClientSession) -> None:
    got = deltas(await chunks(client, body(user("SCENARIO=thinking SAY=done"))))
    assert "".join(delta.get("reasoning_content", "") for delta in got).startswith("First I look")
    assert got[-2] == {"content": "done"}


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
async def test_errors(client: aiohttp.ClientSession, status: int) -> None:
    async with client.post("/v1/chat/completions", json=body(user(f"SCENARIO=err{status}"))) as response:
        assert response.status == status
        assert (await response.json())["error"]["message"] == f"Scripted error {status}."


async def test_the_models_on_the_list(client: aiohttp.ClientSession) -> None:
    async with client.get("/v1/models") as response:
        listed = await response.json()
    assert (listed["object"], [model["object"] for model in listed["data"]]) == ("list", ["model"])
    async with client.get("/v1/models/any") as response:
        assert (await response.json())["id"] == "any"
    async with client.get("/v1/models", headers={"anthropic-version": "2023-06-01"}) as response:
        assert [model["type"] for model in (await response.json())["data"]] == ["model"]


def test_titles_are_side_requests_though_they_hold_the_prompt() -> None:
    title = {"role": "system", "content": "You are a title generator."}
    assert read({"messages": [title, user("SCENARIO=err500")]}).kind == "side"
    assert read({"messages": [title, user("SCENARIO=err500")], "tools": [SHELL]}).kind == "prompt"
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    assert read({"messages": [user("x")], "response_format": form}).schema == {"type": "object"}
