"""Hosts that this device is paired with: `<home>/hosts/<name>.json`, keys and all, for its owner alone."""

import contextlib
import fcntl
import itertools
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Final

import msgspec

from trunkline_client import Address, Paired, Sealed
from trunkline_wire import TrunklineError

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check(home: Path, name: str, route: bytes) -> None:
    """Raises TrunklineError `bad_params` for a name that is none, or another host's than that of this route key."""
    if _path(home, name).exists() and load(home, name).route != route:
        raise TrunklineError("bad_params", f"another host is called {name!r} here: choose a name with --as", field="as")


def save(home: Path, name: str | None, paired: Paired) -> str:
    """The name under which it is kept: without one that which the host has for itself, or the next that is free."""
    if name is None:
        name = _free(home, paired)
    path = _path(home, name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(home):
        check(home, name, paired.route)
        _write(path, paired)
    return name


def load(home: Path, name: str) -> Paired:
    """Raises TrunklineError `unpaired`."""
    path = _path(home, name)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Paired)
    except FileNotFoundError:
        known = ", ".join(names(home)) or "none yet: `trunkline pair join` makes one known"
        raise TrunklineError("unpaired", f"no host {name!r} is paired with this device; there are: {known}") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise TrunklineError(
            "unpaired", f"{str(path)!r} can't be read ({type(error).__name__}): pair the host again"
        ) from None


def names(home: Path) -> list[str]:
    return sorted(path.stem for path in (home / "hosts").glob("*.json") if NAME.fullmatch(path.stem))


def forget(home: Path, name: str) -> Paired:
    """Deletes the keys; what the host knows is none of this. Raises TrunklineError `unpaired`."""
    paired = load(home, name)
    with _locked(home):
        _path(home, name).unlink(missing_ok=True)
    return paired


def address(home: Path, name: str) -> Address:
    """Raises TrunklineError `unpaired`."""
    paired = load(home, name)

    def keep(newer: Paired) -> None:
        with contextlib.suppress(TrunklineError, FileNotFoundError), _locked(home):
            now = load(home, name)
            if (now.route, now.device) == (newer.route, newer.device):
                _write(_path(home, name), now.learned(newer.identity, newer.number))

    def known() -> Paired:
        now = load(home, name)
        if now.route != paired.route:
            raise TrunklineError("unpaired", f"{name!r} is another host by now")
        return now

    return Address(url=paired.relay, sealed=Sealed(paired, keep, known))


@contextlib.contextmanager
def _locked(home: Path) -> Generator[None]:
    """Alone among the programs of this device, for as long as a file is read and written: what one has learned no other undoes."""
    descriptor = os.open(home / "hosts", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _free(home: Path, paired: Paired) -> str:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", paired.host).strip("-._")[:56] or "host"
    known = {name: load(home, name).route for name in names(home)}
    tries = (plain if number == 1 else f"{plain}-{number}" for number in itertools.count(1))
    return next(name for name in tries if known.get(name, paired.route) == paired.route)


def _path(home: Path, name: str) -> Path:
    if NAME.fullmatch(name) is None:
        raise TrunklineError(
            "bad_params", f"{name!r} is no name of a host: letters, digits, `.`, `_`, `-`", field="host"
        )
    return home / "hosts" / f"{name}.json"


def _write(path: Path, paired: Paired) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(paired) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
