"""JSON-RPC with an editor, over streams in memory."""

import asyncio
import json
from typing import Any

import pytest

from trunkline_acp.connection import Editor, RefusedError, Reply
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError

Obj = dict[str, Any]


class Wire:
    """What the editor is told, and what it says."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        self.out: list[Obj] = []
        self.editor = Editor(self.reader, self)
        self.heard: list[Obj] = []

    def write(self, data: bytes) -> None:
        self.out += [json.loads(line) for line in data.splitlines()]

    async def drain(self) -> None:
        pass

    def say(self, message: Obj | str) -> None:
        line = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0"} | message)
        self.reader.feed_data(line.encode() + b"\n")

    async def serve(self, **served: Any) -> None:
        methods = {name.replace("__", "/"): serve for name, serve in served.items()}
        await self.editor.run(methods, {"session/cancel": self.heard.append})

    async def told(self, count: int) -> list[Obj]:
        await eventually(lambda: len(self.out) >= count)
        return self.out


async def echo(params: Obj) -> Obj:
    return {"said": params}


async def test_requests_are_answered_with_their_ids_as_they_came() -> None:
    wire = Wire()
    serving = asyncio.create_task(wire.serve(session__new=echo))
    wire.say({"id": "a-1", "method": "session/new", "params": {"cwd": "/", "_meta": {"unknown": 1}}})
    wire.say({"id": 2, "method": "session/of_next_year"})
    wire.say("no json")
    wire.say("[]")
    wire.say({"method": "of/next_year"})
    wire.say({"method": "session/cancel", "params": {"sessionId": "s"}})
    wire.reader.feed_eof()
    await serving
    codes = sorted((str(one["id"]), one.get("error", {}).get("code", 0)) for one in wire.out)
    assert codes == [("2", -32601), ("None", -32700), ("None", -32700), ("a-1", 0)]
    assert {"jsonrpc": "2.0", "id": "a-1", "result": {"said": {"cwd": "/", "_meta": {"unknown": 1}}}} in wire.out
    assert wire.heard == [{"sessionId": "s"}]


async def test_an_error_has_the_protocols_number_and_our_code() -> None:
    async def fails(_: Obj) -> Obj:
        raise TrunklineError("unknown_session", "there is none", session="ses_1")

    async def breaks(_: Obj) -> Obj:
        raise ValueError("secret")

    wire = Wire()
    serving = asyncio.create_task(wire.serve(fails=fails, breaks=breaks))
    wire.say({"id": 1, "method": "fails"})
    wire.say({"id": 2, "method": "breaks"})
    first, second = await wire.told(2)
    assert first["error"] == {
        "code": -32002,
        "message": "there is none",
        "data": {"code": "unknown_session", "session": "ses_1"},
    }
    assert second["error"] == {"code": -32603, "message": "internal error: ValueError"}
    wire.reader.feed_eof()
    await serving


async def test_what_follows_a_result_comes_behind_it() -> None:
    wire = Wire()

    async def serve(_: Obj) -> Reply:
        return Reply({"sessionId": "s"}, lambda: wire.editor.update("s", {"sessionUpdate": "plan", "entries": []}))

    serving = asyncio.create_task(wire.serve(session__new=serve))
    wire.say({"id": 1, "method": "session/new"})
    answer, update = await wire.told(2)
    assert (answer["result"], update["method"]) == ({"sessionId": "s"}, "session/update")
    wire.reader.feed_eof()
    await serving


async def test_a_request_that_is_called_off_is_cancelled_and_a_late_answer_says_nothing() -> None:
    wire = Wire()
    serving = asyncio.create_task(wire.serve())
    asking = asyncio.create_task(wire.editor.request("session/request_permission", {}))
    (request,) = await wire.told(1)
    asking.cancel()
    _, cancelled = await wire.told(2)
    assert (cancelled["method"], cancelled["params"]) == ("$/cancel_request", {"requestId": request["id"]})
    wire.say({"id": request["id"], "result": {}})
    again = asyncio.create_task(wire.editor.request("session/request_permission", {}))
    await wire.told(3)
    wire.say({"id": wire.out[2]["id"], "result": {"outcome": "x"}})
    assert await again == {"outcome": "x"}
    refused = asyncio.create_task(wire.editor.request("session/request_permission", {}))
    await wire.told(4)
    wire.say({"id": wire.out[3]["id"], "error": {"code": -32601, "message": "not here"}})
    with pytest.raises(RefusedError, match="not here"):
        await refused
    wire.reader.feed_eof()
    await serving


async def test_the_editor_calls_its_own_request_off() -> None:
    wire = Wire()
    begun = asyncio.Event()

    async def waits(_: Obj) -> Obj:
        begun.set()
        await asyncio.Event().wait()
        return {}

    serving = asyncio.create_task(wire.serve(session__prompt=waits))
    wire.say({"id": 7, "method": "session/prompt"})
    await begun.wait()
    wire.say({"method": "$/cancel_request", "params": {"requestId": 7}})
    (answer,) = await wire.told(1)
    assert (answer["id"], answer["error"]["code"]) == (7, -32800)
    wire.reader.feed_eof()
    await serving


async def test_the_end_of_the_editor_ends_what_is_under_way() -> None:
    wire = Wire()

    async def waits(_: Obj) -> Obj:
        await asyncio.Event().wait()
        return {}

    serving = asyncio.create_task(wire.serve(session__prompt=waits))
    asking = asyncio.create_task(wire.editor.request("session/request_permission", {}))
    wire.say({"id": 7, "method": "session/prompt"})
    await wire.told(1)
    wire.reader.feed_eof()
    await serving
    with pytest.raises(asyncio.CancelledError):
        await asking
