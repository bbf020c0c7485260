"""A push message as RFC 8291 has it: one record of `aes128gcm` (RFC 8188) that only the browser opens. Pure but for its randomness."""

import base64
import os
import struct
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CURVE: Final = ec.SECP256R1()
RECORD: Final = 4096
"""The size of a record, which is above that of any message here: the first record is the last."""
LAST: Final = b"\x02"
"""Ends the content of the last record; padding follows."""
PADDED: Final = 2048
"""Bytes that every message has before it is encrypted, so that its length says nothing."""


def sealed(
    content: bytes,
    p256dh: str,
    auth: str,
    *,
    padded: int = PADDED,
    salt: bytes | None = None,
    sender: ec.EllipticCurvePrivateKey | None = None,
) -> bytes:
    """The body of a push message for the subscription with these keys (base64url). Raises ValueError for keys that are none.

    `salt` and `sender` are fresh for every message; the specification's example has them given.
    """
    if len(content) >= padded:
        raise ValueError(f"a push message has less than {padded} bytes")
    receiver, secret = unpacked(p256dh), unpacked(auth)
    salt = salt or os.urandom(16)
    sender = sender or ec.generate_private_key(CURVE)
    public = point(sender.public_key())
    shared = sender.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, receiver))
    input_key = _derived(shared, secret, b"WebPush: info\0" + receiver + public, 32)
    key = _derived(input_key, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(input_key, salt, b"Content-Encoding: nonce\0", 12)
    record = AESGCM(key).encrypt(nonce, (content + LAST).ljust(padded, b"\0"), None)
    return salt + struct.pack("!IB", RECORD, len(public)) + public + record


def point(key: ec.EllipticCurvePublicKey) -> bytes:
    """A public key as 65 bytes."""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def packed(raw: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def unpacked(text: str) -> bytes:
    """The opposite of `packed`. Raises ValueError."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _derived(key: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(key)
