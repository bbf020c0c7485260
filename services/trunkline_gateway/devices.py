"""Devices: what people sign in with, or pair to come from anywhere. Each brings a key of its own, which signs its decisions."""

import base64
import binascii
import datetime as dt
from collections.abc import Callable
from typing import Final, NotRequired, TypedDict

import msgspec
from msgspec.structs import replace

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_gateway.push import Subscription
from trunkline_gateway.records import Records
from trunkline_gateway.roles import Principal, Role
from trunkline_seal import fingerprint
from trunkline_wire import TrunklineError, encode, parse_time, timestamp
from trunkline_wire.ids import uuid7_hex
from trunkline_wire.secret import Discreet, Secret
from trunkline_wire.subjects import KV_DEVICES

KEY_BYTES: Final = 32
MAX_NAME: Final = 64
SEEN_S: Final = 60.0
"""Seconds within which a device that is seen again is not written down again."""


class Device(TypedDict):
    """What a paired device has besides: `route` and `identity`, its public keys in base64; `fingerprint`, its identity for people to
    compare; `role`, what it was paired as; `seen`, to the minute, when it was last there. `push`: it has itself notified. `parent`: the
    device by whose rights it came, with which it ends.
    """

    id: str
    actor: str
    name: str
    created: str
    route: NotRequired[str]
    identity: NotRequired[str]
    fingerprint: NotRequired[str]
    role: NotRequired[Role]
    seen: NotRequired[str]
    push: NotRequired[bool]
    parent: NotRequired[str]


class DeviceRecord(Discreet, frozen=True, kw_only=True, omit_defaults=True):
    """A device as stored. `key` is base64 of KEY_BYTES random bytes that the device made: a MAC needs it as it is."""

    id: str
    actor: str
    name: str
    key: Secret
    created: str
    route: str | None = None
    identity: str | None = None
    role: Role | None = None
    seen: str | None = None
    push: Subscription | None = None
    parent: str | None = None

    def shown(self) -> Device:
        """All of it but the key, and where it is pushed to."""
        shown: Device = {"id": self.id, "actor": self.actor, "name": self.name, "created": self.created}
        if self.route is not None and self.identity is not None and self.role is not None:
            shown["route"], shown["identity"], shown["role"] = self.route, self.identity, self.role
            shown["fingerprint"] = fingerprint(base64.b64decode(self.identity))
        if self.seen is not None:
            shown["seen"] = self.seen
        if self.push is not None:
            shown["push"] = True
        if self.parent is not None:
            shown["parent"] = self.parent
        return shown


