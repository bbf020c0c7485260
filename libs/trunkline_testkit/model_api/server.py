"""The HTTP side of the scripted API: one port on loopback, a log of what was asked, and a handle on held streams."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self

from aiohttp import web

from trunkline_testkit.model_api import chat, gemini, messages, responses
from trunkline_testkit.model_api.answer import Failure, Message
from trunkline_testkit.model_api.conversation import Conversation, ToolResult
from trunkline_testkit.model_api.scenarios import reply
from trunkline_testkit.model_api.steps import Cut, Hold, Identity, Pause, Step
from trunkline_testkit.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_WRITE_SIZE = 32 * 1024
_SSE = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
_BODIES = 16
_MAX_REQUEST = 64 * 1024 * 1024
MODEL = "scripted"
"""The model on the lists; any other name is answered just the same."""
_SESSION_HEADERS = ("X-Claude-Code-Session-Id", "session_id", "x-session-id")


class Api(Protocol):
    """One published API: how its requests are read and its answers written. Each is a module of pure functions."""

    def read(self, body: dict[str, Any], /) -> Conversation: ...

    def events(self, message: Message, identity: Identity, /) -> Iterator[Step]: ...

    def whole(self, message: Message, identity: Identity, /) -> dict[str, Any]: ...

    def error(self, failure: Failure, /) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request for an answer of the model, as far as tests ask about it."""

    number: int
    """1, 2, 3 … in the order of arrival."""
    path: str
    session: str
    """The agent's own session id, where it names it in a header, or ""."""
    model: str
    prompt: str
    """The text of the prompt that the turn answers."""
    earlier: tuple[str, ...]
    """Those before it in the conversation."""
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

    `requests`: everything asked so far. `bodies`: the latest requests, as they came. `holding`: streams that wait for `release()` now.
    """

    def __init__(self, port: int = 0, host: str = "127.0.0.1") -> None:
        self._host = host
        self.requests: list[ApiRequest] = []
        self.bodies: deque[bytes] = deque(maxlen=_BODIES)
        self.holding = 0
        self._port = port
        self._release = asyncio.Event()
        self._failed: set[str] = set()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """`http://<host>:<port>`, fit for ANTHROPIC_BASE_URL; OpenAI's clients want `/v1` behind it."""
        return f"http://{'127.0.0.1' if self._host == '0.0.0.0' else self._host}:{self._port}"

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
                web.post("/v1/messages", partial(self._answer, messages)),
                web.post("/v1/messages/count_tokens", _count_tokens),
                web.post("/v1/responses", partial(self._answer, responses)),
                web.post("/v1/chat/completions", partial(self._answer, chat)),
                web.get("/v1/models", _models),
                web.get("/v1/models/{model}", _model),
                web.post("/v1beta/models/{model}:{method}", self._gemini),
                web.get("/v1beta/models", _gemini_models),
                web.get("/control/requests", self._show_requests),
                web.get("/control/holding", self._show_holding),
                web.post("/control/release", self._release_over_http),
            ]
        )
        # A client that hangs up (an interrupted turn) must free its held stream.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
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

    async def _answer(self, api: Api, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await self._body(request)
        return await self._reply(api, request, api.read(body), stream=bool(body.get("stream")))

    async def _body(self, request: web.Request) -> Any:
        self.bodies.append(await request.read())
        return await request.json()

    async def _gemini(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await self._body(request)
        method = request.match_info["method"]
        if method == "countTokens":
            return web.json_response({"totalTokens": 100})
        if method not in {"generateContent", "streamGenerateContent"}:
            return web.json_response(gemini.error(Failure(404)), status=404)
        conversation = gemini.read(body | {"model": request.match_info["model"]})
        return await self._reply(gemini, request, conversation, stream=method == "streamGenerateContent")

    async def _reply(
        self, api: Api, request: web.Request, conversation: Conversation, *, stream: bool
    ) -> web.StreamResponse:
        session = next((request.headers[name] for name in _SESSION_HEADERS if name in request.headers), "")
        self._log(request.path, session, conversation)
        prompt_key = f"{session}/{conversation.position}/{conversation.prompt}"
        answer = reply(conversation, failed_before=prompt_key in self._failed)
        if conversation.scenario.startswith("once"):
            self._failed.add(prompt_key)
        if isinstance(answer, Failure):
            return web.json_response(api.error(answer), status=answer.status)
        identity = Identity(conversation.model, f"{prompt_key}/{conversation.length}", 100 + conversation.length)
        steps = api.events(answer, identity)
        if stream:
            return await self._stream(request, steps, identity)
        if any(isinstance(step, Cut) for step in steps):
            _hang_up(request)
        return web.json_response(api.whole(answer, identity))

    async def _stream(self, request: web.Request, steps: Iterator[Step], identity: Identity) -> web.StreamResponse:
        response = web.StreamResponse(headers={**_SSE, "request-id": identity.id("req")})
        await response.prepare(request)
        for step in _joined(steps):
            match step:
                case Pause():
                    await asyncio.sleep(step.seconds)
                case Hold():
                    await self._hold()
                case Cut():
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

    def _log(self, path: str, session: str, conversation: Conversation) -> None:
        self.requests.append(
            ApiRequest(
                number=len(self.requests) + 1,
                path=path,
                session=session,
                model=conversation.model,
                prompt=conversation.prompt,
                earlier=conversation.earlier,
                kind=conversation.kind,
                scenario=conversation.scenario,
                used=conversation.used,
                tool_results=conversation.results,
                system=conversation.system,
                tools=tuple(tool.name for tool in conversation.tools),
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
    return web.json_response({"name": "scripted model APIs"})


async def _count_tokens(_: web.Request) -> web.Response:
    return web.json_response({"input_tokens": 100})


async def _models(request: web.Request) -> web.Response:
    """The list of models, as Anthropic or as OpenAI gives it."""
    return web.json_response({"object": "list", "has_more": False, "data": [_described(request, MODEL)]})


async def _model(request: web.Request) -> web.Response:
    return web.json_response(_described(request, request.match_info["model"]))


def _described(request: web.Request, model: str) -> dict[str, Any]:
    if "anthropic-version" in request.headers:
        return {"type": "model", "id": model, "display_name": "Scripted", "created_at": "2026-01-01T00:00:00Z"}
    return {"id": model, "object": "model", "created": responses.CREATED, "owned_by": "trunkline"}


async def _gemini_models(_: web.Request) -> web.Response:
    methods = ["generateContent", "countTokens"]
    limits = {"inputTokenLimit": 1_000_000, "outputTokenLimit": 65_536}
    model = {"name": f"models/{MODEL}", "displayName": "Scripted", "supportedGenerationMethods": methods, **limits}
    return web.json_response({"models": [model]})


def _hang_up(request: web.Request) -> None:
    """Close the connection behind what is written so far."""
    if request.transport is not None:
        request.transport.close()


def _joined(steps: Iterator[Step]) -> Iterator[Step]:
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
