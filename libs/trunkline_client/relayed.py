"""A device's way through a relay up to its host's answer: the challenge, the handshake, and frames in envelopes."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

import aiohttp
import msgspec
from yarl import URL

from trunkline_client.lost import ConnectionLostError
from trunkline_seal import Envelope, Identity, Opening, control, host_name, pack, unpack
from trunkline_seal.channel import CONTROL, MAX_PAD, Channel, bad_seal
from trunkline_seal.keys import KEY_BYTES
from trunkline_wire import ERRORS, TrunklineError, encode

MAX_ENVELOPE: Final = 256 * 1024
PASSING: Final = frozenset({"host_away", "rate_limited", "timeout", "not_running", "log_unavailable", "bad_seal"})
"""Codes after which the next try may do better."""

Proof = Callable[[str, bytes], control.FromDevice]
Number = Annotated[int, msgspec.Meta(ge=0)]
"""Of a host's identity."""
T = TypeVar("T")


class AboutHost(msgspec.Struct, frozen=True):
    """What a host says of itself in its handshake message."""

    host: str
    identity: str
    number: Number = 0
    version: str = ""
    nonce: str = ""
    app: str = ""
    """Base64 of the digest of the app that it vouches for."""
    pad: Annotated[int, msgspec.Meta(ge=0, le=MAX_PAD)] = 0
    """Messages are to be padded to a multiple of at least so many bytes."""

    @property
    def newest(self) -> bytes:
        """Its newest identity. Raises TrunklineError `bad_frame`."""
        return public_identity(self.identity)


class Refusal(msgspec.Struct, frozen=True):
    """Why a host or a relay says no."""

    code: str
    message: str

    def error(self) -> TrunklineError:
        if self.code in ERRORS:
            return TrunklineError(self.code, self.message)
        return TrunklineError("internal", f"{self.code}: {self.message}", server_code=self.code)


class Wire:
    """Frames of one device's connection to its host, in order."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse, sid: bytes, channel: Channel, header: bytes) -> None:
        self._ws = ws
        self._sid = sid
        self._channel = channel
        self._header = header
        self._sending = asyncio.Lock()
        self._over = False

    @property
    def ended(self) -> bool:
        """Whether the host has said that nothing follows."""
        return self._channel.ended

    def pad(self, block: int) -> None:
        self._channel.pad(block)

    def cost(self, message: bytes) -> int:
        """What a message of either direction counts for."""
        return self._channel.cost(message)

    async def send(self, kind: int, message: bytes, *, last: bool = False) -> None:
        """Raises ConnectionLostError. A message that does not go out as a whole is the connection's last."""
        async with self._sending:
            if self._over:
                raise ConnectionLostError("the connection to the host is over")
            self._over = True
            try:
                for frame in self._channel.seal(kind, message, last=last):
                    await self._ws.send_bytes(pack(self._sid, self._header + frame))
                    self._header = b""
            except (aiohttp.ClientError, OSError) as error:
                raise ConnectionLostError(f"the connection broke: {error}") from error
            self._over = last

    async def say(self, value: Any, *, last: bool = False) -> None:
        """A control message."""
        await self.send(CONTROL, encode(value), last=last)

    async def receive(self) -> tuple[int, bytes]:
        """The next message and its kind. Raises TrunklineError `bad_seal`, and what the relay ends with; ConnectionLostError."""
        while True:
            message = self._channel.open((await _envelope(self._ws, self._sid)).ct)
            if message is not None:
                return message

    async def hear(self, type: type[T]) -> T:
        """The next message, which is a control message of this type. Raises like `receive`, and `bad_frame`."""
        kind, message = await self.receive()
        if kind != CONTROL:
            raise TrunklineError("bad_frame", "the host's next word would be a control message")
        return read_control(message, type)

    async def close(self) -> None:
        await self._ws.close()


async def reach(
    http: aiohttp.ClientSession, relay: str, route: bytes, identity: Identity, host: bytes, about: Any, proof: Proof
) -> tuple[Wire, AboutHost]:
    """Through the relay to the host of this route key and identity, by what `proof` answers the relay's challenge with.

    Raises TrunklineError as the relay refuses, `bad_seal` for another host; ConnectionLostError if nobody listens.
    """
    name, url = host_name(route), URL(relay)
    ws = await http.ws_connect(f"{relay}{control.DEVICE_PATH}{name}", max_msg_size=MAX_ENVELOPE)
    try:
        challenge = await _heard(ws, control.Challenge)
        await ws.send_str(control.encode(proof(url.host_port_subcomponent or "", control.plain(challenge.challenge))))
        sid = control.sid_of((await _heard(ws, control.Opened)).sid)
        opening = Opening(identity, host, sid, encode(about))
        await ws.send_bytes(pack(sid, opening.first))
        channel, said, header = opening.answered((await _envelope(ws, sid)).ct)
        return Wire(ws, sid, channel, header), read_control(said, AboutHost)
    except BaseException:
        await ws.close()
        raise


def public_identity(text: str) -> bytes:
    """Raises TrunklineError `bad_frame` for what can be no identity."""
    found = control.plain(text)
    if len(found) != KEY_BYTES:
        raise TrunklineError("bad_frame", "the host's identity is no key")
    return found


def read_control(message: bytes, type: type[T]) -> T:
    """Raises TrunklineError `bad_frame`."""
    try:
        return msgspec.json.decode(message, type=type)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TrunklineError("bad_frame", "the host says what this version does not understand") from error


async def _heard(ws: aiohttp.ClientWebSocketResponse, type: type[T]) -> T:
    message = await ws.receive()
    if message.type is not aiohttp.WSMsgType.TEXT:
        raise ConnectionLostError("the relay closed the connection")
    said = control.to_device(message.data)
    if isinstance(said, control.Failed):
        raise Refusal(said.code, said.message).error()
    if not isinstance(said, type):
        raise TrunklineError("bad_frame", "the relay says something else than was its turn to say")
    return said


async def _envelope(ws: aiohttp.ClientWebSocketResponse, sid: bytes) -> Envelope:
    message = await ws.receive()
    if message.type is aiohttp.WSMsgType.TEXT:
        said = control.to_device(message.data)
        if isinstance(said, control.Failed):
            raise Refusal(said.code, said.message).error()
    if message.type is not aiohttp.WSMsgType.BINARY:
        raise ConnectionLostError("the connection was cut: the relay or the host is gone")
    envelope = unpack(message.data)
    if envelope.sid != sid:
        raise bad_seal("an envelope is another connection's")
    return envelope
