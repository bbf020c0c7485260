"""libsodium's generichash, told apart by what it is for."""

from nacl.bindings import crypto_generichash_blake2b_salt_personal as generichash


def digest(purpose: str, *parts: bytes, size: int = 32, key: bytes = b"") -> bytes:
    """Of `purpose`, a zero byte and the parts one after the other; these are of fixed sizes, but for the last."""
    return generichash(purpose.encode() + b"\0" + b"".join(parts), digest_size=size, key=key)
