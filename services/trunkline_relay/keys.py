"""The host's keys, in `<home>/keys/host.json`: a file for its owner's eyes alone, replaced in one step."""

import base64
import os
from pathlib import Path
from typing import Annotated, Final, Self

import msgspec
from msgspec.structs import replace

from trunkline_seal.keys import Identity, Route
from trunkline_wire import TrunklineError, timestamp
from trunkline_wire.secret import Discreet, Secret

PRIVATE: Final = 0o077
"""What others must not have of a file with keys."""


class HostIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """An identity of the host, since when, and the devices that may still come by it; the newest is for all.

    `number` rises from one to the next: devices keep to the highest that they were told, whichever connection tells them first.
    """

    keys: Identity
    number: int
    created: str
    devices: frozenset[str] = frozenset()


class HostKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`identities` are newest first. `paired` are the devices known when this was written: one that is missing later was revoked."""

    route: Route
    identities: tuple[HostIdentity, ...]
    paired: frozenset[str] = frozenset()

    @classmethod
    def new(cls) -> Self:
        return cls(route=Route.new(), identities=(_made(1),))

    @property
    def newest(self) -> Identity:
        return self.identities[0].keys

    def all(self) -> list[Identity]:
        """Those that a device may still know."""
        return [one.keys for one in self.identities]

    def told(self, identity: bytes) -> dict[str, str | int]:
        """What a device is told of an identity."""
        number = next((one.number for one in self.identities if one.keys.public == identity), 0)
        return {"identity": _text(identity), "number": number}

    def may_use(self, device: str, identity: bytes) -> bool:
        """Whether a device may come by this identity: the newest, or one that is kept for it."""
        return identity == self.newest.public or any(
            one.keys.public == identity and device in one.devices for one in self.identities[1:]
        )

    def came(self, device: str, identity: bytes) -> Self:
        """After a device has come by an identity: it needs those no more that are older."""
        at = next((n for n, one in enumerate(self.identities) if one.keys.public == identity), len(self.identities))
        kept = self.identities[: at + 1]
        older = (replace(one, devices=one.devices - {device}) for one in self.identities[at + 1 :])
        return replace(self, identities=(*kept, *(one for one in older if one.devices)))

    def joined(self, device: str) -> Self:
        """With a device that has just been paired, and so knows the newest identity."""
        return replace(self, paired=self.paired | {device})

    def seen(self, devices: frozenset[str]) -> Self:
        """As of these devices being all that there are. Where one is missing there is a new identity."""
        if self.paired <= devices:
            return replace(self, paired=devices)
        first, *others = self.identities
        kept = [replace(first, devices=self.paired & devices)]
        kept += [replace(one, devices=one.devices & devices) for one in others]
        left = tuple(one for one in kept if one.devices)
        return replace(self, identities=(_made(first.number + 1), *left), paired=devices)


class _Identity(Discreet, frozen=True, kw_only=True):
    secret: Secret
    created: str
    devices: list[str] = []
    number: int = 0
    """0 in a file of a version that did not count: by its place then."""


class _File(Discreet, frozen=True, kw_only=True):
    route: Secret
    """The seed of its route key."""
    identities: Annotated[list[_Identity], msgspec.Meta(min_length=1)]
    paired: list[str] = []


def path_of(home: Path) -> Path:
    return home / "keys" / "host.json"


def load(home: Path) -> HostKeys:
    """The keys of the host, made at the first start. Raises TrunklineError `bad_settings` for what others can read, or no keys."""
    path = path_of(home)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        made = HostKeys.new()
        save(home, made)
        return made
    except OSError as error:
        raise TrunklineError("bad_settings", f"{str(path)!r} can't be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        for place, status in ((path, os.fstat(descriptor)), (path.parent, path.parent.stat())):
            if status.st_mode & PRIVATE or status.st_uid != os.geteuid():
                raise TrunklineError(
                    "bad_settings",
                    f"{str(place)!r} holds the host's keys, and others can get at it: if nobody has, "
                    f"`chmod {'700' if place == path.parent else '600'} {place}`; else delete {str(path)!r} and pair all devices again",
                )
        raw = file.read()
    try:
        stored = msgspec.json.decode(raw, type=_File)
        return HostKeys(
            route=Route.of(base64.b64decode(stored.route, validate=True)),
            identities=tuple(
                HostIdentity(
                    keys=Identity.of(base64.b64decode(one.secret, validate=True)),
                    number=one.number or len(stored.identities) - at,
                    created=one.created,
                    devices=frozenset(one.devices),
                )
                for at, one in enumerate(stored.identities)
            ),
            paired=frozenset(stored.paired),
        )
    except (msgspec.MsgspecError, ValueError):
        # What the error says has pieces of the file in it.
        raise _damaged(path) from None


def save(home: Path, keys: HostKeys) -> None:
    """Replace the file; a reader sees the old or the new. Raises TrunklineError `bad_settings` where the disk refuses."""
    path = path_of(home)
    stored = _File(
        route=_text(keys.route.seed),
        identities=[
            _Identity(
                secret=_text(one.keys.secret), created=one.created, devices=sorted(one.devices), number=one.number
            )
            for one in keys.identities
        ],
        paired=sorted(keys.paired),
    )
    beside = path.with_name(f".host.json.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside.unlink(missing_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(stored))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _synced(path.parent)
    except OSError as error:
        raise TrunklineError("bad_settings", f"{str(path)!r} can't be written: {error.strerror}") from error


def _made(number: int) -> HostIdentity:
    return HostIdentity(keys=Identity.new(), number=number, created=timestamp())


def _synced(directory: Path) -> None:
    """Devices are told of an identity once it is here for good: after a power cut the former file would lock them out."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode()


def _damaged(path: Path) -> TrunklineError:
    return TrunklineError(
        "bad_settings",
        f"{str(path)!r} does not hold a host's keys: restore it from a backup, or delete it and pair all devices again",
    )
