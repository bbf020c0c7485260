"""What is known of OpenCode and of what is made of it: one TOML file each in `profiles/`, and no code.

Files in the directory that `TRUNKLINE_OPENCODE_PROFILES` names come on top.
"""

import functools
import os
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from trunkline_wire import TrunklineError

DIRECTORY_VARIABLE: Final = "TRUNKLINE_OPENCODE_PROFILES"
DEFAULT: Final = "opencode"


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a program is started, and where it departs from OpenCode."""

    title: str
    program: str
    install: str = ""
    """What to do where the program is missing."""
    login: str = ""
    """The command that signs in at a provider of models."""
    signs: tuple[str, ...] = ()
    """What shows that somebody signed in: variables as `$NAME`, files as `~/path` or `$NAME/path`."""
    variables: tuple[str, ...] = ()
    """Names of environment variables that it gets from the worker's; a `*` at the end takes every name that starts so."""
    environment: dict[str, str] = {}
    """Variables that it always gets, unless the session's options say otherwise."""
    user: str
    """The user that its server wants to be told beside the password."""
    password_variable: str
    user_variable: str
    """Where the server takes password and user from."""
    mode: str
    """The agent that a session begins with where nothing else is said."""
    silent: tuple[str, ...] = ()
    """Events of its own without a translation; a `*` at the end takes every name that starts so."""


def profile(name: str | None, source: Mapping[str, str] | None = None) -> Profile:
    """Raises TrunklineError `bad_params` for a name that there is no profile of, listing those that there are."""
    known = profiles((os.environ if source is None else source).get(DIRECTORY_VARIABLE))
    if (name or DEFAULT) not in known:
        raise TrunklineError("bad_params", f"there is no agent {name!r} here; there are: {', '.join(sorted(known))}")
    return known[name or DEFAULT]


@functools.cache
def profiles(directory: str | None = None) -> Mapping[str, Profile]:
    """All profiles by name. Raises TrunklineError `bad_settings` naming the file that is none."""
    found = {
        file.name.removesuffix(".toml"): _read(file.name, file.read_text())
        for file in resources.files("trunkline_adapters.opencode").joinpath("profiles").iterdir()
        if file.name.endswith(".toml")
    }
    if directory is not None:
        found |= {path.stem: _read(str(path), path.read_text()) for path in sorted(Path(directory).glob("*.toml"))}
    return found


def is_silent(event: str, *more: Profile) -> bool:
    """Whether an event is one of those that a profile calls silent: one of ours, or one of `more`."""
    return any(
        event.startswith(name[:-1]) if name.endswith("*") else event == name
        for one in (*profiles().values(), *more)
        for name in one.silent
    )


def _read(name: str, content: str) -> Profile:
    try:
        return msgspec.convert(tomllib.loads(content), Profile)
    except (msgspec.ValidationError, tomllib.TOMLDecodeError) as error:
        raise TrunklineError("bad_settings", f"{name!r} is not a profile of this adapter: {error}") from error
