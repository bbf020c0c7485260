"""Tickets for the pages of extensions: who looks at which, sealed, in the path of the pages.

A page in a sandbox has no origin, so that no cookie comes with what it loads, and none may reach an extension. The ticket says
instead who looks. It is good for one extension, an hour at most, and for reading pages alone. Pure.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Final

import msgspec

from trunkline_gateway.roles import Principal, Role, Via
from trunkline_wire import TrunklineError, encode

TICKET_S: Final = 3600.0
MAX_TICKET: Final = 1024


class Ticket(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`expires` is in seconds since 1970; `token` is the id of the token's record that it was got with."""

    extension: str
    actor: str
    role: Role
    via: Via
    expires: float
    token: str | None = None

    @property
    def principal(self) -> Principal:
        return Principal(actor=self.actor, role=self.role, via=self.via, token=self.token, expires=self.expires)


class Tickets:
    """Makes and reads tickets under a `secret` that the gateways of a log share."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, b"tickets of extensions' pages", hashlib.sha256)

    def make(self, extension: str, principal: Principal, now: float) -> tuple[str, float]:
        """A ticket, and the time at which it ends."""
        expires = min(now + TICKET_S, principal.expires or now + TICKET_S)
        ticket = Ticket(
            extension=extension,
            actor=principal.actor,
            role=principal.role,
            via=principal.via,
            expires=expires,
            token=principal.token,
        )
        body = encode(ticket)
        return base64.urlsafe_b64encode(self._mac(body) + body).decode().rstrip("="), expires

    def read(self, text: str, extension: str, now: float) -> Ticket:
        """Raises TrunklineError `unauthorized` for what is none, is too old, or is another extension's."""
        try:
            padded = text + "=" * (-len(text) % 4) if len(text) <= MAX_TICKET else ""
            raw = base64.b64decode(padded, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        mac, body = raw[:32], raw[32:]
        if not hmac.compare_digest(mac, self._mac(body)):
            raise _none()
        ticket = msgspec.json.decode(body, type=Ticket)
        if ticket.extension != extension or ticket.expires <= now:
            raise _none()
        return ticket

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, hashlib.sha256)


def _none() -> TrunklineError:
    return TrunklineError("unauthorized", "the page is no longer open: load it again from the app")
