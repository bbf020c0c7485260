"""The NATS users of extensions, kept beside those of the services: a key, and a file with the rights.

The rights are `events` (hear events and deltas as they come), `emit` (write `ext.<name>.*` events into histories) and the roles
`viewer`, `participant` and `approver` at the gateway. A broker that runs takes a change up within seconds.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from trunkline_bus.credentials import Grants, ensure_keys, extension_grants, extension_user, public_key
from trunkline_wire import TrunklineError
from trunkline_wire.ids import check_extension, is_extension

RIGHTS: Final = ("events", "emit", "viewer", "participant", "approver")


def add(directory: Path, name: str, rights: Iterable[str]) -> Path:
    """Let the extension `name` in with these rights and no others; returns its seed file. `directory` is the server's.

    Raises TrunklineError `bad_id`, `bad_params` for a right that there is not.
    """
    wanted = sorted(set(rights), key=RIGHTS.index) if set(rights) <= set(RIGHTS) else None
    if wanted is None:
        raise TrunklineError("bad_params", f"rights are {', '.join(RIGHTS)}", field="rights")
    user = extension_user(check_extension(name))
    seed = ensure_keys(directory / "keys", [user])[user]
    file = _file(directory, name)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    fresh = file.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(msgspec.json.encode(wanted))
    fresh.replace(file)
    return seed


def remove(directory: Path, name: str) -> bool:
    """Let it in no longer, and forget its key; whether it was there. Raises TrunklineError `bad_id`."""
    file = _file(directory, check_extension(name))
    known = file.exists()
    file.unlink(missing_ok=True)
    (directory / "keys" / f"{extension_user(name)}.nk").unlink(missing_ok=True)
    return known


def rights(directory: Path) -> dict[str, tuple[str, ...]]:
    """The extensions that are let in, with their rights. Raises TrunklineError `bad_settings`."""
    found: dict[str, tuple[str, ...]] = {}
    for file in sorted((directory / "extensions").glob("*.json")):
        if not is_extension(file.stem):
            continue
        try:
            given = msgspec.json.decode(file.read_bytes(), type=tuple[str, ...])
        except FileNotFoundError:
            continue
        except (OSError, msgspec.MsgspecError) as error:
            raise TrunklineError(
                "bad_settings", f"{str(file)!r} can't be read: {error}; add the extension anew"
            ) from error
        found[file.stem] = tuple(right for right in given if right in RIGHTS)
    return found


def read(directory: Path) -> dict[str, tuple[str, Grants]]:
    """What `credentials.server_config` needs: user -> (public key, grants). Raises TrunklineError `bad_settings`."""
    found: dict[str, tuple[str, Grants]] = {}
    for name, given in rights(directory).items():
        user = extension_user(name)
        seed = directory / "keys" / f"{user}.nk"
        if seed.exists():
            found[user] = (public_key(seed), extension_grants(name, given))
    return found


def _file(directory: Path, name: str) -> Path:
    return directory / "extensions" / f"{name}.json"
