"""The key by which push services know who sends (VAPID, RFC 8292), in `<home>/keys/push.pem`."""

import os
import time
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from trunkline_extensions.push.message import CURVE, packed, point
from trunkline_extensions.sender import write_private
from trunkline_wire import TrunklineError

LASTS_S: Final = 12 * 3600
"""How long a token is good for; push services take at most a day."""
PRIVATE: Final = 0o077
"""What others must not have of a file with keys."""


class SenderKey:
    """`contact` is where the maker of a push service reaches who sends: `mailto:` or `https:`."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, contact: str) -> None:
        self._key = key
        self._contact = contact
        self.public: Final = packed(point(key.public_key()))
        """What a browser subscribes with."""

    @classmethod
    def kept(cls, home: Path, contact: str) -> Self:
        """The key of this host, made at the first start. Raises TrunklineError `bad_settings` for what others can read, or no key."""
        path = home / "keys" / "push.pem"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            made = ec.generate_private_key(CURVE)
            write_private(path, made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
            return cls(made, contact)
        except OSError as error:
            raise TrunklineError("bad_settings", f"{str(path)!r} can't be read: {error.strerror}") from error
        with os.fdopen(descriptor, "rb") as file:
            status, raw = os.fstat(descriptor), file.read()
        if status.st_mode & PRIVATE or status.st_uid != os.geteuid():
            raise TrunklineError(
                "bad_settings", f"others can get at {str(path)!r}: `chmod 600` it, or delete it for a new key"
            )
        try:
            key = load_pem_private_key(raw, None)
        except (ValueError, TypeError):
            key = None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise TrunklineError("bad_settings", f"{str(path)!r} holds no key: delete it for a new one")
        return cls(key, contact)

    def authorization(self, endpoint: str, now: float | None = None) -> str:
        """The header by which the push service of `endpoint`, and no other, knows the sender."""
        to = urlsplit(endpoint)
        expires = int((time.time() if now is None else now) + LASTS_S)
        claims = {"aud": f"{to.scheme}://{to.netloc}", "exp": expires, "sub": self._contact}
        return f"vapid t={jwt.encode(claims, self._key, algorithm='ES256')}, k={self.public}"
