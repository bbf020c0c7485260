"""What is known of an OpenID Connect provider, and who its verified claims stand for. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from trunkline_gateway.roles import Principal, Role
from trunkline_wire import TrunklineError
from trunkline_wire.actors import EXTENSION, POLICY

LEEWAY_S: Final = 30
"""Seconds that the clocks of provider and gateway may differ by."""
_ORDER: Final[tuple[Role, ...]] = ("viewer", "participant", "approver", "owner")


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a provider. `roles` maps the values of the claim `role` to ours; a value that is one of ours is that one."""

    issuer: str
    audience: str
    actor: str = "sub"
    role: str = "trunkline_role"
    roles: Mapping[str, Role] = {}
    default: Role | None = None


def principal_of(claims: Mapping[str, Any], provider: Provider) -> Principal:
    """From verified claims. Raises TrunklineError `unauthorized` without a usable name, `forbidden` without a role."""
    actor = claims.get(provider.actor)
    if not isinstance(actor, str) or not 0 < len(actor) <= 128 or not actor.isprintable():
        raise TrunklineError("unauthorized", f"the token's claim {provider.actor!r} is no name")
    if actor.startswith(EXTENSION) or actor == POLICY:
        raise TrunklineError("unauthorized", f"the token's claim {provider.actor!r} is no person's name: {actor!r}")
    said: Any = claims.get(provider.role)
    values: list[Any] = said if isinstance(said, list) else [said]
    found: list[Role] = [
        provider.roles[value] for value in values if isinstance(value, str) and value in provider.roles
    ]
    found.extend(role for role in _ORDER if role in values)
    if not found and provider.default is not None:
        found = [provider.default]
    if not found:
        raise TrunklineError(
            "forbidden", f"the provider gives {actor!r} no role here: the claim {provider.role!r} has to name one"
        )
    return Principal(actor=actor, role=max(found, key=_ORDER.index), via="tcp", expires=float(claims["exp"]) + LEEWAY_S)
