"""Whole messages to and from an agent, whatever carries them: a process's pipes (`AgentProcess`) or a WebSocket.

The WebSocket may be on TCP or on a unix socket. Its capability token is read from a file and travels in a header alone:
never in an address or an argument, which others can read.
"""

import asyncio
import contextlib
import ipaddress
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

import aiohttp

from trunkline_agentkit.recorder import Recorder, Speaker
from trunkline_wire import TrunklineError, encode

LARGEST: Final = 64 * 1024 * 1024
"""Bytes of the largest message that a WebSocket may bring."""

CONNECT_DEADLINE: Final = 10.0
_CLOSE_DEADLINE: Final = 2.0


class LineTransport(Protocol):
    """One reader of `lines()`, any number of writers. `AgentProcess` is one."""

    def lines(self) -> AsyncIterator[bytes]:
        """Every message of the agent, in order, once, as its bytes; ends when the agent's output ends."""
        ...

    async def write_line(self, message: object) -> None:
        """Sends one message whole, even if cancelled (bytes are taken as its JSON text).

        Messages go out in the order of the calls. Raises TrunklineError `agent_failed` when the agent no longer reads.
        """
        ...


class WebSocketLines:
    """One message a frame. Made by `connect_websocket`."""

    def __init__(
        self, client: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse[bool], recorder: Recorder | None
    ) -> None:
        self._client = client
        self._socket = socket
        self._recorder = recorder
        self._closed = False

    @property
    def running(self) -> bool:
        return not self._socket.closed

    async def lines(self) -> AsyncIterator[bytes]:
        async for frame in self._socket:
            if frame.type not in {aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY}:
                break  # an error of the protocol: nothing follows
            line: bytes = frame.data
            if line.strip():
                self._record("agent", line)
                yield line

    async def write_line(self, message: object) -> None:
        line = message if isinstance(message, bytes) else encode(message)
        if self._socket.closed:
            raise _gone()
        self._record("host", line)
        try:
            await self._socket.send_frame(line, aiohttp.WSMsgType.TEXT)
        except (ConnectionError, aiohttp.ClientError) as error:
            raise _gone() from error

    async def close(self) -> None:
        """Says goodbye and ends the connection. May be called twice."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_DEADLINE):
                await self._socket.close()
        await self._client.close()
        if self._recorder is not None:
            self._recorder.close()

    def _record(self, speaker: Speaker, line: bytes) -> None:
        if self._recorder is not None:
            self._recorder.line(speaker, line)


async def connect_websocket(
    url: str,
    *,
    unix_socket: Path | None = None,
    token_file: Path | None = None,
    recorder: Recorder | None = None,
    deadline: float = CONNECT_DEADLINE,
) -> WebSocketLines:
    """Connects to an agent's WebSocket; over `unix_socket` the URL names only host and path.

    Raises TrunklineError `bad_params` (an address that isn't one, or would show a secret), `bad_settings` (no token in the
    file), `agent_auth` (the agent refuses the token), `agent_failed` or `timeout` (nobody answers there).
    """
    _check_address(url, secret=token_file is not None, local=unix_socket is not None)
    headers = {} if token_file is None else {"Authorization": f"Bearer {await asyncio.to_thread(_token, token_file)}"}
    connector = aiohttp.UnixConnector(str(unix_socket)) if unix_socket is not None else aiohttp.TCPConnector()
    client = aiohttp.ClientSession(connector=connector)
    where = repr(str(unix_socket or url))
    try:
        async with asyncio.timeout(deadline):
            # No Origin header: agents refuse what looks like a page of a browser.
            socket = await client.ws_connect(url, headers=headers, max_msg_size=LARGEST, decode_text=False)
    except BaseException as error:
        await client.close()
        match error:
            case TimeoutError():
                raise TrunklineError("timeout", f"the agent at {where} did not answer within {deadline:g} s") from error
            case aiohttp.WSServerHandshakeError(status=401 | 403):
                raise TrunklineError(
                    "agent_auth", f"the agent at {where} refused the connection: name the file that holds its token"
                ) from None  # the cause holds the request's headers
            case aiohttp.WSServerHandshakeError():
                raise TrunklineError(
                    "agent_failed", f"there is no WebSocket at {where}: HTTP status {error.status}"
                ) from None  # likewise
            case aiohttp.ClientError() | OSError():
                raise TrunklineError(
                    "agent_failed", f"the agent at {where} can't be reached: is it running?"
                ) from error
            case _:
                raise
    return WebSocketLines(client, socket, recorder)


def _check_address(url: str, *, secret: bool, local: bool) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        raise TrunklineError("bad_params", "the agent's address is not a URL: give ws://host:port/path") from error
    if parts.scheme not in {"ws", "wss"} or not host:
        raise TrunklineError("bad_params", f"{parts.scheme!r} is no address of a WebSocket: give ws://host:port/path")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise TrunklineError(
            "bad_params", "the agent's address must hold no user, password or query: name a token file instead"
        )
    if secret and parts.scheme == "ws" and not local and not _loopback(host):
        raise TrunklineError(
            "bad_params",
            f"the token would go to {host!r} unencrypted: give a wss:// address, or that of a tunnel on 127.0.0.1",
        )


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token(path: Path) -> str:
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TrunklineError("bad_settings", f"the token file {str(path)!r} can't be read: create it") from error
    if not token or any(not 32 < ord(character) < 127 for character in token):
        raise TrunklineError("bad_settings", f"the token file {str(path)!r} must hold one token and nothing else")
    return token


def _gone() -> TrunklineError:
    return TrunklineError("agent_failed", "the connection to the agent has ended: send a prompt to open it again")
