"""`token.*`: what the owner hands out."""

from typing import Any

import msgspec

from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Params, method
from trunkline_gateway.roles import Role
from trunkline_wire.ids import check_token


class Create(Params, frozen=True, kw_only=True):
    actor: str
    role: Role


@method("token.create", "owner", Create)
async def create(gateway: Gateway, caller: Caller, params: Create) -> dict[str, Any]:
    """A new token for `actor`; it is shown only this once."""
    token, record = await gateway.tokens.create(check_token(params.actor), params.role)
    gateway.audit.note("token", caller.principal.actor, act="created", token=record.id, role=record.role)
    return {"token": token, "id": record.id, "actor": record.actor, "role": record.role}


class Nothing(Params, frozen=True, kw_only=True):
    pass


@method("token.list", "owner", Nothing)
async def list_(gateway: Gateway, _: Caller, __: Nothing) -> dict[str, Any]:
    """The tokens that are valid, without what would let one use them."""
    records = [msgspec.to_builtins(record) for record in gateway.tokens.list()]
    return {"tokens": [{key: value for key, value in record.items() if key != "hash"} for record in records]}


class Revoke(Params, frozen=True, kw_only=True):
    id: str


@method("token.revoke", "owner", Revoke)
async def revoke(gateway: Gateway, caller: Caller, params: Revoke) -> dict[str, Any]:
    """End a token, and every connection that was opened with it, at all gateways."""
    await gateway.tokens.revoke(params.id)
    gateway.audit.note("token", caller.principal.actor, act="revoked", token=params.id)
    return {"revoked": params.id}
