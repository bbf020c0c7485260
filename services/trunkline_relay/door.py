"""How programs of this machine talk to the host's side: `<home>/relay.sock`, for its owner alone; one line of JSON asks, lines answer."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec

from trunkline_relay.pairing import Arrived, NotDone, Offer
from trunkline_relay.sealed import GoneError
from trunkline_seal.pairing import VALID_S
from trunkline_wire import TrunklineError, encode
from trunkline_wire.secret import Discreet, Secret

log = logging.getLogger(__name__)

MAX_LINE: Final = 8 * 1024
ASK_S: Final = 10.0

Say = Callable[[Any], Awaitable[None]]


class Request(Discreet, frozen=True, kw_only=True):
    do: Literal["status", "pair", "reconnect"]
    invitation: Secret = ""
    """For `pair`: of the gateway's `device.invite`."""


class _Decision(msgspec.Struct, frozen=True):
    agree: bool


class Host(Protocol):
    """What can be asked of the host's side."""

    def status(self) -> dict[str, Any]: ...
    def hurry(self) -> None: ...
    def offered(self, invitation: str) -> contextlib.AbstractAsyncContextManager[Offer]: ...


@asynccontextmanager
async def open_door(path: Path, host: Host) -> AsyncGenerator[None]:
    """Listens for as long as the block runs. Raises TrunklineError `already_running`, `bad_settings`."""
    listening = await asyncio.to_thread(_socket, path)
    tasks: set[asyncio.Task[None]] = set()

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await _serve(host, reader, writer)
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_unix_server(met, sock=listening, limit=MAX_LINE)
    try:
        yield
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(path.unlink, missing_ok=True)


async def _serve(host: Host, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async def say(answer: Any) -> None:
        writer.write(encode(answer) + b"\n")
        await writer.drain()

    with contextlib.suppress(ConnectionError, TimeoutError, ValueError):
        try:
            async with asyncio.timeout(ASK_S):
                request = _read(await reader.readline())
            if request.do == "pair":
                await _pair(host, request.invitation, reader, say)
            else:
                if request.do == "reconnect":
                    host.hurry()
                await say({"type": "status", **host.status()})
        except TrunklineError as error:
            await say({"type": "failed", "code": error.code, "message": error.message})


async def _pair(host: Host, invitation: str, reader: asyncio.StreamReader, say: Say) -> None:
    if not invitation:
        raise TrunklineError("bad_params", "`pair` wants an invitation of the gateway's", field="invitation")
    try:
        async with host.offered(invitation) as offer, asyncio.TaskGroup() as group:
            await say({"type": "link", "link": offer.link.url, "seconds": VALID_S, **host.status()})
            hearing = group.create_task(_hear(offer, reader))
            try:
                async with asyncio.timeout(VALID_S):
                    step = await offer.steps.get()
            except TimeoutError:
                step = NotDone(
                    code="bad_pairing", message="no device came in time: `trunkline pair` makes another link"
                )
            await say(step)
            while isinstance(step, Arrived):
                step = await offer.steps.get()
                await say(step)
            hearing.cancel()
    except* (GoneError, ConnectionError, ValueError):
        pass  # it has hung up, or says what has no end
    except* TrunklineError as errors:
        raise errors.exceptions[0] from None


async def _hear(offer: Offer, reader: asyncio.StreamReader) -> None:
    """What the person says to the code. Raises GoneError once the program has hung up: the link ends with it."""
    while line := await reader.readline():
        try:
            offer.decide(msgspec.json.decode(line, type=_Decision).agree)
        except msgspec.MsgspecError:
            offer.decide(False)
    raise GoneError


def _read(line: bytes) -> Request:
    try:
        return msgspec.json.decode(line, type=Request)
    except msgspec.MsgspecError as error:
        raise TrunklineError("bad_frame", f"no request of the relay's: {error}") from error


def _socket(path: Path) -> socket.socket:
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.connect(os.fspath(path))
    except OSError:
        path.unlink(missing_ok=True)
    else:
        raise TrunklineError("already_running", f"another relay listens at {str(path)!r}")
    finally:
        probe.close()
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        made.bind(os.fspath(path))
    except OSError as error:
        made.close()
        raise TrunklineError("bad_settings", f"can't listen at {str(path)!r}: {error}") from error
    finally:
        os.umask(mask)
    made.setblocking(False)
    return made
