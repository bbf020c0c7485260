"""JSON-RPC with an agent over a real process's pipes, a real WebSocket on TCP and one on a unix socket."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.integration.agentkit import rpc_agent
from tests.integration.agentkit.rpc_server import Server

from trunkline_agentkit import Decoded, Native, Out, kind_of
from trunkline_agentkit.environment import INCARNATION_MARK, SESSION_MARK
from trunkline_agentkit.lines import LineTransport, WebSocketLines, connect_websocket
from trunkline_agentkit.peer import SERVED_LIMIT, Peer, RequestRefusedError
from trunkline_agentkit.process import AgentProcess, start_process
from trunkline_agentkit.recorder import Recorder, read_recording
from trunkline_agentkit.unread import UNREAD_LIMIT
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_session_id, uuid7_hex

Obj = dict[str, Any]


class Talk:
    """A peer and all that it has yielded and sent."""

    def __init__(self, transport: LineTransport, **options: Any) -> None:
        self.transport = transport
        self.sent: list[Obj] = []
        self.natives: list[Native] = []
        self.peer = Peer(transport, _understand, sent=self._hear, **options)
        self.reading: asyncio.Task[None] | None = None

    def _hear(self, message: Obj) -> list[Out]:
        self.sent.append(message)
        return []

    def listen(self) -> None:
        self.reading = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for native in self.peer.messages():
            self.natives.append(native)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(native.raw) for native in self.natives]

    async def answers(self) -> list[Obj]:
        """What the agent was answered, as it says."""
        await self.peer.request("echo", "now")
        told = [line for line in self.lines if isinstance(line, dict) and line.get("method") == "answered"]
        return [json.loads(one["params"]["line"]) for one in told]

    async def end(self) -> None:
        self.peer.release()
        await _close(self.transport)
        await self.peer.wait()
        if self.reading is not None:
            await self.reading


def _understand(decoded: Decoded) -> Native:
    return Native(raw=decoded.raw, kind=kind_of(decoded.message))


async def _close(transport: LineTransport) -> None:
    if isinstance(transport, AgentProcess):
        await transport.close(grace=1.0)
    elif isinstance(transport, WebSocketLines):
        await transport.close()


Connect = Callable[..., Awaitable[Talk]]


async def start_fake(tmp_path: Path, recorder: Recorder | None = None) -> AgentProcess:
    environment = {
        "PATH": os.environ["PATH"],
        SESSION_MARK: new_session_id(),
        INCARNATION_MARK: uuid7_hex(),
    }
    program = [sys.executable, str(Path(rpc_agent.__file__))]
    return await start_process(program, cwd=str(tmp_path), environment=environment, recorder=recorder)


@pytest_asyncio.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def serve(stack: AsyncExitStack, tmp_path: Path) -> Callable[..., Awaitable[Server]]:
    async def serve(token: str | None = None) -> Server:
        server = Server(tmp_path / "agent.sock")
        await server.start(stack, token)
        return server

    return serve


@pytest.fixture(params=["process", "tcp", "unix"])
def connect(
    request: pytest.FixtureRequest,
    stack: AsyncExitStack,
    tmp_path: Path,
    serve: Callable[..., Awaitable[Server]],
) -> Connect:
    """Connects to the fake over each transport."""

    async def connect(**options: Any) -> Talk:
        recorder = options.pop("recorder", None)
        if request.param == "process":
            transport: LineTransport = await start_fake(tmp_path, recorder)
        else:
            server = await serve()
            socket = server.path if request.param == "unix" else None
            transport = await connect_websocket(server.url, unix_socket=socket, recorder=recorder)
        listening = options.pop("listening", True)
        talk = Talk(transport, **options)
        stack.push_async_callback(talk.end)
        if listening:
            talk.listen()
        return talk

    return connect


async def test_requests_have_their_answers_whatever_the_order(connect: Connect) -> None:
    talk = await connect()
    values: list[Any] = [None, 1, "two", [3], {"four": {"é": "\n"}}, True]
    assert await asyncio.gather(*(talk.peer.request("echo", value) for value in values)) == values
    assert [message["jsonrpc"] for message in talk.sent] == ["2.0"] * len(values)


async def test_an_agent_that_omits_the_version_is_spoken_to_alike(connect: Connect) -> None:
    talk = await connect(versioned=False)
    assert await talk.peer.request("echo", {"a": 1}) == {"a": 1}
    assert talk.sent == [{"id": 1, "method": "echo", "params": {"a": 1}}]


async def test_every_message_comes_once_in_order_verbatim_answers_too(connect: Connect, tmp_path: Path) -> None:
    recording = tmp_path / "native.jsonl"
    talk = await connect(recorder=Recorder(recording))
    await talk.peer.request("print")
    await talk.peer.request("echo", "x")
    await talk.end()
    assert [native.raw for native in talk.natives] == [
        b'"*** a banner, no JSON ***"',
        b"[1, 2]",
        b'{"id":1,"result":"printed"}',
        b'{"id":2,"result":"x"}',
    ]
    assert [line.raw for line in read_recording(recording) if line.speaker == "agent"] == [
        native.raw for native in talk.natives
    ]
    assert [json.loads(line.raw) for line in read_recording(recording) if line.speaker == "host"] == talk.sent


@pytest.mark.parametrize(("native", "code"), [(-32601, "unsupported"), (-32602, "bad_params"), (1, "agent_failed")])
async def test_an_error_of_the_agent_is_one_of_ours(connect: Connect, native: int, code: str) -> None:
    talk = await connect()
    with pytest.raises(TrunklineError, match="it failed") as refused:
        await talk.peer.request("fail", native)
    assert refused.value.code == code


async def test_a_request_has_a_time_limit_and_its_late_answer_is_told(connect: Connect) -> None:
    talk = await connect()
    with pytest.raises(TrunklineError) as refused:
        await talk.peer.request("ignore", deadline=0.1)
    assert refused.value.code == "timeout"
    assert await talk.peer.request("late", 1) == "done"
    assert talk.lines[0] == {"id": 1, "result": "late"}


async def test_a_caller_that_is_cancelled_stops_waiting_and_nothing_else(connect: Connect) -> None:
    talk = await connect()
    waiting = asyncio.create_task(talk.peer.request("cancelled"))
    await eventually(lambda: talk.sent)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await talk.peer.request("late", 1) == "done"
    assert await talk.peer.request("echo", "on") == "on"


async def test_what_is_posted_is_answered_in_the_messages_alone(connect: Connect) -> None:
    talk = await connect()
    id = await talk.peer.post("echo", "a turn")
    await eventually(lambda: {"id": id, "result": "a turn"} in talk.lines)


async def test_the_agents_end_fails_who_waits_at_once_and_who_comes_after(connect: Connect) -> None:
    talk = await connect()
    waiting = asyncio.create_task(talk.peer.request("ignore", deadline=600))
    await eventually(lambda: talk.sent)
    await talk.peer.post("die", 3)
    async with asyncio.timeout(20):
        with pytest.raises(TrunklineError) as refused:
            await waiting
    assert refused.value.code == "agent_failed"
    assert talk.peer.ended
    with pytest.raises(TrunklineError) as refused:
        await talk.peer.request("echo", 1)
    assert refused.value.code == "agent_failed"
    await talk.end()
    with pytest.raises(TrunklineError) as refused:
        await talk.peer.notify("echo", 1)
    assert refused.value.code == "agent_failed"


@pytest.mark.parametrize("id", ["0", '"a"', "null", "1.0", "true", '{"deep":[1]}', r'"\u00e9"', "9" * 30])
async def test_an_ask_of_any_id_is_answered_under_the_same_bytes(connect: Connect, id: str) -> None:
    talk = await connect(asked={"permission"})
    await talk.peer.request("ask", id)
    (key,) = [rpc_key(line["id"]) for line in talk.lines if isinstance(line, dict) and line.get("method")]
    assert talk.peer.waits_for(key)
    await talk.peer.answer(key, {"outcome": "yes"})
    await talk.peer.request("echo", "now")
    (answer,) = [line["params"]["line"] for line in talk.lines if line.get("method") == "answered"]
    assert f'"id":{id}' in answer
    assert json.loads(answer)["result"] == {"outcome": "yes"}
    assert not talk.peer.waits_for(key)
    with pytest.raises(TrunklineError) as refused:
        await talk.peer.answer(key, {"outcome": "no"})
    assert refused.value.code == "unknown_ask"


def rpc_key(id: Any) -> bytes:
    # What the specification calls the same id is the same JSON text.
    return json.dumps(id, ensure_ascii=False, separators=(",", ":")).encode()


async def test_a_request_that_nobody_serves_is_refused(connect: Connect) -> None:
    talk = await connect()
    await talk.peer.request("call", {"method": "craft/drainMidTurnQueue"})
    await eventually(lambda: any(line.get("method") == "answered" for line in talk.lines))
    (answer,) = await talk.answers()
    assert answer["id"] == "call-1"
    assert answer["error"]["code"] == -32601


async def test_what_is_served_is_answered_with_its_result_or_its_error(connect: Connect) -> None:
    async def works(params: Any) -> Any:
        return {"got": params}

    async def refuses(_: Any) -> Any:
        raise RequestRefusedError(-32002, "not found", {"path": "x"})

    async def fails(_: Any) -> Any:
        raise TrunklineError("bad_directory", "outside")

    async def breaks(_: Any) -> Any:
        raise ZeroDivisionError

    talk = await connect(served={"works": works, "refuses": refuses, "fails": fails, "breaks": breaks})
    for number, method in enumerate(("works", "refuses", "fails", "breaks"), 1):
        await talk.peer.request("call", {"method": method, "params": method})
        await eventually(lambda number=number: _answered(talk) == number)
    worked, refused, failed, broken = await talk.answers()
    assert worked["result"] == {"got": "works"}
    assert refused["error"] == {"code": -32002, "message": "not found", "data": {"path": "x"}}
    assert failed["error"] == {"code": -32603, "message": "outside", "data": {"code": "bad_directory"}}
    assert broken["error"] == {"code": -32603, "message": "internal error: ZeroDivisionError"}


def _answered(talk: Talk) -> int:
    return sum(line.get("method") == "answered" for line in talk.lines)


async def test_what_is_served_is_cancelled_when_the_agent_takes_it_back(connect: Connect) -> None:
    ended = asyncio.Event()

    async def forever(_: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    talk = await connect(served={"forever": forever}, asked={"permission"}, cancels=("$/cancel_request", "requestId"))
    await talk.peer.request("call", {"method": "forever"})
    await talk.peer.request("take back", "call-1")
    async with asyncio.timeout(20):
        await ended.wait()
    await talk.peer.request("ask", "7")
    await talk.peer.request("take back", 7)
    await eventually(lambda: _answered(talk) == 2)
    answers = await talk.answers()
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [("call-1", -32800), (7, -32800)]
    assert not talk.peer.waits_for(b"7")


async def test_serving_ends_with_the_agent(connect: Connect) -> None:
    ended = asyncio.Event()

    async def forever(_: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    talk = await connect(served={"forever": forever})
    await talk.peer.request("call", {"method": "forever"})
    await talk.end()
    assert ended.is_set()


async def test_no_more_is_served_at_a_time_than_the_limit(connect: Connect) -> None:
    go = asyncio.Event()

    async def waits(params: Any) -> Any:
        await go.wait()
        return params

    talk = await connect(served={"waits": waits})
    for number in range(SERVED_LIMIT + 1):
        await talk.peer.request("call", {"method": "waits", "id": f"w{number}"})
    go.set()
    await eventually(lambda: _answered(talk) == SERVED_LIMIT + 1)
    refused = [answer for answer in await talk.answers() if "error" in answer]
    assert [answer["id"] for answer in refused] == [f"w{SERVED_LIMIT}"]


async def test_a_flood_that_nobody_reads_waits_in_the_agent(connect: Connect) -> None:
    talk = await connect(listening=False)
    await talk.peer.post("flood", 300)
    await eventually(lambda: talk.peer.unread >= UNREAD_LIMIT, 30)
    assert talk.peer.unread < UNREAD_LIMIT + 200_000
    talk.listen()
    await eventually(lambda: any(native.raw == b'{"id":1,"result":300}' for native in talk.natives), 30)
    assert [line["params"]["number"] for line in talk.lines[:-1]] == list(range(300))
