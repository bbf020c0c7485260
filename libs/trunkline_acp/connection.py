"""JSON-RPC with an editor over a pair of streams: its requests served, ours asked and called off, updates told.

One task reads. Each request is served in a task of its own; what the editor notifies is done at once, in order.
"""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from trunkline_acp.native import CANCEL_REQUEST, UPDATE, code_of
from trunkline_agentkit import jsonrpc
from trunkline_agentkit.fields import Obj, as_obj
from trunkline_agentkit.framing import LineSplitter, decode_line, frame
from trunkline_agentkit.jsonrpc import Notification, Request, Response
from trunkline_wire import TrunklineError, decode_json

log = logging.getLogger(__name__)

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
CHUNK: Final = 256 * 1024
SERVED: Final = 256
"""Requests of the editor that may be under way at a time."""


class Reply(msgspec.Struct, frozen=True):
    """A result, and what is to be done once the editor has it."""

    result: Obj
    then: Callable[[], Awaitable[None]]


Serve = Callable[[Obj], Awaitable[Obj | Reply]]
Hear = Callable[[Obj], None]


class Reads(Protocol):
    async def read(self, n: int = -1, /) -> bytes: ...


class Writes(Protocol):
    def write(self, data: bytes, /) -> None: ...
    async def drain(self) -> None: ...


class RefusedError(Exception):
    """The editor answered a request of ours with an error."""


class Editor:
    """The other end. `run` serves it until it has said its last."""

    def __init__(self, reader: Reads, writer: Writes) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._asked: dict[bytes, asyncio.Future[Any]] = {}
        self._serving: dict[bytes, asyncio.Task[None]] = {}
        self._gone = False

    async def run(self, served: Mapping[str, Serve], heard: Mapping[str, Hear]) -> None:
        """Serves the editor's requests and hears its notifications; returns at the end of its input."""
        lines = LineSplitter()
        try:
            while data := await self._reader.read(CHUNK):
                for line in lines.feed(data):
                    await self._take(line, served, heard)
            for line in lines.end():
                await self._take(line, served, heard)
        finally:
            self._gone = True
            tasks = list(self._serving.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for answer in self._asked.values():
                answer.cancel()

    async def update(self, session: str, update: Obj) -> None:
        """Tells an update of a session; waits where the editor reads slowly."""
        await self._send(jsonrpc.notification(UPDATE, {"sessionId": session, "update": update}))

    async def request(self, method: str, params: Obj) -> Obj:
        """The editor's answer, whenever it comes. Whoever cancels this calls the request off: a late answer says nothing.

        Raises RefusedError for an error of the editor's.
        """
        number = next(self._numbers)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[jsonrpc.id_key(number)] = answer
        try:
            await self._send(jsonrpc.request(number, method, params))
            return as_obj(await answer)
        except asyncio.CancelledError:
            self._write(jsonrpc.notification(CANCEL_REQUEST, {"requestId": number}))
            raise
        finally:
            del self._asked[jsonrpc.id_key(number)]

    async def _take(self, line: bytes, served: Mapping[str, Serve], heard: Mapping[str, Hear]) -> None:
        decoded = decode_line(line)
        match jsonrpc.read(decoded):
            case Response() as response:
                self._settle(response)
            case Notification(method=method, params=params) if method == CANCEL_REQUEST:
                task = self._serving.get(jsonrpc.id_key(as_obj(params).get("requestId")))
                if task is not None:
                    task.cancel()
            case Notification(method=method, params=params):
                hear = heard.get(method)
                if hear is not None:
                    hear(as_obj(params))
            case Request() as request:
                await self._begin(request, served.get(request.method))
            case None:
                log.warning("not_understood", extra={"bytes": len(line), "reason": decoded.reason})
                code, said = (PARSE_ERROR, "no JSON") if decoded.message is None else (INVALID_REQUEST, "no message")
                await self._send({"id": None, "error": jsonrpc.error_of(code, f"{said} of JSON-RPC 2.0")})

    def _settle(self, response: Response) -> None:
        answer = self._asked.get(response.id)
        if answer is None or answer.done():
            log.info("answer_too_late", extra={"request": response.id.decode(errors="replace")})
        elif response.error is not None:
            answer.set_exception(RefusedError(f"{response.error.code}: {response.error.message}"))
        else:
            answer.set_result(response.result)

    async def _begin(self, request: Request, serve: Serve | None) -> None:
        if serve is None:
            said = f"there is no method {request.method!r} here"
            await self._refuse(request, jsonrpc.METHOD_NOT_FOUND, said)
        elif request.id in self._serving:
            await self._refuse(request, INVALID_REQUEST, "a request of this id is under way")
        elif len(self._serving) >= SERVED:
            await self._refuse(request, jsonrpc.INTERNAL_ERROR, f"more than {SERVED} requests at a time: wait")
        else:
            task = asyncio.create_task(self._serve(request, serve), name=f"serving {request.method}")
            self._serving[request.id] = task
            await asyncio.sleep(0)  # it has to have begun before it can be cancelled: only then does it answer

    async def _serve(self, request: Request, serve: Serve) -> None:
        try:
            given = await serve(as_obj(request.params))
            await self._answer(request, {"result": given.result if isinstance(given, Reply) else given})
            if isinstance(given, Reply):
                await given.then()
        except TrunklineError as error:
            details = {"code": error.code, **error.details}
            await self._refuse(request, code_of(error), error.message, details)
        except asyncio.CancelledError:
            if self._gone:
                raise
            await self._refuse(request, jsonrpc.CANCELLED, "cancelled")
        except ConnectionError:
            pass  # the editor is gone
        except Exception as error:
            log.exception("serving_failed", extra={"method": request.method})
            await self._refuse(request, jsonrpc.INTERNAL_ERROR, f"internal error: {type(error).__name__}")
        finally:
            self._serving.pop(request.id, None)

    async def _refuse(self, request: Request, code: int, message: str, data: Obj | None = None) -> None:
        with contextlib.suppress(ConnectionError):
            await self._answer(request, {"error": jsonrpc.error_of(code, message, data)})

    async def _answer(self, request: Request, body: Obj) -> None:
        await self._send({"id": decode_json(request.raw_id)} | body)

    async def _send(self, message: Obj) -> None:
        self._write(message)
        await self._writer.drain()

    def _write(self, message: Obj) -> None:
        self._writer.write(frame({"jsonrpc": "2.0"} | message))
