"""A JSON-RPC connection to an agent: our requests and their answers, the agent's requests and ours to them.

One task reads at once, so that answers arrive even while nobody iterates `messages()`; above 8 MB of unread messages it
stops reading, and the agent waits. Every message is yielded once, in order, with its bytes: answers to our requests too,
also late ones, so that what a translator makes of them never depends on who waits. What a message of ours means comes
between them, where it was sent.
"""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from trunkline_agentkit import jsonrpc
from trunkline_agentkit.framing import Decoded, decode_line
from trunkline_agentkit.jsonrpc import Notification, Obj, Request, Response
from trunkline_agentkit.lines import LineTransport
from trunkline_agentkit.protocol import Native, Out
from trunkline_agentkit.unread import Unread
from trunkline_wire import TrunklineError, decode_json, encode

log = logging.getLogger(__name__)

DEADLINE: Final = 30.0
"""Seconds for an answer, where the caller names no other limit."""

SERVED_LIMIT: Final = 64
"""Requests of the agent that are served at a time; above it the agent is told to wait its turn."""

Understand = Callable[[Decoded], Native]
Serve = Callable[[Any], Awaitable[Any]]
"""Does what a request with these params asks; its result. A TrunklineError becomes the error that the agent gets."""


class RequestRefusedError(Exception):
    """Raised by a `Serve` to answer with this error of JSON-RPC."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class _Open(msgspec.Struct):
    """A request of the agent that has no answer yet; `task` serves it."""

    raw_id: bytes
    task: asyncio.Task[None] | None = None


class Peer:
    """Begins to read when it is made, so it needs a running loop.

    `understand` translates each line when it is read. `sent` hears each message of ours before it goes out, in their order, and
    says what follows from it.
    Of the agent's requests those in `served` are done here, each in a task; those in `asked` wait until `answer` or `refuse`
    is called; every other one is refused with -32601. `cancels` is the notification by which the agent takes a request back,
    and the parameter that holds the request's id. `versioned` puts `"jsonrpc": "2.0"` into what we send.
    """

    def __init__(
        self,
        transport: LineTransport,
        understand: Understand,
        *,
        sent: Callable[[Obj], Sequence[Out]] = lambda _: (),
        served: Mapping[str, Serve] | None = None,
        asked: Collection[str] = (),
        cancels: tuple[str, str] | None = None,
        versioned: bool = True,
        codes: Mapping[int, str] = jsonrpc.CODES,
    ) -> None:
        self._transport = transport
        self._understand = understand
        self._sent = sent
        self._served = served or {}
        self._asked = asked
        self._head: Obj = {"jsonrpc": "2.0"} if versioned else {}
        self._codes = codes
        self._numbers = itertools.count(1)
        self._cancels = cancels
        self._waiting: dict[bytes, tuple[str, asyncio.Future[Any]]] = {}
        self._open: dict[bytes, _Open] = {}
        """The agent's requests without an answer, by the key of their id."""
        self._unread = Unread()
        self._ended = False
        self._reading = asyncio.create_task(self._read(), name="messages of an agent")

    @property
    def ended(self) -> bool:
        """The agent's output has ended: nothing will be answered any more."""
        return self._ended

    @property
    def unread(self) -> int:
        """Bytes of messages that nobody has read yet."""
        return self._unread.size

    async def request(self, method: str, params: Any = None, *, deadline: float = DEADLINE) -> Any:
        """The agent's result. If it times out or the caller is cancelled, the agent may still do it.

        Raises TrunklineError `timeout`, `agent_failed`, or what the agent's error code means.
        """
        number = next(self._numbers)
        key = jsonrpc.id_key(number)
        if self._ended:
            raise _ended(method)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # Where writing fails nobody awaits it, and its error is no news.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting[key] = (method, answer)
        try:
            async with asyncio.timeout(deadline):
                await self._send(jsonrpc.request(number, method, params))
                return await answer
        except TimeoutError as error:
            raise TrunklineError(
                "timeout", f"the agent did not answer {method!r} within {deadline:g} s; it may still do it"
            ) from error
        finally:
            del self._waiting[key]

    async def post(self, method: str, params: Any = None) -> int:
        """Sends a request whose answer is only to come with `messages()`, whenever that is: a turn. Returns its id.

        Raises TrunklineError `agent_failed`.
        """
        number = next(self._numbers)
        await self._send(jsonrpc.request(number, method, params))
        return number

    async def notify(self, method: str, params: Any = None) -> None:
        """Raises TrunklineError `agent_failed`."""
        await self._send(jsonrpc.notification(method, params))

    def waits_for(self, id: bytes) -> bool:
        """Whether the agent waits for our answer to its request; `id` is the key of its id, here and below."""
        return id in self._open

    async def answer(self, id: bytes, result: Any) -> None:
        """Answers a request of the agent. Raises TrunklineError `unknown_ask` when it has its answer, `agent_failed`."""
        await self._reply(id, {"result": result})

    async def refuse(self, id: bytes, code: int, message: str, data: Any = None) -> None:
        """Answers with an error. Raises what `answer` raises."""
        await self._reply(id, {"error": jsonrpc.error_of(code, message, data)})

    def forget(self, id: bytes) -> None:
        """The agent wants no answer any more to its request."""
        self._open.pop(id, None)

    def messages(self) -> AsyncIterator[Native]:
        """All that the agent says, in order, once; ends when its output ends. For one reader."""
        return self._unread.messages()

    def release(self) -> None:
        """The agent is being ended: what it still says is kept for `messages()`, however slowly that is read."""
        self._unread.release()

    def tell(self, out: Sequence[Out], kind: str) -> None:
        """Puts what follows from a deed of ours between the agent's messages."""
        if out and not self._ended:
            self._unread.keep(Native(raw=b"", out=out, kind=kind, ours=True))

    async def wait(self) -> None:
        """Until the agent's output has ended and all is read from it. Call `release` and end the agent first."""
        await asyncio.wait({self._reading})

    async def _send(self, message: Obj) -> None:
        self._hear(self._head | message)
        await self._write(self._head | message)

    async def _reply(self, id: bytes, body: Obj) -> None:
        request = self._open.pop(id, None)
        if request is None or self._ended:
            raise TrunklineError("unknown_ask", "the agent does not wait for this answer any more")
        self._hear(self._head | {"id": decode_json(request.raw_id)} | body)
        await self._write(self._head | {"id": msgspec.Raw(request.raw_id)} | body)

    def _hear(self, message: Obj) -> None:
        self.tell(self._sent(message), str(message.get("method", "?")))

    async def _write(self, message: Obj) -> None:
        try:
            async with asyncio.timeout(DEADLINE):
                await self._transport.write_line(message)
        except TimeoutError as error:
            raise TrunklineError(
                "timeout", f"the agent has read nothing for {DEADLINE:g} s; it may still take the message"
            ) from error

    async def _read(self) -> None:
        try:
            async for line in self._transport.lines():
                await self._unread.room()
                decoded = decode_line(line)
                native = self._understand(decoded)
                message = jsonrpc.read(decoded)
                if isinstance(message, Request):
                    # Open before it is told: whoever hears of it may answer.
                    self._open.setdefault(message.id, _Open(message.raw_id))
                self._unread.keep(native)
                match message:
                    case Response():
                        self._settle(message)
                    case Request():
                        await self._begin(message)
                    case Notification():
                        await self._withdraw(message)
                    case None:
                        pass
        except Exception:
            log.exception("reading_failed")
        finally:
            await self._end()

    async def _end(self) -> None:
        self._ended = True
        for method, answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(_ended(method))
        serving = self._serving()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        self._open.clear()
        self._unread.end()

    def _settle(self, message: Response) -> None:
        method, answer = self._waiting.get(message.id, ("", None))
        if answer is None or answer.done():
            return
        if message.error is None:
            answer.set_result(message.result)
        else:
            answer.set_exception(jsonrpc.failure(method, message.error, self._codes))

    async def _begin(self, request: Request) -> None:
        known = self._open.get(request.id)
        if known is None or known.task is not None or request.method in self._asked:
            return
        if len(self._serving()) >= SERVED_LIMIT:
            said = f"more than {SERVED_LIMIT} requests at a time: wait for an answer first"
            with contextlib.suppress(TrunklineError):
                await self.refuse(request.id, jsonrpc.INTERNAL_ERROR, said)
            return
        work = self._serve(request, self._served.get(request.method))
        # In a task of its own, even to refuse: an agent that reads nothing must not keep us from reading.
        known.task = asyncio.create_task(work, name=f"serving {request.method}")
        # It has to have begun before it can be cancelled: only then does it answer.
        await asyncio.sleep(0)

    def _serving(self) -> list[asyncio.Task[None]]:
        return [request.task for request in self._open.values() if request.task is not None]

    async def _withdraw(self, notification: Notification) -> None:
        if self._cancels is None or notification.method != self._cancels[0]:
            return
        params = notification.params
        id = jsonrpc.id_key(params.get(self._cancels[1])) if isinstance(params, dict) else b""
        request = self._open.get(id)
        if request is None:
            return
        if request.task is not None:
            request.task.cancel()
        else:
            with contextlib.suppress(TrunklineError):
                await self.refuse(id, jsonrpc.CANCELLED, "cancelled")

    async def _serve(self, request: Request, serve: Serve | None) -> None:
        try:
            try:
                if serve is None:
                    raise RequestRefusedError(
                        jsonrpc.METHOD_NOT_FOUND, f"this client does not serve {request.method!r}"
                    )
                result = await serve(request.params)
                encode(result)
            except RequestRefusedError as error:
                await self.refuse(request.id, error.code, error.message, error.data)
            except TrunklineError as error:
                details = {"code": error.code, **error.details}
                await self.refuse(request.id, jsonrpc.INTERNAL_ERROR, error.message, details)
            except asyncio.CancelledError:
                if self._ended:
                    raise
                await self.refuse(request.id, jsonrpc.CANCELLED, "cancelled")
            except Exception as error:
                log.exception("serving_failed", extra={"method": request.method})
                await self.refuse(request.id, jsonrpc.INTERNAL_ERROR, f"internal error: {type(error).__name__}")
            else:
                await self.answer(request.id, result)
        except TrunklineError as error:
            log.info("answer_undelivered", extra={"code": error.code, "method": request.method})


def _ended(method: str) -> TrunklineError:
    return TrunklineError(
        "agent_failed", f"the agent has ended before it answered {method!r}: send a prompt to start it again"
    )
