"""`token.*`, `sign_in.link` and `device.*`: who may come in, with what."""

import time
from typing import Any

import msgspec

from trunkline_gateway import signin
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Paged, Params, method, page_of
from trunkline_gateway.roles import Role, Scope
from trunkline_gateway.tokens import TokenRecord
from trunkline_wire import TrunklineError
from trunkline_wire.actors import MAX_ACTOR, check_person
from trunkline_wire.ids import check_id


class _Grant(Params, frozen=True, kw_only=True):
    actor: str
    role: Role
    sessions: list[str] = []
    workspaces: list[str] = []

    @property
    def scope(self) -> Scope:
        """Raises TrunklineError `bad_id`."""
        return Scope(
            sessions=tuple(check_id(session, "ses") for session in self.sessions),
            workspaces=tuple(check_id(workspace, "ws") for workspace in self.workspaces),
        )


class Create(_Grant, frozen=True, kw_only=True):
    lasts: float | None = None
    """Seconds; None for ever."""
    label: str = ""


@method("token.create", "owner", Create)
async def create(gateway: Gateway, caller: Caller, params: Create) -> dict[str, Any]:
    """A new token for `actor`, limited to `sessions` and `workspaces` if any are named; it is shown only this once."""
    token, record = await gateway.tokens.create(
        check_person(params.actor),
        params.role,
        scope=params.scope,
        expires=None if params.lasts is None else time.time() + _lasting(params.lasts),
        label=params.label[:MAX_ACTOR],
    )
    gateway.audit.note(
        "token", caller.principal.actor, act="created", token=record.id, role=record.role, of=record.actor
    )
    return {"token": token, **_shown(record)}


@method("token.list", "owner", Paged)
async def list_(gateway: Gateway, _: Caller, params: Paged) -> dict[str, Any]:
    """The tokens that are valid, without what would let one use them."""
    return page_of("tokens", [_shown(record) for record in gateway.tokens.list()], params)


class One(Params, frozen=True, kw_only=True):
    id: str


@method("token.revoke", "owner", One)
async def revoke(gateway: Gateway, caller: Caller, params: One) -> dict[str, Any]:
    """End a token, and every connection that was opened with it, at all gateways."""
    record = await gateway.tokens.revoke(params.id)
    gateway.audit.note("token", caller.principal.actor, act="revoked", token=params.id, of=record.actor)
    return {"revoked": params.id}


class Link(_Grant, frozen=True, kw_only=True):
    lasts: float = signin.SIGNED_IN_S
    """Seconds that the sign-in lasts."""


@method("sign_in.link", "owner", Link)
async def link(gateway: Gateway, caller: Caller, params: Link) -> dict[str, Any]:
    """A code that signs a browser in, once, within a few minutes; `path` is where to open it, behind the gateway's URL."""
    code, expires = await signin.make_code(
        gateway.bus, check_person(params.actor), params.role, scope=params.scope, lasts=_lasting(params.lasts)
    )
    gateway.audit.note("token", caller.principal.actor, act="link", role=params.role, of=params.actor)
    return {"code": code, "path": f"/sign-in#code={code}", "expires": expires}


class Register(Params, frozen=True, kw_only=True):
    name: str
    key: str


@method("device.register", "viewer", Register, acts_as_person=True, limited="itself")
async def register(gateway: Gateway, caller: Caller, params: Register) -> dict[str, Any]:
    """Register a device of the caller, with a `key` that it made: base64 of 32 random bytes."""
    record = await gateway.devices.register(caller.principal.actor, params.name, params.key)
    gateway.audit.note("device", record.actor, act="registered", device=record.id)
    return record.shown()


@method("device.list", "viewer", Paged, limited="itself")
async def devices(gateway: Gateway, caller: Caller, params: Paged) -> dict[str, Any]:
    """The caller's devices; an owner sees everybody's."""
    return page_of("devices", [device.shown() for device in gateway.devices.seen_by(caller.principal)], params)


class Rename(One, frozen=True, kw_only=True):
    name: str


@method("device.rename", "viewer", Rename, acts_as_person=True, limited="itself")
async def rename(gateway: Gateway, caller: Caller, params: Rename) -> dict[str, Any]:
    """Give a device of the caller another name."""
    return (await gateway.devices.rename(caller.principal, params.id, params.name)).shown()


@method("device.revoke", "viewer", One, acts_as_person=True, limited="itself")
async def revoke_device(gateway: Gateway, caller: Caller, params: One) -> dict[str, Any]:
    """End a device of the caller: its key counts no more, and what it signed in with is revoked."""
    record = gateway.devices.get(caller.principal, params.id)
    tokens = [token.id for token in gateway.tokens.list() if token.device == record.id]
    await gateway.devices.records.delete(record.id)
    for token in tokens:
        await gateway.tokens.revoke(token)
    gateway.audit.note("device", caller.principal.actor, act="revoked", device=record.id, of=record.actor)
    return {"revoked": record.id, "tokens": tokens}


def _lasting(seconds: float) -> float:
    if not 0 < seconds <= 10 * 366 * 86400:
        raise TrunklineError("bad_params", "lasts is in seconds, above 0 and below ten years", field="lasts")
    return seconds


def _shown(record: TokenRecord) -> dict[str, Any]:
    return {key: value for key, value in msgspec.to_builtins(record).items() if key != "hash"}
