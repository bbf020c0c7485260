"""Devices: what people sign in with. Each brings a key of its own, which signs its decisions."""

import base64
import binascii
from typing import Final, TypedDict

import msgspec
from msgspec.structs import replace

from trunkline_bus.connection import Bus
from trunkline_gateway.records import Records
from trunkline_gateway.roles import Principal
from trunkline_wire import TrunklineError, timestamp
from trunkline_wire.ids import uuid7_hex
from trunkline_wire.subjects import KV_DEVICES

KEY_BYTES: Final = 32
MAX_NAME: Final = 64


class Device(TypedDict):
    id: str
    actor: str
    name: str
    created: str


class DeviceRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A device as stored. `key` is base64 of KEY_BYTES random bytes that the device made: a MAC needs it as it is."""

    id: str
    actor: str
    name: str
    key: str
    created: str

    def shown(self) -> Device:
        """All of it but the key."""
        return {"id": self.id, "actor": self.actor, "name": self.name, "created": self.created}


class Devices:
    """The devices of the log, watched."""

    def __init__(self, bus: Bus) -> None:
        self.records = Records(bus, KV_DEVICES, DeviceRecord, "device")

    async def register(self, actor: str, name: str, key: str) -> DeviceRecord:
        """Raises TrunklineError `bad_params` for a key that is none."""
        try:
            raw = base64.b64decode(key, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) != KEY_BYTES:
            raise TrunklineError("bad_params", f"a device's key is base64 of {KEY_BYTES} random bytes", field="key")
        record = DeviceRecord(id=f"dev_{uuid7_hex()}", actor=actor, name=check_name(name), key=key, created=timestamp())
        await self.records.put(record.id, record)
        return record

    def seen_by(self, principal: Principal) -> list[DeviceRecord]:
        """An owner sees all devices, anyone else their own."""
        every = sorted(self.records.known.values(), key=lambda device: device.created)
        return [device for device in every if principal.may("owner") or device.actor == principal.actor]

    def get(self, principal: Principal, id: str) -> DeviceRecord:
        """Raises TrunklineError `bad_params` for a device that does not exist, or is someone else's."""
        found = next((device for device in self.seen_by(principal) if device.id == id), None)
        if found is None:
            raise TrunklineError("bad_params", f"there is no device {id!r}; `device.list` names them", field="id")
        return found

    async def rename(self, principal: Principal, id: str, name: str) -> DeviceRecord:
        """Raises like `get`."""
        record = replace(self.get(principal, id), name=check_name(name))
        await self.records.put(record.id, record)
        return record


def check_name(name: str) -> str:
    """A name as it is kept. Raises TrunklineError `bad_params`."""
    plain = " ".join(name.split())
    if not 0 < len(plain) <= MAX_NAME or not plain.isprintable():
        raise TrunklineError("bad_params", f"a name has 1 to {MAX_NAME} printable characters", field="name")
    return plain
