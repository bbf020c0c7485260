"""Connections to NATS: three a process, so that a slow reader never delays an acknowledgement."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Generator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal

import msgspec
import nats.errors
from nats.js import JetStreamContext

from trunkline_bus import metrics, topology
from trunkline_bus.capacity import Capacity
from trunkline_bus.client import Client
from trunkline_bus.layout import Layout
from trunkline_bus.mux import Mux
from trunkline_bus.patience import patiently
from trunkline_wire import TrunklineError
from trunkline_wire.ids import check_token

log = logging.getLogger(__name__)

Role = Literal["writing", "reading", "commands"]
_ROLES: Final[tuple[Role, ...]] = ("writing", "reading", "commands")
_UNAUTHORIZED: Final = "authorization violation"


class BusSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`url` may name several servers, comma separated. `seed_file` holds the nkey seed of the NATS user.

    `user` is the name in the private inbox prefix `_INBOX_<user>`, by default the stem of the seed file's name;
    without either the inbox is the public `_INBOX`. `connect_within` is in seconds, None waits for ever.
    """

    url: str = "nats://127.0.0.1:4222"
    seed_file: Path | None = None
    name: str = "trunkline"
    user: str | None = None
    connect_within: float | None = 30.0

    @property
    def inbox_prefix(self) -> str:
        user = self.user or (self.seed_file.stem if self.seed_file else None)
        return f"_INBOX_{check_token(user)}" if user else "_INBOX"


