"""The scripted Gemini API against the shapes that Google publishes for it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.model_api.gemini import read

STREAM = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse"
WHOLE = "/v1beta/models/gemini-x:generateContent"
PARAMETERS = {"type": "OBJECT", "properties": {"command": {"type": "STRING"}}, "required": ["command"]}
TOOLS = [{"functionDeclarations": [{"name": "run_shell_command", "parameters": PARAMETERS}]}]


def user(*parts: str | dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def body(*contents: dict[str, Any]) -> dict[str, Any]:
    return {"contents": list(contents), "tools": TOOLS, "systemInstruction": {"parts": [{"text": "Be brief."}]}}


@pytest.fixture
async def client(scripted_api: ScriptedApi) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(scripted_api.url) as session:
        yield session


async def chunks(client: aiohttp.ClientSession, asked: dict[str, Any]) -> list[dict[str, Any]]:
    async with client.post(STREAM, json=asked) as response:
        assert response.content_type == "text/event-stream"
        return [json.loads(line[6:]) async for line in response.content if line.startswith(b"data: ")]


def parts(got: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for chunk in got for part in chunk["candidates"][0]["content"]["parts"]]


async def test_a_text_streams_as_parts_and_the_last_chunk_finishes(client: aiohttp.ClientSession) -> None:
    got = await chunks(client, body(user("SAY=one two three four")))
    assert [part["text"] for part in parts(got)] == ["one two three ", "four", ""]
    assert [chunk["candidates"][0].get("finishReason") for chunk in got] == [None, None, "STOP"]
    assert {chunk["modelVersion"] for chunk in got} == {"gemini-x"}
    usage = got[-1]["usageMetadata"]
    assert usage["totalTokenCount"] == usage["promptTokenCount"] + usage["candidatesTokenCount"]


async def test_a_function_call_comes_whole(client: aiohttp.ClientSession) -> None:
    (call,) = [
        part["functionCall"]
        for part in parts(await chunks(client, body(user("SCENARIO=bash CMD=true"))))
        if "functionCall" in part
    ]
    assert (call["name"], call["args"]) == ("run_shell_command", {"command": "true"})
    assert call["id"]


async def test_after_a_call_the_model_repeats_the_response(
    client: aiohttp.ClientSession, scripted_api: ScriptedApi
) -> None:
    call = {"functionCall": {"id": "f1", "name": "run_shell_command", "args": {}}}
    told = {"functionResponse": {"id": "f1", "name": "run_shell_command", "response": {"output": "it-ran"}}}
    contents = (user("SCENARIO=bash"), {"role": "model", "parts": [call]}, user(told))
    async with client.post(WHOLE, json=body(*contents)) as response:
        (candidate,) = (await response.json())["candidates"]
    assert candidate["content"] == {"role": "model", "parts": [{"text": "The tool said: it-ran"}]}
    (request,) = scripted_api.requests
    assert (request.path, request.model, request.system) == (WHOLE, "gemini-x", "Be brief.")
    assert (request.used, request.tools) == (("run_shell_command",), ("run_shell_command",))


async def test_thoughts_are_parts_that_say_so(client: aiohttp.ClientSession) -> None:
    got = parts(await chunks(client, body(user("SCENARIO=thinking SAY=done"))))
    assert "".join(part["text"] for part in got if part.get("thought")).startswith("First I look")
    assert "".join(part["text"] for part in got if not part.get("thought")) == "done"


async def test_what_must_follow_a_schema_does(client: aiohttp.ClientSession) -> None:
    schema = {"type": "object", "properties": {"complexity_score": {"type": "integer"}}}
    config = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    async with client.post(WHOLE, json={"contents": [user("SAY=x")], "generationConfig": config}) as response:
        (candidate,) = (await response.json())["candidates"]
    assert json.loads(candidate["content"]["parts"][0]["text"]) == {"complexity_score": 0}


@pytest.mark.parametrize(("status", "name"), [(400, "INVALID_ARGUMENT"), (429, "RESOURCE_EXHAUSTED")])
async def test_errors_have_googles_shape(client: aiohttp.ClientSession, status: int, name: str) -> None:
    async with client.post(STREAM, json=body(user(f"SCENARIO=err{status}"))) as response:
        assert response.status == status
        assert await response.json() == {
            "error": {"code": status, "message": f"Scripted error {status}.", "status": name}
        }


async def test_the_other_doors_that_agents_knock_at(client: aiohttp.ClientSession) -> None:
    async with client.get("/v1beta/models") as response:
        assert [model["name"] for model in (await response.json())["models"]] == ["models/scripted"]
    async with client.post("/v1beta/models/gemini-x:countTokens", json={}) as response:
        assert await response.json() == {"totalTokens": 100}
    async with client.post("/v1beta/models/gemini-x:paint", json={}) as response:
        assert response.status == 404


def test_a_failed_function_is_told_as_an_error() -> None:
    told = {"functionResponse": {"id": "f1", "name": "n", "response": {"error": "no such file"}}}
    (result,) = read({"contents": [user("SCENARIO=bash"), user(told)]}).results
    assert (result.text, result.is_error) == ("no such file", True)
