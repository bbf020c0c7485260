"""`token.*`, `sign_in.link` and `device.*`: who may come in, with what."""

import logging
import time
from typing import Final, NotRequired, TypedDict, cast

import msgspec

from trunkline_bus.tasks import uncut
from trunkline_gateway import invitations, signin
from trunkline_gateway.devices import Device, check_name
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.invitations import Invitation
from trunkline_gateway.registry import Page, Paged, Params, method, page_of
from trunkline_gateway.roles import Role, Scope
from trunkline_gateway.tokens import TokenRecord
from trunkline_wire import TrunklineError
from trunkline_wire.actors import MAX_ACTOR, check_person
from trunkline_wire.ids import check_id
from trunkline_wire.secret import Secret

log = logging.getLogger(__name__)

MAX_SEEN: Final = 1_000
ENDING_S: Final = 2.0
"""Seconds that a revocation still has whose caller is gone: a gateway that stops waits no longer."""


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


class Token(TypedDict):
    """`id` names the token, and is no secret; `expires` is in seconds since 1970, absent for never; `via`: by hand or by a sign-in.

    It ends with `device`, whose own it is, or with `parent`, the device by whose rights it was made.
    """

    id: str
    actor: str
    role: Role
    created: str
    scope: NotRequired[Scope]
    expires: NotRequired[float]
    label: NotRequired[str]
    device: NotRequired[str]
    parent: NotRequired[str]
    via: NotRequired[str]


class NewToken(Token):
    token: str


class Create(_Grant, frozen=True, kw_only=True):
    lasts: float | None = None
    """Seconds; None for ever."""
    label: str = ""


@method("token.create", "owner", Create)
async def create(gateway: Gateway, caller: Caller, params: Create) -> NewToken:
    """A new token for `actor`, limited to `sessions` and `workspaces` if any are named; it is shown only this once.

    Made by a device's rights, it ends with the device.
    """
    token, record = await gateway.tokens.create(
        check_person(params.actor),
        params.role,
        scope=params.scope,
        expires=None if params.lasts is None else time.time() + _lasting(params.lasts),
        label=params.label[:MAX_ACTOR],
        parent=caller.principal.under,
    )
    gateway.audit.note(
        "token", caller.principal.actor, act="created", token=record.id, role=record.role, of=record.actor
    )
    return {"token": token, **_shown(record)}


class TokenPage(Page):
    tokens: list[Token]


@method("token.list", "owner", Paged)
async def list_(gateway: Gateway, _: Caller, params: Paged) -> TokenPage:
    """The tokens that are valid, without what would let one use them."""
    records, page = page_of(gateway.tokens.list(), params)
    return {"tokens": [_shown(record) for record in records], **page}


class One(Params, frozen=True, kw_only=True):
    id: str


class Revoked(TypedDict):
    revoked: str


@method("token.revoke", "owner", One)
async def revoke(gateway: Gateway, caller: Caller, params: One) -> Revoked:
    """End a token, and every connection that was opened with it, at all gateways."""
    record = await gateway.tokens.revoke(params.id)
    gateway.audit.note("token", caller.principal.actor, act="revoked", token=params.id, of=record.actor)
    return {"revoked": params.id}


class Link(_Grant, frozen=True, kw_only=True):
    lasts: float = signin.SIGNED_IN_S
    """Seconds that the sign-in lasts."""


class SignInLink(TypedDict):
    """`expires` is in seconds since 1970."""

    code: str
    path: str
    expires: float


@method("sign_in.link", "owner", Link)
async def link(gateway: Gateway, caller: Caller, params: Link) -> SignInLink:
    """A code that signs a browser in, once, within a few minutes; `path` is where to open it, behind the gateway's URL."""
    code, expires = await signin.make_code(
        gateway.bus,
        check_person(params.actor),
        params.role,
        scope=params.scope,
        lasts=_lasting(params.lasts),
        parent=caller.principal.under,
    )
    gateway.audit.note("token", caller.principal.actor, act="link", role=params.role, of=params.actor)
    return {"code": code, "path": f"/sign-in#code={code}", "expires": expires}


class Register(Params, frozen=True, kw_only=True):
    name: str
    key: Secret


@method("device.register", "viewer", Register, acts_as_person=True, limited="itself")
async def register(gateway: Gateway, caller: Caller, params: Register) -> Device:
    """Register a device of the caller, with a `key` that it made: base64 of 32 random bytes."""
    record = await gateway.devices.register(
        caller.principal.actor, params.name, params.key, parent=caller.principal.under
    )
    gateway.audit.note("device", record.actor, act="registered", device=record.id)
    return record.shown()


class Invite(Params, frozen=True, kw_only=True):
    """Without a `name` the device has its own word for itself."""

    actor: str
    role: Role
    name: str = ""


class Invited(TypedDict):
    """`lasts` is in seconds."""

    invitation: str
    lasts: float