class Bus:
    """The open connections: `writing` (appends; a publish while it is down fails at once), `reading`, `commands`.

    Make it with `async with Bus.open(settings) as bus` or `bus = await Bus.open(settings)` and `await bus.close()`.
    """

    def __init__(self, settings: BusSettings) -> None:
        self.settings = settings
        self._connections = {role: Client() for role in _ROLES}
        self._log_id: str | None = None
        self.layout = Layout()
        """The streams of events, as last read with the log's id."""
        self._closing = False
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.mux = Mux(self.writing)
        """Requests on `writing`."""
        self.capacity = Capacity()
        """How full the log is, watched once there is a writer."""

    @classmethod
    def open(cls, settings: BusSettings) -> "_Opening":
        """Connect. Raises TrunklineError `unauthorized` or, after `connect_within`, `log_unavailable`."""
        return _Opening(settings)

    @property
    def writing(self) -> Client:
        return self._connections["writing"]

    @property
    def reading(self) -> Client:
        return self._connections["reading"]

    @property
    def commands(self) -> Client:
        return self._connections["commands"]

    @property
    def js(self) -> JetStreamContext:
        return self._contexts["writing"]

    @property
    def js_read(self) -> JetStreamContext:
        return self._contexts["reading"]

    @property
    def js_cmd(self) -> JetStreamContext:
        return self._contexts["commands"]

    @property
    def log_id(self) -> str:
        """The log's id as last read. Raises TrunklineError `log_unavailable` before the topology was applied."""
        if self._log_id is None:
            raise TrunklineError("log_unavailable", "the server has no log yet: run `trunkline topology apply`")
        return self._log_id

    async def read_log_id(self) -> str:
        """The log's id from the leader: a restored log has a new one. Raises TrunklineError `log_unavailable`, after
        15 s where nobody answers.
        """
        self._log_id, self.layout = await patiently(self.commands, lambda: topology.read_log(self.js_cmd))
        return self._log_id

    async def wait_ended(self) -> None:
        """Return when a connection has ended for good, or is of no use; a process without its connection has to end too.

        Raises TrunklineError `log_unavailable` or `unauthorized` with the reason unless `close` was called.
        """
        await asyncio.shield(self._ended)

    @property
    def ended(self) -> bool:
        """Whether `wait_ended` returns at once."""
        return self._ended.done()

    async def close(self) -> None:
        """Close all connections; what was published before is sent. A caller that is cancelled is so afterwards."""
        ending = asyncio.ensure_future(self._end())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            # Half-closed clients would reconnect for ever; to close them takes milliseconds.
            await asyncio.wait((ending,))
            raise

    async def _open(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for role in _ROLES:
                    tasks.create_task(self._connect(role))
            await self.mux.open()
            self._contexts = {role: client.jetstream(timeout=5.0) for role, client in self._connections.items()}
            try:
                self._log_id, self.layout = await topology.read_log(self.js_cmd)
            except (TrunklineError, nats.errors.Error):
                log.info("bus.no_log_yet")
        except BaseExceptionGroup as group:
            await self.close()
            raise group.exceptions[0] from group
        except BaseException:
            await self.close()
            raise

    async def _end(self) -> None:
        self._closing = True
        await self.capacity.close()
        for connection in self._connections.values():
            await connection.close()
            # nats-py takes a client that was interrupted while it connected for closed, and keeps its socket.
            transport = connection._transport  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            if transport is not None:
                transport.close()
                with contextlib.suppress(OSError):
                    await transport.wait_closed()
        if not self._ended.done():
            self._ended.set_result(None)

    def _fail(self, error: TrunklineError) -> None:
        if not self._closing and not self._ended.done():
            self._ended.set_exception(error)
            self._ended.exception()  # nobody need be waiting

    async def _connect(self, role: Role) -> None:
        connection, settings = self._connections[role], self.settings
        refused: list[str] = []
        scope = asyncio.timeout(settings.connect_within)
        opening = True

        async def on_error(error: Exception) -> None:
            kind = _kind(error)
            metrics.BUS_ERRORS.labels(role, kind).inc()
            if opening and _UNAUTHORIZED in str(error).lower():
                refused.append(str(error))
                scope.reschedule(asyncio.get_running_loop().time())
            if kind == "permission" and f'"{settings.inbox_prefix}.'.lower() in str(error).lower():
                self._fail(
                    TrunklineError(
                        "unauthorized",
                        f"the NATS user of {str(settings.seed_file)!r} may not hear {settings.inbox_prefix}.>: "
                        "a key's file is named after its user, as `trunkline auth init` names it",
                    )
                )
            log.warning(
                "bus.error", extra={"connection": role, "kind": kind, "error": f"{type(error).__name__}: {error}"}
            )

        async def on_disconnect() -> None:
            metrics.BUS_CONNECTED.labels(role).set(0)
            if not self._closing:
                metrics.BUS_DISCONNECTS.labels(role).inc()
                log.warning("bus.disconnected", extra={"connection": role})
            if role == "writing":
                self.mux.lost()

        async def on_reconnect() -> None:
            metrics.BUS_CONNECTED.labels(role).set(1)
            log.info("bus.reconnected", extra={"connection": role})
            if role == "writing":
                self.mux.back()

        async def on_closed() -> None:
            if role == "writing":
                self.mux.back()
            self._fail(
                TrunklineError(
                    "log_unavailable", f"the connection to NATS ({role}) was closed: {connection.last_error}"
                )
            )

        options: dict[str, Any] = {"reconnect_time_wait": 0.25}  # a float, whatever its annotation says
        if role != "reading":
            options["pending_size"] = -1
        try:
            async with scope:
                await connection.connect(
                    servers=[url.strip() for url in settings.url.split(",")],
                    name=f"{settings.name}:{role}",
                    nkeys_seed=str(settings.seed_file) if settings.seed_file else None,
                    inbox_prefix=settings.inbox_prefix,
                    max_reconnect_attempts=-1,
                    connect_timeout=5,
                    ping_interval=15,
                    max_outstanding_pings=2,
                    error_cb=on_error,
                    disconnected_cb=on_disconnect,
                    reconnected_cb=on_reconnect,
                    closed_cb=on_closed,
                    **options,
                )
        except TimeoutError as error:
            if refused:
                raise TrunklineError("unauthorized", f"NATS at {settings.url} refuses these credentials") from error
            raise TrunklineError(
                "log_unavailable", f"no NATS server answers at {settings.url}: is `trunkline up` running?"
            ) from error
        opening = False
        metrics.BUS_CONNECTED.labels(role).set(1)


class _Opening(Awaitable[Bus]):
    """What `Bus.open` gives: awaitable, and an async context manager that closes."""

    def __init__(self, settings: BusSettings) -> None:
        self._settings = settings
        self._bus: Bus | None = None

    def __await__(self) -> Generator[Any, None, Bus]:
        return self._connect().__await__()

    async def _connect(self) -> Bus:
        bus = Bus(self._settings)
        await bus._open()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return bus

    async def __aenter__(self) -> Bus:
        self._bus = await self._connect()
        return self._bus

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._bus is not None
        await self._bus.close()


def _kind(error: Exception) -> str:
    if isinstance(error, nats.errors.SlowConsumerError):
        return "slow_consumer"
    if "permissions violation" in str(error).lower():
        return "permission"
    if isinstance(error, OSError | nats.errors.UnexpectedEOF | nats.errors.StaleConnectionError | TimeoutError):
        return "connection"
    return "other"
