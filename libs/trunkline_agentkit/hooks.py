"""Hooks: what an agent calls by itself when something happens in it. Trunkline takes note of them, and decides nothing.

An adapter whose agents have hooks says where their settings are, puts ours there, and reads what comes (`HasHooks`). They come over
HTTP on loopback, to the port in `<home>/hooks.json` and with the secret from there (`HookEndpoint`), which stands in a header.
"""

import contextlib
import os
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

import msgspec

from trunkline_agentkit.fields import Obj
from trunkline_wire import TrunklineError
from trunkline_wire.secret import Discreet, Secret

SESSION_HEADER: Final = "Trunkline-Session"
"""Holds the session of the agent that calls, where it is one of Trunkline's: agents have it in their environment."""

PATH: Final = "/hooks/{adapter}"
PREFERRED_PORT: Final = 30088
_PORTS: Final = 50
_SHORTEST: Final = 32


class HookEndpoint(Discreet, frozen=True, kw_only=True):
    """Where hooks are called, and what they have to know for it."""

    port: int
    secret: Secret

    def path(self, adapter: str) -> str:
        return PATH.format(adapter=adapter)

    def url(self, adapter: str) -> str:
        return f"http://127.0.0.1:{self.port}{self.path(adapter)}"


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One call. `id` is the same for the same call, however often it comes."""

    id: str
    event: str
    native_session: str
    input: Obj
    """What the agent said, whole."""
    once: bool = False
    """Nothing that happens later looks like it: the same again is always a repetition."""


@runtime_checkable
class HasHooks(Protocol):
    """An adapter whose agents have hooks."""

    def hook_settings(self) -> Path:
        """The settings of the user's in which they stand."""
        ...

    def with_hooks(self, settings: Obj, endpoint: HookEndpoint) -> Obj:
        """The settings with our hooks, and nothing else changed; what was there of ours is replaced. Raises TrunklineError `bad_settings`."""
        ...

    def without_hooks(self, settings: Obj) -> Obj:
        """The settings as if ours had never been there. Raises TrunklineError `bad_settings`."""
        ...

    def hooks_in(self, settings: Obj) -> list[str]:
        """The events that hooks of ours stand for in the settings."""
        ...

    def hook_hindrances(self, settings: Obj, endpoint: HookEndpoint) -> list[str]:
        """What in the settings keeps our hooks from being called, as sentences."""
        ...

    def read_hook(self, body: Obj) -> Hook | None:
        """None for what is no call of a hook."""
        ...


def endpoint_file(home: Path) -> Path:
    return home / "hooks.json"


def read_endpoint(home: Path) -> HookEndpoint | None:
    """None where no hooks were ever installed. Raises TrunklineError `bad_settings` for a damaged file."""
    path = endpoint_file(home)
    try:
        found = msgspec.json.decode(path.read_bytes(), type=HookEndpoint)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from error
    if not 0 < found.port < 65536 or len(found.secret) < _SHORTEST:
        raise _damaged(path, "it lacks a port or a secret")
    return found


def ensure_endpoint(home: Path) -> HookEndpoint:
    """The endpoint of this state directory, minted once with a port that is free at that moment. Raises TrunklineError `bad_settings`."""
    found = read_endpoint(home)
    if found is not None:
        return found
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = endpoint_file(home)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    content = msgspec.json.encode(HookEndpoint(port=_free_port(), secret=secrets.token_urlsafe(32)))
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)
    with contextlib.suppress(FileExistsError):  # the first of several wins
        os.link(beside, path)
    beside.unlink()
    minted = read_endpoint(home)
    assert minted is not None
    return minted


def _free_port() -> int:
    for port in range(PREFERRED_PORT, PREFERRED_PORT + _PORTS):
        with socket.socket() as attempt, contextlib.suppress(OSError):
            attempt.bind(("127.0.0.1", port))
            return port
    raise TrunklineError(
        "bad_settings", f"ports {PREFERRED_PORT} to {PREFERRED_PORT + _PORTS - 1} are all taken: free one for the hooks"
    )


def _damaged(path: Path, why: str) -> TrunklineError:
    return TrunklineError(
        "bad_settings", f"{str(path)!r} can't be read ({why}): delete it, and install the hooks anew", path=str(path)
    )


# The settings file itself


def read_settings(path: Path) -> Obj:
    """The settings in a file, {} where there is none. Raises TrunklineError `bad_settings` for what is no JSON object."""
    try:
        found = msgspec.json.decode(path.read_bytes() or b"{}")
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise TrunklineError("bad_settings", f"{str(path)!r} can't be read: {error}; nothing was changed") from error
    if not isinstance(found, dict):
        raise TrunklineError("bad_settings", f"{str(path)!r} holds no JSON object; nothing was changed")
    return found


def write_settings(path: Path, settings: Mapping[str, object]) -> None:
    """Replaces the file in one step. It holds a secret from now on, so that only its owner can read it.

    Where it is a link, what it leads to is replaced. Raises TrunklineError `bad_settings` if the disk refuses.
    """
    target = path.resolve()
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(settings), indent=2) + b"\n")
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise TrunklineError("bad_settings", f"{str(path)!r} can't be written: {error.strerror}") from error
