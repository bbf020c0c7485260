"""What a host and a new device tell each other so that each knows the other from then on."""

import base64
import hmac
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlsplit

from nacl import bindings

from trunkline_seal.hashing import digest
from trunkline_seal.keys import KEY_BYTES
from trunkline_wire import TrunklineError

VALID_S: Final = 60.0
"""Seconds that a link is good for."""
SECRET_BYTES: Final = 16
NONCE_BYTES: Final = 16
_FORM: Final = "1."
_SIZE: Final = 3 * KEY_BYTES + SECRET_BYTES


@dataclass(frozen=True, slots=True)
class Link:
    """A pairing link. `relay` is the relay's address (`https://…`), `app` the digest of the app that the host vouches for."""

    relay: str
    route: bytes
    identity: bytes
    app: bytes
    secret: bytes = field(repr=False)

    @classmethod
    def new(cls, relay: str, route: bytes, identity: bytes, app: bytes) -> Self:
        return cls(relay, route, identity, app, bindings.randombytes(SECRET_BYTES))

    @property
    def name(self) -> str:
        """What the relay calls this pairing: it says nothing of the secret."""
        return pairing_name(self.secret)

    @property
    def url(self) -> str:
        """All but the relay's address stands behind `#`, which browsers keep to themselves."""
        packed = self.route + self.identity + self.app + self.secret
        return f"{self.relay}/pair#{_FORM}{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"

    @classmethod
    def parse(cls, url: str) -> Self:
        """Raises TrunklineError `bad_params`."""
        try:
            parts = urlsplit(url.strip())
            form, _, text = parts.fragment.partition(".")
            place = parts.hostname and parts.port != 0 and parts.username is None
            packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except ValueError:
            raise _none() from None
        if f"{form}." != _FORM or len(packed) != _SIZE or parts.scheme not in ("https", "http") or not place:
            raise _none()
        route, identity, app = (packed[at : at + KEY_BYTES] for at in range(0, 3 * KEY_BYTES, KEY_BYTES))
        path = parts.path.removesuffix("/pair").rstrip("/")
        return cls(f"{parts.scheme}://{parts.netloc}{path}", route, identity, app, packed[-SECRET_BYTES:])


def _none() -> TrunklineError:
    return TrunklineError("bad_params", "this is no link of `trunkline pair`, or only a part of one", field="link")


def pairing_name(secret: bytes) -> str:
    """`pair_` and 32 signs of hex."""
    return "pair_" + digest("trunkline-pairing", secret, size=16).hex()


def nonce() -> bytes:
    return bindings.randombytes(NONCE_BYTES)


def commitment(number: bytes) -> bytes:
    """What a device says of its number before it hears the host's."""
    return digest("trunkline-commitment", number)


def committed(to: bytes, number: bytes) -> bool:
    return len(number) == NONCE_BYTES and hmac.compare_digest(to, commitment(number))


def short_code(host: tuple[bytes, bytes], device: tuple[bytes, bytes], numbers: tuple[bytes, bytes]) -> str:
    """Six digits that both ends show: of the route key and the identity of each, and the numbers of host and device."""
    whole = digest("trunkline-code", *host, *device, *numbers, size=16)
    code = f"{int.from_bytes(whole, 'big') % 1_000_000:06}"
    return f"{code[:3]} {code[3:]}"
