"""`device.push` and `push.*`: browsers that have themselves notified of asks while their page is closed.

The extension `push` sends: it alone learns where to.
"""

from typing import Final, TypedDict

import msgspec

from trunkline_bus.credentials import extension_user
from trunkline_gateway.devices import Device
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.methods.extensions import itself
from trunkline_gateway.push import Subscription, to_notify
from trunkline_gateway.registry import Params, method
from trunkline_wire import TrunklineError
from trunkline_wire.ids import check_id
from trunkline_wire.secret import Secret

SENDER: Final = "push"
ANSWER_S: Final = 5.0
MAX_KEY: Final = 128


class Push(Params, frozen=True, kw_only=True):
    subscription: Subscription | None


@method("device.push", "viewer", Push, acts_as_person=True, limited="itself")
async def push(gateway: Gateway, caller: Caller, params: Push) -> Device:
    """Have the caller's device notified of asks that it may decide, by the push subscription of its browser; null ends that."""
    id_ = caller.principal.device
    if params.subscription is not None:
        params.subscription.check()
    before = gateway.devices.records.known.get(id_) if id_ is not None else None
    record = await gateway.devices.push(id_, params.subscription) if id_ is not None else None
    if record is None:
        raise TrunklineError("bad_params", "only a device can be notified: sign in by a link, or pair it")
    if before is None or before.push != record.push:
        act = "push_on" if record.push is not None else "push_off"
        gateway.audit.note("device", record.actor, act=act, device=record.id)
    return record.shown()


class Nothing(Params, frozen=True, kw_only=True):
    pass


class PushKey(TypedDict):
    """`key`: base64url of 65 bytes."""

    key: str


class _Key(msgspec.Struct, frozen=True):
    key: str


@method("push.key", "viewer", Nothing, limited="itself")
async def key(gateway: Gateway, _caller: Caller, _: Nothing) -> PushKey:
    """The public key that a browser subscribes with; `unknown_extension` where nobody sends push messages."""
    answer = await gateway.extensions.request(SENDER, f"trunk.ext.{SENDER}.key", {}, {}, ANSWER_S)
    try:
        return {"key": msgspec.convert(answer, _Key).key[:MAX_KEY]}
    except msgspec.ValidationError as error:
        raise TrunklineError("extension_failed", f"{extension_user(SENDER)!r} has no key: {error}") from error


class OfAsk(Params, frozen=True, kw_only=True):
    ask: str


class PushTarget(TypedDict):
    device: str
    endpoint: str
    keys: dict[str, str]


class PushTargets(TypedDict):
    targets: list[PushTarget]


@method("push.targets", "viewer", OfAsk, limited="never")
async def targets(gateway: Gateway, caller: Caller, params: OfAsk) -> PushTargets:
    """For the extension that sends: the devices to notify of an ask, by subscription; none once it is no longer open."""
    _only_sender(caller)
    ask = gateway.directory.ask(check_id(params.ask, "ask"))
    if ask is None:
        return {"targets": []}
    state = gateway.directory.states.get(ask.session)
    wanted = to_notify(gateway.tokens.list(), ask, state.workspace if state is not None else None)
    known = gateway.devices.records.known
    # A browser that was registered anew has the same endpoint: it is told once, as the device that it is now.
    found: dict[str, PushTarget] = {}
    for record in sorted((known[id_] for id_ in wanted if id_ in known), key=lambda one: one.created):
        if (to := record.push) is not None:
            keys = {"p256dh": to.keys.p256dh, "auth": to.keys.auth}
            found[to.endpoint] = {"device": record.id, "endpoint": to.endpoint, "keys": keys}
    return {"targets": list(found.values())}


class Gone(Params, frozen=True, kw_only=True):
    device: str
    endpoint: Secret


class Forgotten(TypedDict):
    pass


@method("push.gone", "viewer", Gone, limited="never")
async def gone(gateway: Gateway, caller: Caller, params: Gone) -> Forgotten:
    """For the extension that sends: a subscription has ended."""
    _only_sender(caller)
    await gateway.devices.push_gone(params.device, params.endpoint)
    return {}


def _only_sender(caller: Caller) -> None:
    if itself(caller) != SENDER:
        raise TrunklineError("forbidden", f"this is for the extension {SENDER!r} alone")
