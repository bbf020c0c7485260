"""An adapter's manifest: what is known about an agent without starting it, as data in `manifest.toml`."""

import tomllib
from importlib import resources
from typing import Final, Literal, get_args

import msgspec

from trunkline_wire import TrunklineError

Way = Literal["native", "acp", "headless", "terminal"]
"""How an agent is spoken with."""

WAYS: Final[tuple[Way, ...]] = get_args(Way)
"""The best first, for an agent that can be run in several ways."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`manifest.toml` of an adapter's package.

    `program` is the name looked up on PATH (the variable `TRUNKLINE_PROGRAM_<NAME>` of the worker overrides it).
    """

    name: str
    title: str
    protocol: str
    """What is spoken with the agent, in words: `stream-json over stdio`."""
    program: str = ""
    binaries: tuple[str, ...] = ()
    """Where an npm package has the program itself, below `node_modules`: patterns of paths, with `{platform}` as `linux-x64`."""
    way: Way = "native"
    install: str = ""
    """What to do where the program is missing; the end of an `agent_not_found` message."""
    login: str = ""
    """The command that signs in."""
    signs: tuple[str, ...] = ()
    """What shows that somebody signed in: variables as `$NAME`, files as `~/path` or `$NAME/path`. Never read."""
    tested: tuple[str, ...] = ()
    """The versions that it was run and recorded with."""
    variables: tuple[str, ...] = ()
    """Names of environment variables that the agent gets from the worker's; a `*` at the end takes every name that starts so."""
    emulated: tuple[str, ...] = ()
    """Verbs that the adapter emulates with other means of the agent."""
    lossless: tuple[str, ...] = ()
    """Event types that keep all that the native message said: `keep_native = "lossy"` drops the native message there."""


def load_manifest(package: str) -> Manifest:
    """The manifest of an adapter's package. Raises TrunklineError `bad_settings` when it does not fit."""
    raw = resources.files(package).joinpath("manifest.toml").read_bytes()
    try:
        return msgspec.convert(tomllib.loads(raw.decode()), Manifest)
    except (msgspec.ValidationError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TrunklineError("bad_settings", f"manifest.toml of {package!r} is not a manifest: {error}") from error
