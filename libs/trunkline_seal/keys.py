"""The long-lived keys of a host or a device. What holds one says nothing of it: its repr has only the public half."""

import base64
from dataclasses import dataclass, field
from typing import Final, Self

from nacl import bindings
from nacl.exceptions import CryptoError

from trunkline_seal.hashing import digest

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
_HOST_BYTES: Final = 16
_FINGERPRINT_BYTES: Final = 15


@dataclass(frozen=True, slots=True)
class Identity:
    """An X25519 key pair: who somebody is to the other end."""

    public: bytes
    secret: bytes = field(repr=False)

    @classmethod
    def new(cls) -> Self:
        public, secret = bindings.crypto_kx_keypair()
        return cls(public, secret)

    @classmethod
    def of(cls, secret: bytes) -> Self:
        """Raises ValueError for what is no key."""
        if len(secret) != KEY_BYTES:
            raise ValueError(f"a secret key has {KEY_BYTES} bytes, not {len(secret)}")
        return cls(bindings.crypto_scalarmult_base(secret), secret)


@dataclass(frozen=True, slots=True)
class Route:
    """An Ed25519 key pair: who somebody is to a relay."""

    public: bytes
    seed: bytes = field(repr=False)

    @classmethod
    def new(cls) -> Self:
        return cls.of(bindings.randombytes(KEY_BYTES))

    @classmethod
    def of(cls, seed: bytes) -> Self:
        """Raises ValueError for what is no key."""
        if len(seed) != KEY_BYTES:
            raise ValueError(f"a seed has {KEY_BYTES} bytes, not {len(seed)}")
        public, _ = bindings.crypto_sign_seed_keypair(seed)
        return cls(public, seed)

    def sign(self, message: bytes) -> bytes:
        """The signature alone, of SIGNATURE_BYTES."""
        _, secret = bindings.crypto_sign_seed_keypair(self.seed)
        return bindings.crypto_sign(message, secret)[:SIGNATURE_BYTES]


def signed_by(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` is that of the route key `public` for `message`."""
    if len(public) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    try:
        bindings.crypto_sign_open(signature + message, public)
    except CryptoError:
        return False
    return True


def host_name(route: bytes) -> str:
    """What a relay calls the host of this route key: `hst_` and 26 signs of base32."""
    return "hst_" + base64.b32encode(digest("trunkline-host", route, size=_HOST_BYTES)).decode().rstrip("=").lower()


def fingerprint(identity: bytes) -> str:
    """An identity's public key for people to compare: six groups of four signs of base32."""
    signs = base64.b32encode(digest("trunkline-fingerprint", identity, size=_FINGERPRINT_BYTES)).decode()
    return " ".join(signs[at : at + 4] for at in range(0, len(signs), 4))
