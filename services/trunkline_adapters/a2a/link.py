"""The way to an agent's server: its card, requests, and answers that come as a stream.

Loopback alone: such servers take whoever reaches them. Closing the connection on which a message was sent cancels its task with
some servers, and they close one that is idle: so messages go over one connection, which is kept in use while somebody decides.
"""

import contextlib
import ipaddress
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp

from trunkline_adapters.a2a.native import CARD_PATH
from trunkline_agentkit import LineSplitter, OpenRecorder
from trunkline_agentkit.fields import Obj, as_obj, text
from trunkline_agentkit.recorder import Recorder, Speaker
from trunkline_wire import TrunklineError, decode_json, encode

CONNECT_S: Final = 10.0
CALL_S: Final = 30.0
_IDLE_S: Final = 3.5
"""Seconds after which an idle connection is not used again: servers of Node close theirs after five."""
_LARGEST: Final = 64 * 1024 * 1024
_DATA: Final = b"data:"


class Link:
    """`address` is that of the server or of its card."""

    def __init__(self, address: str) -> None:
        self.card_url = card_url(address)
        self._url = self.card_url
        # One connection for messages: what ends it would end the task. Another for all else.
        self._talking = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=1, keepalive_timeout=_IDLE_S),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
        )
        self._calling = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CALL_S, sock_connect=CONNECT_S))
        self._recorder: Recorder | None = None

    async def record(self, recorder: OpenRecorder | None) -> None:
        """From now on what passes is recorded, if anything shall be."""
        if recorder is not None:
            self._recorder = await recorder()

    async def card(self) -> bytes:
        """The agent's card as it came. Raises TrunklineError `agent_failed`, `agent_auth`, `bad_params`."""
        raw = await self._get(self._calling)
        self._passed("agent", raw)
        card = as_obj(_decoded(raw))
        if (said := text(card, "url")) is None:
            raise TrunklineError("agent_failed", f"there is no agent card at {self.card_url!r}")
        self._url = _loopback(urljoin(self.card_url, said))
        return raw

    async def keep(self) -> None:
        """Uses the connection for messages, so that it stays."""
        await self._get(self._talking)

    async def call(self, method: str, params: Obj, id: str) -> bytes:
        """The answer to a request, as it came. Raises TrunklineError `agent_failed`, `agent_auth`."""
        async with self._post(self._calling, method, params, id) as response:
            raw = await response.read()
        self._passed("agent", raw)
        return raw

    async def stream(self, method: str, params: Obj, id: str) -> AsyncIterator[bytes]:
        """Every answer to a request, as it came; ends with the stream. Raises TrunklineError `agent_failed`, `agent_auth`."""
        async with self._post(self._talking, method, params, id) as response:
            if response.content_type != "text/event-stream":
                raw = await response.read()
                self._passed("agent", raw)
                yield raw
                return
            splitter = LineSplitter()
            async for chunk in response.content.iter_any():
                for line in splitter.feed(chunk):
                    if line.startswith(_DATA):
                        raw = line.removeprefix(_DATA).strip()
                        self._passed("agent", raw)
                        yield raw
                if splitter.pending > _LARGEST:
                    raise TrunklineError("agent_failed", "the agent sent a message over 64 MiB")

    async def close(self) -> None:
        await self._talking.close()
        await self._calling.close()
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None

    def _passed(self, speaker: Speaker, message: bytes) -> None:
        if self._recorder is not None:
            self._recorder.line(speaker, message)

    async def _get(self, client: aiohttp.ClientSession) -> bytes:
        with _told(self.card_url):
            async with client.get(self.card_url, allow_redirects=False) as response:
                _check(response, self.card_url)
                return await response.read()

    @contextlib.asynccontextmanager
    async def _post(
        self, client: aiohttp.ClientSession, method: str, params: Obj, id: str
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        body = encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
        self._passed("host", body)
        with _told(self._url):
            async with client.post(self._url, data=body, headers=headers, allow_redirects=False) as response:
                _check(response, self._url)
                yield response


@contextlib.contextmanager
def _told(url: str) -> Generator[None]:
    """What keeps us from the server, as an error that says what to do."""
    try:
        yield
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise TrunklineError(
            "agent_failed", f"the agent at {url!r} can't be reached ({type(error).__name__}): is its server running?"
        ) from error


def _check(response: aiohttp.ClientResponse, url: str) -> None:
    if response.status in {401, 403}:
        raise TrunklineError("agent_auth", f"the agent at {url!r} wants credentials, which can't be given here")
    if response.status != 200:
        raise TrunklineError("agent_failed", f"the agent at {url!r} answers with HTTP status {response.status}")


def _decoded(raw: bytes) -> object:
    try:
        return decode_json(raw)
    except ValueError:
        return None


def card_url(address: str) -> str:
    """Where an agent's card is. Raises TrunklineError `bad_params` for an address that is none, or not on this machine."""
    url = _loopback(address)
    return url if urlsplit(url).path.endswith(".json") else urljoin(url, CARD_PATH)


def _loopback(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        raise TrunklineError("bad_params", "the agent's address is no URL: give http://127.0.0.1:PORT") from error
    if parts.scheme not in {"http", "https"} or not host or "@" in parts.netloc:
        raise TrunklineError("bad_params", "the agent's address is no URL: give http://127.0.0.1:PORT")
    if not _is_local(host):
        raise TrunklineError(
            "bad_params",
            f"{host!r} is another machine, and an A2A server takes whoever reaches it: run the worker there, or a tunnel to 127.0.0.1",
        )
    return url


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
