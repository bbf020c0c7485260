"""Commands, answers and spawns on their way into the log: acknowledged there before the client hears of it."""

from typing import Final

import msgspec
import nats.errors

from trunkline_bus import trace
from trunkline_bus.connection import Bus
from trunkline_bus.patience import patiently
from trunkline_wire import Answer, Command, Spawn, TrunklineError, encode, subjects

USER: Final = "gateway"
"""The last token of our subjects: NATS permissions let nobody else use it, so `source` can be relied on."""

_ACK_S: Final = 5.0
_FULL: Final = frozenset({10077, 10047, 10023, 10122})


class _Error(msgspec.Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _Ack(msgspec.Struct):
    seq: int = 0
    error: _Error | None = None


class Requests:
    """All three have an id of their own, so that a repetition, ours or the client's, has one effect."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def command(self, command: Command) -> int:
        """Its sequence in COMMANDS. Raises TrunklineError `log_unavailable`, `log_full`, `too_large`."""
        return await self._store(subjects.command(command.session, USER), command.id, encode(command))

    async def answer(self, answer: Answer) -> int:
        """Its sequence in COMMANDS. Raises like `command`."""
        return await self._store(subjects.answer(answer.session, USER), answer.id, encode(answer))

    async def spawn(self, spawn: Spawn) -> int:
        """Its sequence in SPAWN. Raises like `command`."""
        return await self._store(subjects.spawn(spawn.host, spawn.adapter), spawn.id, encode(spawn))

    async def _store(self, subject: str, id: str, payload: bytes) -> int:
        headers = trace.inject({subjects.HEADER_ID: id})

        async def attempt() -> _Ack:
            reply = await self._bus.commands.request(subject, payload, timeout=_ACK_S, headers=headers)
            ack = msgspec.json.decode(reply.data, type=_Ack)
            if ack.error is not None and ack.error.code == 503:
                raise nats.errors.NoRespondersError
            return ack

        try:
            ack = await patiently(self._bus.commands, attempt)
        except nats.errors.MaxPayloadError as error:
            raise TrunklineError("too_large", f"{len(payload)} bytes are over the server's limit") from error
        if ack.error is None:
            return ack.seq
        code = "log_full" if ack.error.err_code in _FULL else "log_unwritable"
        raise TrunklineError(code, f"the log refuses it: {ack.error.description}")
