"""A fake push service on loopback, and the browser behind it, which opens what comes as RFC 8291 says, by its own steps."""

import hashlib
import hmac
import os
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.integration.gateway.receiver import Receiver

from trunkline_extensions.push.message import packed, unpacked

HEAD = 16 + 4 + 1 + 65


class Browser:
    """A push subscription at `receiver`, under a path of its own."""

    def __init__(self, receiver: Receiver, path: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._auth = os.urandom(16)
        self._public = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.endpoint = f"{receiver.url}/{path}"

    @property
    def subscription(self) -> dict[str, Any]:
        return {
            "endpoint": self.endpoint,
            "keys": {"p256dh": packed(self._public), "auth": packed(self._auth)},
        }

    def opened(self, body: bytes) -> Any:
        """The content of a message. Raises for one that is not for this browser."""
        salt, sender, record = body[:16], body[21:HEAD], body[HEAD:]
        assert int.from_bytes(body[16:20]) >= len(record)
        assert body[20] == len(sender)
        shared = self._key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        ikm = _hkdf(self._auth, shared, b"WebPush: info\0" + self._public + sender, 32)
        key = _hkdf(salt, ikm, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _hkdf(salt, ikm, b"Content-Encoding: nonce\0", 12)
        plain = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert plain.endswith(b"\x02")
        return msgspec.json.decode(plain[:-1])


def _hkdf(salt: bytes, key: bytes, info: bytes, length: int) -> bytes:
    extracted = hmac.digest(salt, key, hashlib.sha256)
    return hmac.digest(extracted, info + b"\x01", hashlib.sha256)[:length]


def claims(receiver: Receiver, authorization: str, key: str) -> dict[str, Any]:
    """What a VAPID header says, if it is signed with `key` (base64url) for this service."""
    token, _, public = authorization.removeprefix("vapid t=").partition(", k=")
    assert public == key
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), unpacked(key))
    return jwt.decode(token, point, ["ES256"], audience=receiver.url)
