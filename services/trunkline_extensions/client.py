"""What an extension asks of the gateway, over NATS."""

import asyncio
import logging
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import nats
import nats.errors
from nats.aio.client import Client as Nats
from nats.micro.service import Service

from trunkline_extensions.place import Place
from trunkline_wire import ERRORS, TrunklineError, encode

log = logging.getLogger(__name__)

ANSWER_S: Final = 35.0
PAUSE_S: Final = 1.0


class _Error(msgspec.Struct, frozen=True):
    code: str
    message: str
    details: dict[str, Any] = {}


class _Answer(msgspec.Struct, frozen=True):
    ok: bool
    payload: Any = None
    error: _Error | None = None


class Client:
    """The connection of the extension `name`. Use it as an async context manager."""

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        self._place = place
        self.nats: Nats
        self.service: Service
        """What it is found as; its endpoints are added to it."""
        self.home: Final = place.home
        self.files: Final = place.home / "extensions"
        """Where an extension keeps what has to outlive it."""

    async def __aenter__(self) -> Self:
        self.nats = await nats.connect(
            self._place.nats_url,
            name=f"ext-{self.name}",
            nkeys_seed=str(self._place.nats_seed) if self._place.nats_seed else None,
            inbox_prefix=f"_INBOX_ext-{self.name}",
            max_reconnect_attempts=-1,
            error_cb=_on_error,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.nats.close()

    async def ask(self, right: str, method: str, **params: Any) -> Any:
        """A method's payload. Raises the gateway's TrunklineError; `log_unavailable` where no gateway answers."""
        subject = f"trunk.api.{self.name}.{right}.{method}"
        try:
            reply = await self.nats.request(subject, encode(params), timeout=ANSWER_S)
            answer = msgspec.json.decode(reply.data, type=_Answer)
        except (TimeoutError, nats.errors.Error, msgspec.MsgspecError) as error:
            raise TrunklineError("log_unavailable", f"no gateway answers {method!r}: {error}") from error
        if answer.error is not None:
            code = answer.error.code if answer.error.code in ERRORS else "internal"
            raise TrunklineError(code, answer.error.message, **answer.error.details)
        return answer.payload

    async def insist(self, right: str, method: str, **params: Any) -> Any:
        """Like `ask`, repeated for as long as no gateway can answer."""
        while True:
            try:
                return await self.ask(right, method, **params)
            except TrunklineError as error:
                if error.status < 500:
                    raise
                log.info("gateway_not_there", extra={"method": method, "code": error.code})
            await asyncio.sleep(PAUSE_S)


async def _on_error(error: Exception) -> None:
    log.warning("nats_error", extra={"error": f"{type(error).__name__}: {error}"})
