"""The HTTP side of the scripted API: one port on loopback, a log of what was asked, and a handle on held streams."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

from trunkline_testkit.anthropic_api import stream
from trunkline_testkit.anthropic_api.conversation import Conversation, ToolResult, read, text_of
from trunkline_testkit.anthropic_api.scenarios import Failure, Message, reply
from trunkline_testkit.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_WRITE_SIZE = 32 * 1024
_SSE = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
_MAX_REQUEST = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request to `/v1/messages`, as far as tests ask about it."""

    number: int
    """1, 2, 3 … in the order of arrival."""
    session: str
    """The agent's own session id (header X-Claude-Code-Session-Id), or ""."""
    model: str
    prompt: str
    """The text of the prompt that the turn answers."""
    kind: str
    scenario: str
    used: tuple[str, ...]
    """Tools called since the prompt."""
    tool_results: tuple[ToolResult, ...]
    """What the last message told the model."""
    system: str
    """The system prompt."""
    tools: tuple[str, ...]
    """Names of the tools on offer."""


class ScriptedApi:
    """The server; `async with ScriptedApi() as api` runs it in the current loop.

    `requests`: everything asked so far. `holding`: streams that wait for `release()` now.
    """

    def __init__(self, port: int = 0) -> None:
        self.requests: list[ApiRequest] = []
        self.holding = 0
        self._port = port
        self._release = asyncio.Event()
        self._failed: set[str] = set()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """`http://127.0.0.1:<port>`, fit for ANTHROPIC_BASE_URL."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def tool_results(self) -> list[ToolResult]:
        """Everything that any agent told the model about its tools, in order."""
        return [result for request in self.requests for result in request.tool_results]

    def release(self) -> None:
        """Let every held stream go on. Streams held later wait for the next release."""
        self._release.set()
        self._release = asyncio.Event()

    async def wait_holding(self, count: int = 1, timeout: float = 10.0) -> None:  # noqa: ASYNC109
        """Wait until `count` streams are held. Raises AssertionError at the deadline (seconds)."""
        await eventually(lambda: self.holding >= count, timeout)

    async def start(self) -> None:
        """Listen. Raises OSError if the port is taken."""
        app = web.Application(client_max_size=_MAX_REQUEST)
        app.add_routes(
            [
                web.get("/", _alive),
                web.post("/v1/messages", self._messages),
                web.post("/v1/messages/count_tokens", _count_tokens),
                web.get("/control/requests", self._show_requests),
                web.get("/control/holding", self._show_holding),
                web.post("/control/release", self._release_over_http),
            ]
        )
        # A client that hangs up (an interrupted turn) must free its held stream.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Close the port and every stream. May be called twice."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await request.json()
        session = request.headers.get("X-Claude-Code-Session-Id", "")
        conversation = read(body)
        self._log(session, body, conversation)
        prompt_key = f"{session}/{conversation.position}/{conversation.prompt}"
        answer = reply(conversation, failed_before=prompt_key in self._failed, schema=_schema(body))
        if conversation.scenario.startswith("once"):
            self._failed.add(prompt_key)
        if isinstance(answer, Failure):
            return _error(answer)
        identity = stream.Identity(
            model=str(body.get("model", "scripted")),
            key=f"{prompt_key}/{len(body.get('messages', []))}",
            input_tokens=100 + len(body.get("messages", [])),
        )
        if not body.get("stream"):
            return _whole(request, answer, identity)
        return await self._stream(request, answer, identity)

    async def _stream(self, request: web.Request, message: Message, identity: stream.Identity) -> web.StreamResponse:
        response = web.StreamResponse(headers={**_SSE, "request-id": f"req_{identity.message[4:]}"})
        await response.prepare(request)
        for step in _joined(stream.events(message, identity)):
            match step:
                case stream.Pause():
                    await asyncio.sleep(step.seconds)
                case stream.Hold():
                    await self._hold()
                case stream.Cut():
                    _hang_up(request)
                    return response
                case bytes():
                    await response.write(step)
        await response.write_eof()
        return response

    async def _hold(self) -> None:
        self.holding += 1
        try:
            await self._release.wait()
        finally:
            self.holding -= 1

    def _log(self, session: str, body: dict[str, Any], conversation: Conversation) -> None:
        self.requests.append(
            ApiRequest(
                number=len(self.requests) + 1,
                session=session,
                model=str(body.get("model", "")),
                prompt=conversation.prompt,
                kind=conversation.kind,
                scenario=conversation.scenario,
                used=conversation.used,
                tool_results=conversation.results,
                system=text_of({"content": body.get("system")}),
                tools=tuple(str(tool.get("name")) for tool in body.get("tools") or []),
            )
        )

    async def _show_requests(self, _: web.Request) -> web.Response:
        return web.json_response([asdict(request) for request in self.requests])

    async def _show_holding(self, _: web.Request) -> web.Response:
        return web.json_response({"holding": self.holding})

    async def _release_over_http(self, _: web.Request) -> web.Response:
        released = self.holding
        self.release()
        return web.json_response({"released": released})


async def _alive(_: web.Request) -> web.Response:
    return web.json_response({"name": "scripted Messages API"})


async def _count_tokens(_: web.Request) -> web.Response:
    return web.json_response({"input_tokens": 100})


def _whole(request: web.Request, message: Message, identity: stream.Identity) -> web.Response:
    """What a client gets that falls back to an answer in one piece; a stream that is cut fails here too."""
    if any(isinstance(step, stream.Cut) for step in stream.events(message, identity)):
        _hang_up(request)
    return web.json_response(stream.whole(message, identity))


def _hang_up(request: web.Request) -> None:
    """Close the connection behind what is written so far."""
    if request.transport is not None:
        request.transport.close()


def _error(failure: Failure) -> web.Response:
    error = {"type": failure.type, "message": f"Scripted error {failure.status}."}
    return web.json_response({"type": "error", "error": error}, status=failure.status)


def _schema(body: dict[str, Any]) -> dict[str, Any] | None:
    """The JSON schema that the answer must follow, which only side requests have (titles, summaries)."""
    form = (body.get("output_config") or {}).get("format") or {}
    return form.get("schema") if form.get("type") == "json_schema" else None


def _joined(steps: Iterator[stream.Step]) -> Iterator[stream.Step]:
    """The same steps with neighbouring bytes joined: a flood is bound by the reader, not by our writes.

    The first event goes out alone, because clients measure the time to the first token.
    """
    yield next(steps)
    waiting = bytearray()
    for step in steps:
        if isinstance(step, bytes):
            waiting += step
            if len(waiting) < _WRITE_SIZE:
                continue
        if waiting:
            yield bytes(waiting)
            waiting.clear()
        if not isinstance(step, bytes):
            yield step
    if waiting:
        yield bytes(waiting)