@method("device.invite", "owner", Invite, acts_as_person=True)
async def invite(gateway: Gateway, caller: Caller, params: Invite) -> Invited:
    """Agree that a device may be paired, once, for `actor`: what `device.pair` wants."""
    actor = check_person(params.actor)
    name = check_name(params.name) if params.name else ""
    code = await invitations.make(
        gateway.bus, Invitation(actor=actor, role=params.role, name=name, parent=caller.principal.under)
    )
    gateway.audit.note("device", caller.principal.actor, act="invited", of=actor, role=params.role)
    return {"invitation": code, "lasts": invitations.LASTS_S}


class Pair(Register, frozen=True, kw_only=True):
    invitation: Secret
    route: str
    identity: str


class Paired(Device):
    token: str


@method("device.pair", "owner", Pair, acts_as_person=True)
async def pair(gateway: Gateway, caller: Caller, params: Pair) -> Paired:
    """Register a device that comes from anywhere, as its invitation has it, with a token of its own, shown only this once: `route` and
    `identity` are its public keys, `key` signs its decisions.
    """
    invited = await invitations.use(gateway.bus, params.invitation)
    parent = invited.parent or caller.principal.under
    if not gateway.devices.stands(parent):
        raise TrunklineError("bad_pairing", "the device that invited this one was revoked: pair again")
    record = await gateway.devices.pair(
        invited.actor,
        invited.name or params.name,
        invited.role,
        key=params.key,
        route=params.route,
        identity=params.identity,
        parent=parent,
    )
    token, kept = await gateway.tokens.create(
        record.actor, invited.role, label=record.name, device=record.id, via="pairing"
    )
    if not await gateway.devices.there(record.id):
        await gateway.tokens.records.delete(kept.id)
        await gateway.devices.records.delete(record.id)
        raise TrunklineError("bad_pairing", "the device was revoked while it was paired, or that which invited it")
    gateway.audit.note(
        "device",
        caller.principal.actor,
        act="paired",
        device=record.id,
        of=record.actor,
        role=invited.role,
        token=kept.id,
    )
    return {"token": token, **record.shown()}


class Seen(Params, frozen=True, kw_only=True):
    devices: list[str]


class SeenNow(TypedDict):
    seen: list[str]


@method("device.seen", "owner", Seen)
async def seen(gateway: Gateway, _: Caller, params: Seen) -> SeenNow:
    """Note that devices are there; answers for which that was worth noting: it is kept to the minute."""
    return {"seen": [device for device in params.devices[:MAX_SEEN] if await gateway.devices.seen(device)]}


class DevicePage(Page):
    devices: list[Device]


@method("device.list", "viewer", Paged, limited="itself")
async def devices(gateway: Gateway, caller: Caller, params: Paged) -> DevicePage:
    """The caller's devices; an owner sees everybody's."""
    records, page = page_of(gateway.devices.seen_by(caller.principal), params)
    return {"devices": [record.shown() for record in records], **page}


class Rename(One, frozen=True, kw_only=True):
    name: str


@method("device.rename", "viewer", Rename, acts_as_person=True, limited="itself")
async def rename(gateway: Gateway, caller: Caller, params: Rename) -> Device:
    """Give a device of the caller another name."""
    return (await gateway.devices.rename(caller.principal, params.id, params.name)).shown()


class DeviceRevoked(Revoked):
    """`tokens` and `devices`: those that ended with it."""

    tokens: list[str]
    devices: list[str]


@method("device.revoke", "viewer", One, acts_as_person=True, limited="itself")
async def revoke_device(gateway: Gateway, caller: Caller, params: One) -> DeviceRevoked:
    """End a device of the caller: its key counts no more, and neither do the tokens and devices that came by its rights."""
    record = gateway.devices.get(caller.principal, params.id)
    devices = gateway.devices.below(record.id)
    ending = {record.id, *devices}
    tokens = [token.id for token in gateway.tokens.list() if token.under in ending]

    async def end() -> None:
        # With it all of them count no more, whatever of them is still written down, or is written a moment later.
        await gateway.devices.records.delete(record.id)
        gateway.audit.note(
            "device", caller.principal.actor, act="revoked", device=record.id, of=record.actor, devices=devices
        )
        try:
            for id_ in tokens:
                await gateway.tokens.records.delete(id_)
            for id_ in devices:
                await gateway.devices.records.delete(id_)
        except TrunklineError as error:  # what is left goes when a gateway starts
            log.warning("revoked_not_tidied", extra={"device": record.id, "code": error.code})

    await uncut(end(), most=ENDING_S)  # it may be the caller's own connection that ends with it
    return {"revoked": record.id, "tokens": tokens, "devices": devices}


def _lasting(seconds: float) -> float:
    if not 0 < seconds <= 10 * 366 * 86400:
        raise TrunklineError("bad_params", "lasts is in seconds, above 0 and below ten years", field="lasts")
    return seconds


def _shown(record: TokenRecord) -> Token:
    return cast("Token", {key: value for key, value in msgspec.to_builtins(record).items() if key != "hash"})