class Devices:
    """The devices of the log, watched. Each may have come by the rights of another, its parent, and counts no more once that is gone."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.records = Records(bus, KV_DEVICES, DeviceRecord, "device")

    async def register(self, actor: str, name: str, key: str, *, parent: str | None = None) -> DeviceRecord:
        """Raises TrunklineError `bad_params` for a key that is none."""
        _check_key(key, "key")
        return await self._add(replace(_record(actor, name, key), parent=parent))

    async def pair(
        self, actor: str, name: str, role: Role, *, key: str, route: str, identity: str, parent: str | None = None
    ) -> DeviceRecord:
        """A device that comes from anywhere. Raises TrunklineError `bad_params` for a key that is none, or another device's."""
        for field, value in (("key", key), ("route", route), ("identity", identity)):
            _check_key(value, field)
        for known in self._standing():
            if known.route == route or known.identity == identity:
                raise TrunklineError(
                    "bad_params", f"{known.name!r} has these keys: revoke {known.id}, then pair again", field="identity"
                )
        made = replace(_record(actor, name, key), route=route, identity=identity, role=role, parent=parent)
        return await self._add(made)

    async def _add(self, record: DeviceRecord) -> DeviceRecord:
        await self.records.put(record.id, record)
        return record

    def stands(self, id: str | None) -> bool:
        """Whether a device, and all above it, are there; true for None."""
        while id is not None:
            record = self.records.known.get(id)
            if record is None:
                return False
            id = record.parent
        return True

    def below(self, id: str) -> list[str]:
        """The devices that came by the rights of this one, or of one that did."""
        children: dict[str, list[str]] = {}
        for record in self.records.known.values():
            if record.parent is not None:
                children.setdefault(record.parent, []).append(record.id)
        found = [id]
        for one in found:
            found += children.get(one, [])
        return found[1:]

    def _standing(self) -> list[DeviceRecord]:
        return [record for record in self.records.known.values() if self.stands(record.id)]

    def seen_by(self, principal: Principal) -> list[DeviceRecord]:
        """An owner sees all devices, anyone else their own."""
        every = sorted(self._standing(), key=lambda device: device.created)
        return [device for device in every if principal.may("owner") or device.actor == principal.actor]

    def get(self, principal: Principal, id: str) -> DeviceRecord:
        """Raises TrunklineError `bad_params` for a device that does not exist, or is someone else's."""
        found = next((device for device in self.seen_by(principal) if device.id == id), None)
        if found is None:
            raise TrunklineError("bad_params", f"there is no device {id!r}; `device.list` names them", field="id")
        return found

    async def there(self, id: str) -> bool:
        """Whether it stands as of now, not of what has been heard here."""
        wanted: str | None = id
        while wanted is not None:
            entry = await kv.get(self._bus, KV_DEVICES, self.records.key(wanted))
            if entry is None or entry.value is None:
                return False
            wanted = msgspec.json.decode(entry.value, type=DeviceRecord).parent
        return True

    async def forget_orphans(self) -> None:
        """Delete what is left of devices whose parent is gone; other gateways may do the same at the same time."""
        for id_ in list(self.records.known):
            if not self.stands(id_) and not await self.there(id_):
                await self.records.delete(id_)

    async def rename(self, principal: Principal, id: str, name: str) -> DeviceRecord:
        """Raises like `get`."""
        plain = check_name(name)
        record = await self._change(self.get(principal, id).id, lambda record: replace(record, name=plain))
        return record or self.get(principal, id)

    async def seen(self, id: str) -> bool:
        """Note that a device is there; whether that was worth noting."""
        record = self.records.known.get(id)
        if record is None or (record.seen is not None and _age(record.seen) < SEEN_S):
            return False
        return await self._change(id, lambda record: replace(record, seen=timestamp())) is not None

    async def push(self, id: str, subscription: Subscription | None) -> DeviceRecord | None:
        """Have a device notified, or no more; None for one that is gone."""
        known = self.records.known.get(id)
        if known is not None and known.push == subscription:
            return known
        return await self._change(id, lambda record: replace(record, push=subscription))

    async def push_gone(self, id: str, endpoint: str) -> None:
        """Forget where a device was notified, unless that is elsewhere by now."""

        def without(record: DeviceRecord) -> DeviceRecord:
            gone = record.push is not None and record.push.endpoint == endpoint
            return replace(record, push=None) if gone else record

        if id in self.records.known:
            await self._change(id, without)

    async def _change(self, id: str, change: Callable[[DeviceRecord], DeviceRecord]) -> DeviceRecord | None:
        """None for a device that is gone: one that was revoked must not come back with a change."""
        key = self.records.key(id)
        while True:
            entry = await kv.get(self._bus, KV_DEVICES, key)
            if entry is None or entry.value is None:
                return None
            record = change(msgspec.json.decode(entry.value, type=DeviceRecord))
            if await kv.update(self._bus, KV_DEVICES, key, encode(record), revision=entry.revision) is not None:
                return record


def _record(actor: str, name: str, key: str) -> DeviceRecord:
    return DeviceRecord(id=f"dev_{uuid7_hex()}", actor=actor, name=check_name(name), key=key, created=timestamp())


def _check_key(text: str, field: str) -> None:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != KEY_BYTES:
        raise TrunklineError("bad_params", f"a device's {field} is base64 of {KEY_BYTES} bytes", field=field)


def _age(time: str) -> float:
    return (dt.datetime.now(dt.UTC) - parse_time(time)).total_seconds()


def check_name(name: str) -> str:
    """A name as it is kept. Raises TrunklineError `bad_params`."""
    plain = " ".join(name.split())
    if not 0 < len(plain) <= MAX_NAME or not plain.isprintable():
        raise TrunklineError("bad_params", f"a name has 1 to {MAX_NAME} printable characters", field="name")
    return plain
