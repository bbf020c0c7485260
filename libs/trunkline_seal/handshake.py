"""How a device and a host come to keys that nobody else has: see the README for what goes over the line and why."""

from typing import Final

from nacl import bindings
from nacl.bindings.crypto_secretstream import (
    crypto_secretstream_xchacha20poly1305_HEADERBYTES as HEADER_BYTES,
)
from nacl.exceptions import CryptoError

from trunkline_seal.channel import CONTROL, Channel, Receiver, Sender, bad_seal
from trunkline_seal.hashing import digest
from trunkline_seal.keys import KEY_BYTES, Identity

SID_BYTES: Final = 16
MAX_FIRST: Final = 8 * 1024
"""Bytes of a device's first message; what it wants is a line of JSON."""

Keys = tuple[bytes, bytes]
"""Of the two directions: device to host, host to device."""


class Opening:
    """The device's side. `first` is its first message; `answered` takes the host's."""

    def __init__(
        self, identity: Identity, host: bytes, sid: bytes, about: bytes, *, fresh: Identity | None = None
    ) -> None:
        """`host`: the host's public identity. `fresh` is for tests against known answers."""
        self._identity = identity
        self._host = host
        self._sid = sid
        self._fresh = fresh or Identity.new()
        self.first = self._fresh.public + bindings.crypto_box_seal(identity.public + about, host)

    def answered(self, second: bytes) -> tuple[Channel, bytes, bytes]:
        """The channel, what the host says of itself, and what the device has to send before its first frame.

        Raises TrunklineError `bad_seal` for a host that does not have the key it should have.
        """
        if len(second) < KEY_BYTES + HEADER_BYTES:
            raise bad_seal("the host's answer is too short")
        theirs, header, frame = _split(second, KEY_BYTES, HEADER_BYTES)
        try:
            pairs = [
                _client(self._identity, self._host),
                _client(self._fresh, theirs),
                _client(self._fresh, self._host),
                _client(self._identity, theirs),
            ]
        except CryptoError as error:
            raise bad_seal("the host's key is none") from error
        transcript = _transcript(self._sid, self._host, self._identity.public, self.first, theirs)
        up, down = _mixed(pairs, transcript)
        sender = Sender(up, self._sid)
        channel = Channel(sender, Receiver(down, header, self._sid))
        said = channel.open(frame)
        if said is None or said[0] != CONTROL:
            raise bad_seal("the host's answer has no first message")
        return channel, said[1], sender.header


class Accepting:
    """The host's side: reads a device's first message, then answers it for the identity that the device took the host to have."""

    def __init__(self, identities: list[Identity], sid: bytes, first: bytes) -> None:
        """`identities`: those of the host that a device may still know. Raises TrunklineError `bad_seal` where none opens it."""
        if not KEY_BYTES < len(first) <= MAX_FIRST:
            raise bad_seal("a first message of this size is none")
        self._sid = sid
        self._first = first
        self._theirs, box = _split(first, KEY_BYTES)
        for identity in identities:
            try:
                opened = bindings.crypto_box_seal_open(box, identity.public, identity.secret)
            except (CryptoError, ValueError, TypeError):
                continue
            self.device, self.about = _split(opened, KEY_BYTES)
            self.identity = identity
            break
        else:
            raise bad_seal("it is for a key that this host does not have, or no more")

    def answer(self, about: bytes, *, fresh: Identity | None = None) -> tuple[bytes, "Waiting"]:
        """The second message, and what waits for the device's proof. Raises TrunklineError `bad_seal` for keys that are none."""
        fresh = fresh or Identity.new()
        try:
            pairs = [
                _server(self.identity, self.device),
                _server(fresh, self._theirs),
                _server(self.identity, self._theirs),
                _server(fresh, self.device),
            ]
        except (CryptoError, ValueError, TypeError) as error:
            raise bad_seal("the device's key is none") from error
        transcript = _transcript(self._sid, self.identity.public, self.device, self._first, fresh.public)
        up, down = _mixed(pairs, transcript)
        sender = Sender(down, self._sid)
        second = fresh.public + sender.header + b"".join(sender.seal(CONTROL, about))
        return second, Waiting(sender, up, self._sid)


class Waiting:
    """A host that has answered, and acts on nothing until the device's first frame opens."""

    def __init__(self, sender: Sender, key: bytes, sid: bytes) -> None:
        self._sender = sender
        self._key = key
        self._sid = sid

    def proven(self, third: bytes) -> tuple[Channel, bytes]:
        """The channel, and the device's first message. Raises TrunklineError `bad_seal`."""
        if len(third) < HEADER_BYTES:
            raise bad_seal("the device's proof is too short")
        header, frame = _split(third, HEADER_BYTES)
        channel = Channel(self._sender, Receiver(self._key, header, self._sid))
        said = channel.open(frame)
        if said is None or said[0] != CONTROL:
            raise bad_seal("the device's proof has no first message")
        return channel, said[1]


def _client(mine: Identity, theirs: bytes) -> Keys:
    received, sent = bindings.crypto_kx_client_session_keys(mine.public, mine.secret, theirs)
    return sent, received


def _server(mine: Identity, theirs: bytes) -> Keys:
    received, sent = bindings.crypto_kx_server_session_keys(mine.public, mine.secret, theirs)
    return received, sent


def _transcript(sid: bytes, host: bytes, device: bytes, first: bytes, fresh: bytes) -> bytes:
    return digest("trunkline-seal-1", sid, host, device, fresh, first)


def _mixed(pairs: list[Keys], transcript: bytes) -> Keys:
    up, down = (
        digest(way, *keys, key=transcript) for way, keys in zip(("up", "down"), zip(*pairs, strict=True), strict=True)
    )
    return up, down


def _split(whole: bytes, *sizes: int) -> list[bytes]:
    parts: list[bytes] = []
    for size in sizes:
        parts.append(whole[:size])
        whole = whole[size:]
    return [*parts, whole]
