"""An agent that is an HTTP server: our requests, its answers, and the events that it sends, as one stream of messages.

What passes is put into words of JSON, so that it is recorded and translated like the lines of any other agent. Of ours:
`{"http": "POST /session", "n": 1, "body": …}`. Of the agent: `{"http": "POST /session", "n": 1, "status": 200, "body": …}` (`text`
in place of `body` where it is no JSON, `lost` in place of both where no answer came), `{"sse": "/event", "status": 200}` when a
stream of events begins, `{"sse": "/event", "data": …}` for each event, `{"sse": "/event", "lost": …}` when it breaks off, and
`{"stdout": …}` for what its program prints.

Every message is yielded once, in order, with its bytes, answers too. Above 8 MB of messages that nobody has read no more
events are taken, and the agent waits.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from typing import Any, Final

import aiohttp
import msgspec

from trunkline_agentkit.fields import Obj
from trunkline_agentkit.framing import NOT_JSON, Decoded, decode_line
from trunkline_agentkit.protocol import Native
from trunkline_agentkit.recorder import Speaker
from trunkline_agentkit.sse import EventSplitter
from trunkline_agentkit.unread import Unread
from trunkline_wire import TrunklineError, decode_json, encode

DEADLINE: Final = 30.0
"""Seconds for an answer, where the caller names no other limit."""

LARGEST: Final = 64 * 1024 * 1024
"""Bytes of the largest answer, and of the largest event."""

_CONNECT_S: Final = 10.0
_SHOWN: Final = 4096
"""Characters that are kept of an answer that is no JSON."""
_HIDDEN: Final = b"[redacted]"

Record = Callable[[Speaker, bytes], None]


def _unrecorded(speaker: Speaker, line: bytes) -> None:
    del speaker, line


class HttpResponse(msgspec.Struct, frozen=True):
    """`body` is JSON, None where there is none; the names of `headers` are in lower case."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = {}

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class Exchange:
    """`understand` translates each message when it comes; `sent` hears each of ours before it goes out.

    `shown` may take things out of an answer's body before anyone sees it, given the request (`GET /config`). `concerns` is
    asked of each event's data whether it is any of our business. `secrets` stand in no message, however they came into it.
    Close it after use.
    """

    def __init__(
        self,
        understand: Callable[[Decoded], Native],
        *,
        sent: Callable[[Obj], object] = lambda _: None,
        record: Record = _unrecorded,
        shown: Callable[[str, Any], Any] = lambda _, body: body,
        concerns: Callable[[Obj], bool] = lambda _: True,
        secrets: Collection[str] = (),
    ) -> None:
        self._understand = understand
        self._sent = sent
        self._record = record
        self._shown = shown
        self._concerns = concerns
        self._secrets = tuple(secret.encode() for secret in secrets if secret)
        self._client: aiohttp.ClientSession | None = None
        self._base = ""
        self._params: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._unread = Unread()

    def reach(
        self, base: str, *, headers: Mapping[str, str] | None = None, params: Mapping[str, str] | None = None
    ) -> None:
        """Where the agent is (`http://127.0.0.1:4096`), and what goes with every request. Once, before any of them."""
        self._base = base.rstrip("/")
        self._params = dict(params or {})
        # A connection for each request: one that was kept would fail the first request after the agent was restarted.
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True),
            headers=dict(headers or {}),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        )

    @property
    def ended(self) -> bool:
        return self._unread.ended

    async def request(self, method: str, path: str, body: Any = None, *, deadline: float = DEADLINE) -> HttpResponse:
        """The agent's answer, whatever its status; `path` may hold a query.

        Raises TrunklineError `timeout` or `agent_failed`, whose detail `sent` says whether the request may have reached the
        agent, and `unsupported` where a page comes in place of an answer.
        """
        named, number = f"{method} {path}", next(self._numbers)
        client = self._connected
        message: Obj = {"http": named, "n": number} | ({} if body is None else {"body": body})
        self._sent(message)
        self._record("host", self._without_secrets(encode(message)))
        try:
            async with asyncio.timeout(deadline):
                status, headers, content = await self._ask(client, method, path, body)
        except TimeoutError as error:
            self._take(encode({"http": named, "n": number, "lost": "timeout"}))
            raise TrunklineError(
                "timeout", f"the agent did not answer {named!r} within {deadline:g} s; it may still do it", sent=True
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            self._take(encode({"http": named, "n": number, "lost": type(error).__name__}))
            raise _unreachable(named, error) from error
        return self._answered(named, number, status, headers, content)

    async def _ask(
        self, client: aiohttp.ClientSession, method: str, path: str, body: Any
    ) -> tuple[int, dict[str, str], bytes]:
        async with client.request(
            method,
            self._base + path,
            params=self._params,
            data=None if body is None else encode(body),
            headers=None if body is None else {"Content-Type": "application/json"},
            allow_redirects=False,
        ) as response:
            content = bytearray()
            async for chunk in response.content.iter_any():
                content += chunk
                if len(content) > LARGEST:
                    raise aiohttp.ClientPayloadError(f"an answer of more than {LARGEST} bytes")
            return response.status, {name.lower(): value for name, value in response.headers.items()}, bytes(content)

    def _answered(self, named: str, number: int, status: int, headers: dict[str, str], content: bytes) -> HttpResponse:
        message: Obj = {"http": named, "n": number, "status": status}
        body: Any = None
        if content.strip():
            decoded = decode_line(content)
            if decoded.reason == NOT_JSON:
                message["text"] = content.decode(errors="replace")[:_SHOWN]
            else:
                body = decode_json(decoded.raw)
                shown = self._shown(named, body)
                message["body"] = msgspec.Raw(decoded.raw) if shown is body else shown
        self._take(encode(message))
        if headers.get("content-type", "").startswith("text/html"):
            raise TrunklineError(
                "unsupported", f"the agent's server has no {named!r}: update the agent", capability="native_protocol"
            )
        return HttpResponse(status, body, headers)

    @contextlib.asynccontextmanager
    async def events(self, path: str, *, silence: float) -> "AsyncGenerator[Events]":
        """A stream of events, open as long as the block. `silence` is how many seconds may pass without a byte of it.

        Raises TrunklineError `agent_auth`, `agent_failed`, `timeout`.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=silence)
        try:
            response = await self._connected.get(
                self._base + path,
                params=self._params,
                headers={"Accept": "text/event-stream"},
                timeout=timeout,
                allow_redirects=False,
            )
        except TimeoutError as error:
            raise TrunklineError("timeout", f"the agent did not answer {path!r} within {silence:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(path, error) from error
        try:
            if response.status != 200 or response.content_type != "text/event-stream":
                raise _no_events(path, response.status)
            self._take(encode({"sse": path, "status": response.status}))
            yield Events(path, response, self)
        finally:
            response.close()

    def say(self, message: Obj) -> None:
        """A message of the agent that came another way."""
        self._take(encode(message))

    async def event(self, path: str, data: bytes) -> None:
        """One event of a stream, once there is room for it."""
        decoded = decode_line(data)
        if decoded.message is not None and not self._concerns(decoded.message):
            return
        await self._unread.room()
        self._take(encode({"sse": path, "data": msgspec.Raw(decoded.raw)}))

    def messages(self) -> AsyncIterator[Native]:
        """All that the agent says, in order, once; ends when `end` was called. For one reader."""
        return self._unread.messages()

    def release(self) -> None:
        """The agent is being ended: what it still says is kept for `messages()`, however slowly that is read."""
        self._unread.release()

    def end(self) -> None:
        """Nothing more will come."""
        self._unread.end()

    async def close(self) -> None:
        """Ends all connections. May be called twice."""
        self.end()
        if self._client is not None:
            await self._client.close()

    @property
    def _connected(self) -> aiohttp.ClientSession:
        if self._client is None or self._client.closed or self.ended:
            raise TrunklineError(
                "agent_failed", "there is no connection to the agent: send a prompt to start it again", sent=False
            )
        return self._client

    def _take(self, line: bytes) -> None:
        decoded = decode_line(self._without_secrets(line))
        self._record("agent", decoded.raw)
        self._unread.keep(self._understand(decoded))

    def _without_secrets(self, line: bytes) -> bytes:
        for secret in self._secrets:
            line = line.replace(secret, _HIDDEN)
        return line


class Events:
    """An open stream of events. Made by `Exchange.events`."""

    def __init__(self, path: str, response: aiohttp.ClientResponse, exchange: Exchange) -> None:
        self._path = path
        self._response = response
        self._exchange = exchange
        self._splitter = EventSplitter()
        self._lost = False

    async def begin(self) -> bool:
        """Waits for the first event and gives it to the exchange; False where the stream ended before."""
        while not await self._step():
            if self._lost:
                return False
        return True

    async def follow(self) -> None:
        """Gives the exchange every event, until the stream ends or breaks off, which becomes a message too."""
        while not self._lost:
            await self._step()

    async def _step(self) -> bool:
        """One piece of the stream; whether it held an event."""
        why, found = "", False
        try:
            chunk = await self._response.content.readany()
            for data in self._splitter.feed(chunk):
                found = True
                await self._exchange.event(self._path, data)
            why = "" if chunk else "ended"
            if self._splitter.pending > LARGEST:
                why = "too_large"
        except TimeoutError:
            why = "silent"
        except (aiohttp.ClientError, OSError) as error:
            why = type(error).__name__
        if why:
            self._lost = True
            self._exchange.say({"sse": self._path, "lost": why})
        return found


def _unreachable(named: str, error: Exception) -> TrunklineError:
    sent = not isinstance(error, aiohttp.ClientConnectorError)
    said = (
        f"the agent's server ended the connection before it answered {named!r}"
        if sent
        else "the agent's server can't be reached: is it running?"
    )
    return TrunklineError("agent_failed", said, sent=sent)


def _no_events(path: str, status: int) -> TrunklineError:
    if status in {401, 403}:
        return TrunklineError(
            "agent_auth", "the agent's server refused the connection: name the file that holds its password"
        )
    return TrunklineError("agent_failed", f"there are no events at {path!r}: HTTP status {status}")
