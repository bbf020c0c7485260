"""Commands, answers, spawns, records of the audit and observations on their way into the log: repeated until they are acknowledged."""

from typing import Final

import msgspec
import nats.errors

from trunkline_bus import trace
from trunkline_bus.connection import Bus
from trunkline_bus.patience import patiently
from trunkline_wire import Answer, Command, Spawn, SystemRecord, TrunklineError, encode, subjects
from trunkline_wire.observed import Observation

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
    """All have an id of their own, so that a repetition, ours or the client's, has one effect.

    `user` is the last token of the subjects of commands and answers: NATS permissions let nobody else use a service's, so that
    `source` can be relied on.
    """

    def __init__(self, bus: Bus, user: str) -> None:
        self._bus = bus
        self.user = user

    async def command(self, command: Command) -> int:
        """Its sequence in COMMANDS. Raises TrunklineError `log_unavailable`, `log_full`, `too_large`."""
        return await self._store(subjects.command(command.session, self.user), command.id, encode(command))

    async def answer(self, answer: Answer) -> int:
        """Its sequence in COMMANDS. Raises like `command`."""
        return await self._store(subjects.answer(answer.session, self.user), answer.id, encode(answer))

    async def spawn(self, spawn: Spawn) -> int:
        """Its sequence in SPAWN. Raises like `command`."""
        return await self._store(subjects.spawn(spawn.host, spawn.adapter), spawn.id, encode(spawn))

    async def record(self, record: SystemRecord) -> int:
        """Its sequence in SYSTEM. Raises like `command`."""
        return await self._store(subjects.system(record.kind), record.id, encode(record))

    async def observe(self, seen: Observation) -> int:
        """Its sequence in OBSERVED. The same again within the stream's window is stored once. Raises like `command`."""
        return await self._store(subjects.observed(seen.host), seen.id, encode(seen), {"Nats-Msg-Id": seen.id})

    async def _store(self, subject: str, id: str, payload: bytes, more: dict[str, str] | None = None) -> int:
        headers = trace.inject({subjects.HEADER_ID: id, **(more or {})})

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
