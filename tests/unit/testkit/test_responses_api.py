"""The scripted Responses API against the shapes that OpenAI publishes for it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.model_api.responses import read

SHELL = {
    "type": "function",
    "name": "exec_command",
    "strict": False,
    "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]},
}


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def body(*items: dict[str, Any], stream: bool = True) -> dict[str, Any]:
    return {"model": "scripted-1", "stream": stream, "tools": [SHELL], "input": list(items)}


@pytest.fixture
async def client(scripted_api: ScriptedApi) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(scripted_api.url) as session:
        yield session


async def events(client: aiohttp.ClientSession, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a stream; each is named as its type, and they are numbered."""
    got: list[dict[str, Any]] = []
    async with client.post("/v1/responses", json=asked) as response:
        assert response.content_type == "text/event-stream"
        async for line in response.content:
            if line.startswith(b"event: "):
                got.append({"event": line[7:].decode().strip()})
            elif line.startswith(b"data: "):
                got[-1] |= json.loads(line[6:])
    assert [event["event"] for event in got] == [event["type"] for event in got]
    assert [event["sequence_number"] for event in got] == list(range(len(got)))
    return got


async def test_a_text_streams_as_an_item_with_one_part(client: aiohttp.ClientSession) -> None:
    got = await events(client, body(said("SAY=one two three four")))
    assert [event["type"].removeprefix("response.") for event in got] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert got[0]["response"]["status"] == "in_progress"
    assert got[2]["item"]["content"] == []
    assert [event["delta"] for event in got[4:6]] == ["one two three ", "four"]
    assert {event["item_id"] for event in got[3:8]} == {got[2]["item"]["id"]}
    completed = got[-1]["response"]
    assert completed["status"] == "completed"
    assert completed["output"] == [got[-2]["item"]]
    assert completed["output"][0]["content"][0]["text"] == "one two three four"
    usage = completed["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


async def test_a_function_is_called_with_arguments_in_pieces(client: aiohttp.ClientSession) -> None:
    command = "touch a-file-with-quite-a-long-name && echo done"
    got = await events(client, body(said(f"SCENARIO=bash CMD={command}")))
    parts = [event["delta"] for event in got if event["type"] == "response.function_call_arguments.delta"]
    assert len(parts) > 1
    assert json.loads("".join(parts)) == {"cmd": command}
    call = got[-1]["response"]["output"][1]
    assert (call["type"], call["name"], call["arguments"]) == ("function_call", "exec_command", "".join(parts))
    assert call["call_id"].startswith("call_")
    opened = [event["item"] for event in got if event["type"] == "response.output_item.added"]
    assert (opened[1]["call_id"], opened[1]["arguments"]) == (call["call_id"], "")


async def test_a_tool_that_takes_free_text_gets_it(client: aiohttp.ClientSession) -> None:
    asked = body(said("SCENARIO=write FILE=a TEXT=x"))
    asked["tools"] = [SHELL, {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}}]
    got = await events(client, asked)
    call = got[-1]["response"]["output"][1]
    assert (call["type"], call["name"]) == ("custom_tool_call", "apply_patch")
    assert call["input"].startswith("*** Begin Patch\n*** Add File: a\n")
    deltas = [event["delta"] for event in got if event["type"] == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == call["input"]


async def test_thoughts_come_as_a_summary(client: aiohttp.ClientSession) -> None:
    got = await events(client, body(said("SCENARIO=thinking SAY=done")))
    deltas = [event["delta"] for event in got if event["type"] == "response.reasoning_summary_text.delta"]
    reasoning, message = got[-1]["response"]["output"]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "".join(deltas)}]
    assert message["content"][0]["text"] == "done"


async def test_after_a_call_the_model_repeats_the_output(
    client: aiohttp.ClientSession, scripted_api: ScriptedApi
) -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "exec_command", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "it-ran"}
    developer = said("Be brief.", "developer")
    async with client.post(
        "/v1/responses", json=body(developer, said("SCENARIO=bash"), call, output, stream=False)
    ) as response:
        whole = await response.json()
    assert (whole["object"], whole["status"]) == ("response", "completed")
    assert whole["output"][0]["content"][0]["text"] == "The tool said: it-ran"
    (request,) = scripted_api.requests
    assert (request.path, request.model, request.system) == ("/v1/responses", "scripted-1", "Be brief.")
    assert (request.used, request.tools) == (("exec_command",), ("exec_command",))
    assert [(result.id, result.text) for result in request.tool_results] == [("call_1", "it-ran")]


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", None),
        (401, "invalid_request_error", "invalid_api_key"),
        (429, "requests", "rate_limit_exceeded"),
        (500, "server_error", None),
    ],
)
async def test_errors_have_openais_shape(
    client: aiohttp.ClientSession, status: int, kind: str, code: str | None
) -> None:
    async with client.post("/v1/responses", json=body(said(f"SCENARIO=err{status}"))) as response:
        assert response.status == status
        error = (await response.json())["error"]
    assert error == {"message": f"Scripted error {status}.", "type": kind, "param": None, "code": code}


async def test_a_dropped_stream_breaks_behind_its_first_pieces(client: aiohttp.ClientSession) -> None:
    with pytest.raises(aiohttp.ClientPayloadError):
        await events(client, body(said("SCENARIO=drop")))


def test_a_turn_is_read_from_its_last_prompt_on() -> None:
    conversation = read(
        {
            "instructions": "You are a model.",
            "tools": [SHELL, {"type": "web_search"}, {"type": "namespace", "name": "n", "tools": [SHELL]}],
            "input": [
                said("SCENARIO=bash"),
                {"type": "function_call", "call_id": "c0", "name": "exec_command", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c0", "output": "old"},
                said("<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"),
                said("SCENARIO=twobash"),
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "call_id": "c1", "name": "exec_command", "arguments": "{}"},
                {"type": "function_call", "call_id": "c2", "name": "exec_command", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "a"}]},
                {"type": "function_call_output", "call_id": "c2", "output": "b"},
            ],
        }
    )
    assert (conversation.scenario, conversation.used) == ("twobash", ("exec_command", "exec_command"))
    assert [result.text for result in conversation.results] == ["a", "b"]
    assert [tool.name for tool in conversation.tools] == ["exec_command", "exec_command"]
    assert conversation.system == "You are a model."
    assert read({"input": "SAY=hi"}).directives == {"SAY": "hi"}
