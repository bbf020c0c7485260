"""What is known of each program's screen: one TOML file in `profiles/`, and no code.

The core asks a profile, never what the program is. Files in the directory that `TRUNKLINE_PTY_PROFILES` names come on top.
Patterns are searched in the screen's text: lines without blanks at their ends, no empty lines at the end, `^` and `$` at each.
"""

import functools
import os
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from trunkline_wire import TrunklineError
from trunkline_wire.blocks import ToolKind
from trunkline_wire.session import Capabilities

DIRECTORY_VARIABLE: Final = "TRUNKLINE_PTY_PROFILES"
GENERIC: Final = "generic"
"""The profile of a program that there is none of."""

Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to answer a dialog: `keys` are what is typed; `{name}` in them is a group of `match`."""

    id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always", "other"]
    keys: str
    match: str = ""
    """A pattern; the answer is offered only where the dialog shows it."""


class Dialog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question of the program's to its user. The group `title` of its pattern is what it asks, `about` the thing it is about."""

    name: str
    pattern: str
    answers: tuple[Answer, ...]
    kind: ToolKind = "other"


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a program is started, and what its screen looks like."""

    title: str = "program"
    tested: str = ""
    """The version whose screens it was made from; empty: it was never run, and is as its documentation says."""
    command: tuple[str, ...] = ()
    """The program and its arguments."""
    model: tuple[str, ...] = ()
    """Arguments that choose `{model}`."""
    install: str = ""
    login: str = ""
    signs: tuple[str, ...] = ()
    """What shows that somebody signed in: variables as `$NAME`, files as `~/path` or `$NAME/path`."""
    variables: tuple[str, ...] = ()
    """Names of environment variables that it gets from the worker's; a `*` at the end takes every name that starts so."""
    environment: dict[str, str] = {}
    """Variables that it always gets, unless the session's options say otherwise."""
    prompt: str
    """It waits for its user: what the screen shows then."""
    prompt_s: Seconds = 0.5
    """Seconds that `prompt` has to stand."""
    busy: str = ""
    """It works: what the screen shows then, whatever else it shows. Without it only the prompt's absence tells."""
    silent_s: Seconds = 60.0
    """Seconds of silence, with neither of them on the screen, after which it counts as waiting."""
    submit: str = "\r"
    submit_s: Annotated[float, msgspec.Meta(ge=0, le=5)] = 0.05
    """Seconds between a prompt's text and `submit`: some take what comes at once for a part of what was pasted."""
    interrupt: str = "\x03"
    leave: str = ""
    """What is typed to have it end."""
    dialogs: tuple[Dialog, ...] = ()
    noise: tuple[str, ...] = ()
    """Lines that are no part of an answer."""
    failed: str = ""
    """In what a turn has printed: it has failed."""
    signed_out: str = ""
    """Likewise: it wants a login."""

    @property
    def capabilities(self) -> Capabilities:
        heuristic = ("turns", "interrupt", "permissions") if self.dialogs else ("turns", "interrupt")
        return Capabilities(
            interrupt=True,
            permissions=bool(self.dialogs),
            terminal=False,
            heuristic=heuristic,
            options=("model", "native") if self.model else ("native",),
        )

    @property
    def patterns(self) -> list[str]:
        asked = [
            pattern for one in self.dialogs for pattern in (one.pattern, *(answer.match for answer in one.answers))
        ]
        return [self.prompt, self.busy, self.failed, self.signed_out, *self.noise, *asked]


def profile(name: str | None, source: Mapping[str, str] | None = None) -> Profile:
    """None is the generic one. Raises TrunklineError `bad_params` for a name that there is no profile of, listing those that there are."""
    known = profiles((os.environ if source is None else source).get(DIRECTORY_VARIABLE))
    if (name or GENERIC) not in known:
        raise TrunklineError(
            "bad_params", f"there is no profile {name!r} of a terminal program; there are: {', '.join(sorted(known))}"
        )
    return known[name or GENERIC]


def profile_of(command: list[str], source: Mapping[str, str] | None = None) -> Profile:
    """The profile of the program that a command starts, the generic one where there is none."""
    program = Path(command[0]).name if command else ""
    known = profiles((os.environ if source is None else source).get(DIRECTORY_VARIABLE))
    return next((one for one in known.values() if one.command[:1] == (program,)), known[GENERIC])


@functools.cache
def profiles(directory: str | None = None) -> Mapping[str, Profile]:
    """All profiles by name. Raises TrunklineError `bad_settings` naming the file that is none."""
    found = {
        file.name.removesuffix(".toml"): _read(file.name, file.read_text())
        for file in resources.files("trunkline_adapters.pty").joinpath("profiles").iterdir()
        if file.name.endswith(".toml")
    }
    if directory is not None:
        found |= {path.stem: _read(str(path), path.read_text()) for path in sorted(Path(directory).glob("*.toml"))}
    return found


def _read(name: str, content: str) -> Profile:
    try:
        found = msgspec.convert(tomllib.loads(content), Profile)
        for pattern in found.patterns:
            re.compile(pattern, re.MULTILINE)
    except (msgspec.ValidationError, tomllib.TOMLDecodeError, re.error) as error:
        raise TrunklineError("bad_settings", f"{name!r} is not a profile of a terminal program: {error}") from error
    return found
