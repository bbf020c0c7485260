"""A connection that outlives its gateway: calls are repeated and subscriptions resumed by cursor after a break."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Literal, Self

import msgspec

from trunkline_client.address import Address
from trunkline_client.api import Api
from trunkline_client.connection import Connection, Frame
from trunkline_client.lost import ConnectionLostError
from trunkline_wire import Event, TrunklineError, decode_event, encode

FIRST_DELAY = 0.1
LONGEST_DELAY = 2.0
PASSING: Final = frozenset({"log_unavailable", "timeout", "rate_limited"})
"""Codes of a gateway that is there again and can't read the log yet, or that saw this client come too often."""

Start = Literal["start", "now", "snapshot"]


class Snapshot(msgspec.Struct, frozen=True):
    """The session as of the cursor: `state`, `asks`, and `blocks` that are still being written."""

    payload: Frame


class Opened(msgspec.Struct, frozen=True):
    """The subscription stands: whatever is caused from now on will be seen."""


class Received(msgspec.Struct, frozen=True):
    """An event; `cursor` stands behind it."""

    event: Frame
    cursor: str | None

    def decoded(self) -> Event:
        """Raises TrunklineError `bad_event` for one that a later version of the schema has made: its `event` is readable."""
        return decode_event(encode(self.event))


class Gap(msgspec.Struct, frozen=True):
    """Events are missing, for a reason that the log names; what follows is complete again."""

    payload: Frame


class Broken(msgspec.Struct, frozen=True):
    """The connection broke and is being mended. `mended` is set on the notice that it is whole again."""

    mended: bool = False


Notice = Opened | Snapshot | Received | Gap | Broken


class Link(Api):
    """Use as an async context manager. `where` is the gateway, or says where it is, again before each attempt to connect.

    `link.session.prompt(session=…, text=…)` and so on: each method of the gateway is one of the link's. `patience` seconds without
    a connection end in `not_running`; the first connect has only `first_patience`. `name` is what the gateway knows this program by.
    """

    def __init__(
        self,
        where: Address | Callable[[], Address],
        *,
        name: str = "python",
        patience: float = 120.0,
        first_patience: float = 5.0,
    ) -> None:
        super().__init__(self.call)
        self._find = where if callable(where) else lambda: where
        self._name = name
        self._patience = patience
        self._first_patience = first_patience
        self._client: Connection | None = None
        self._connecting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._client = await self._connect(self._first_patience)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def call(self, method: str, *, within: float = 60.0, **params: Any) -> Any:
        """A method's payload. After a broken connection it is asked again, so ids must be minted by the caller; a gateway that
        is asked too often is given the time it wants.

        Raises the gateway's TrunklineError; `not_running` when no gateway comes back.
        """
        while True:
            client = await self._connected()
            try:
                return await client.call(method, within=within, **params)
            except ConnectionLostError:
                await self._forget(client)
            except TrunklineError as error:
                if error.code != "rate_limited" or "retry_after" not in error.details:
                    raise
                await asyncio.sleep(error.details["retry_after"])

    async def server(self) -> Frame:
        """What the gateway said in `hello`: its version and host, and who this client is to it."""
        return (await self._connected()).server

    async def address(self) -> Address:
        """Where the gateway was found that this link is connected to."""
        return (await self._connected()).address

    async def watch(
        self,
        *,
        session: str | None = None,
        start: Start = "snapshot",
        cursor: str | None = None,
        patterns: list[str] | None = None,
        deltas: bool = True,
    ) -> AsyncIterator[Notice]:
        """Everything behind `cursor` (or from `start`), in order and without end; breaks show as `Broken` notices.

        One watch at a time. Raises the gateway's TrunklineError for a subscription it refuses; after a break only once the
        patience is over, where the gateway is there again and can't read the log yet.
        """
        loop = asyncio.get_running_loop()
        broken, patient_until = False, 0.0
        while True:
            client = await self._connected()
            try:
                where: Frame = {"cursor": cursor} if cursor is not None else {"from": start}
                opened: Frame = await client.call(
                    "subscribe", session=session, patterns=patterns, deltas=deltas, **where
                )
                if broken:
                    yield Broken(mended=True)
                    broken = False
                cursor = opened.get("cursor") or cursor
                yield Opened()
                if opened.get("gap") is not None:
                    yield Gap(opened["gap"])
                if opened.get("snapshot") is not None:
                    yield Snapshot(opened["snapshot"])
                # The gap of the answer comes as a frame, too.
                told = opened.get("gap") is not None
                async for frame in client.events():
                    cursor = frame.get("cursor") or cursor
                    if frame.get("type") == "heartbeat":
                        continue
                    if frame.get("event") == "gap" and told:
                        told = False
                    elif frame.get("event") == "gap":
                        payload: Frame = frame.get("payload") or {}
                        yield Gap(payload)
                        if payload.get("snapshot") is not None:
                            yield Snapshot(payload["snapshot"])
                    else:
                        yield Received(frame["payload"], frame.get("cursor"))
            except ConnectionLostError:
                await self._forget(client)
                if not broken:
                    yield Broken()
                    broken, patient_until = True, loop.time() + self._patience
            except TrunklineError as error:
                if not broken or error.code not in PASSING or loop.time() > patient_until:
                    raise
                await asyncio.sleep(FIRST_DELAY)

    async def _connected(self) -> Connection:
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect(self._patience)
            return self._client

    async def _forget(self, client: Connection) -> None:
        async with self._connecting:
            if self._client is client:
                self._client = None
                await client.close()

    async def _connect(self, patience: float) -> Connection:
        delay = FIRST_DELAY
        reason: Exception = TimeoutError()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while True:
                    try:
                        return await Connection.connect(self._find(), name=self._name)
                    except ConnectionLostError as error:
                        reason = error
                    except TrunklineError as error:
                        # Between two lives of `trunkline up` there is no state file for a moment.
                        waits = error.code == "not_running" and patience > self._first_patience
                        if not waits and error.code != "rate_limited":
                            raise
                        reason = error
                    await asyncio.sleep(delay)
                    delay = min(LONGEST_DELAY, delay * 2)
        if isinstance(reason, TrunklineError):
            raise reason
        raise TrunklineError("not_running", f"{reason}; see `trunkline doctor`")
