"""Push subscriptions of devices: what browsers give to have themselves notified, and who is notified of an ask. Pure."""

import base64
import binascii
import ipaddress
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from trunkline_fold.asks import Ask
from trunkline_gateway.roles import Role
from trunkline_gateway.tokens import TokenRecord
from trunkline_wire import TrunklineError
from trunkline_wire.secret import Discreet, Secret

MAX_ENDPOINT: Final = 2048
KEY_BYTES: Final = 65
AUTH_BYTES: Final = 16
UNCOMPRESSED: Final = 4
"""The first byte of a point that is written out."""


class Keys(Discreet, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The browser's public key and its secret, in base64url."""

    p256dh: str
    auth: Secret


class Subscription(Discreet, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a push service takes messages for a browser, which is a secret, and what they are encrypted with."""

    endpoint: Secret
    keys: Keys

    def check(self) -> None:
        """Raises TrunklineError `bad_params` for an endpoint that is no push service's, or keys that are none."""
        if len(self.endpoint) > MAX_ENDPOINT or not self.endpoint.isascii() or not _is_service(self.endpoint):
            raise TrunklineError(
                "bad_params", "a push service is at https:// and a name", field="subscription.endpoint"
            )
        public = _unpacked(self.keys.p256dh)
        if len(public) != KEY_BYTES or public[0] != UNCOMPRESSED:
            raise TrunklineError(
                "bad_params", f"p256dh is base64url of {KEY_BYTES} bytes", field="subscription.keys.p256dh"
            )
        if len(_unpacked(self.keys.auth)) != AUTH_BYTES:
            raise TrunklineError(
                "bad_params", f"auth is base64url of {AUTH_BYTES} bytes", field="subscription.keys.auth"
            )


def may_decide(token: TokenRecord, ask: Ask, workspace: str | None) -> bool:
    """Whether who has a token sees an ask, and may decide it."""
    principal = token.principal()
    wanted: Role = "approver"
    if ask.routed is not None and ask.routed.role == "owner":
        wanted = "owner"
    return principal.may(wanted) and principal.scope.holds(ask.session, workspace)


def to_notify(tokens: Iterable[TokenRecord], ask: Ask, workspace: str | None) -> set[str]:
    """The devices that are told of an ask: those that are signed in with the right to decide it."""
    if ask.status != "open":
        return set()
    return {one.device for one in tokens if one.device is not None and may_decide(one, ask, workspace)}


def _is_service(endpoint: str) -> bool:
    try:
        to = urlsplit(endpoint)
        host = to.hostname or ""
        _ = to.port
    except ValueError:
        return False
    if to.username is not None or to.fragment or not endpoint.isprintable() or " " in endpoint:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback and to.scheme in {"http", "https"}
    except ValueError:
        return bool(host) and to.scheme == "https"


def _unpacked(text: str) -> bytes:
    if len(text) > 2 * KEY_BYTES:
        return b""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
