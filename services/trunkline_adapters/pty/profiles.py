"""What is known of each program's screen: one TOML file in `profiles/`, and no code.

The core asks a profile, never what the program is. Files in the directory that `TRUNKLINE_PTY_PROFILES` names come on top.
Patterns are searched in the screen's text: lines without blanks at their ends, no empty lines at the end, `^` and `$` at each.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from trunkline_agentkit.profiles import AgentProfile, Profiles
from trunkline_wire.blocks import ToolKind
from trunkline_wire.session import Capabilities

SHELL: Final = "shell"
"""The profile of whatever there is none of."""

Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to answer a dialog: `keys` are typed one after the other; `{name}` in them is a group of `match`."""

    id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always", "other"]
    keys: tuple[str, ...]
    match: str = ""
    """A pattern; the answer is offered only where the dialog shows it."""


class Dialog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question of the program's to its user. The group `title` of its pattern is what it asks, `about` the thing it is about."""

    name: str
    pattern: str
    answers: tuple[Answer, ...]
    kind: ToolKind = "other"


class Said(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which lines of a log hold a text of somebody's. Names of fields are told as `a.b.c`."""

    where: dict[str, str]
    """The values by which they are known."""
    text: str
    """The field with the text, or with a list of objects that have a `text`."""
    id: str = ""
    """The field with a message's name, where lines may tell the same one again."""


class Log(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the program itself writes down, as lines of JSON."""

    files: tuple[str, ...]
    """Patterns of paths, as `~/…` or `$NAME/…`."""
    user: Said
    agent: Said


class Profile(AgentProfile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a program is started, and what its screen looks like."""

    model: tuple[str, ...] = ()
    """Arguments that choose `{model}`."""
    prompt: str
    """It waits for its user: what the screen shows then."""
    prompt_s: Seconds = 0.5
    """Seconds that `prompt` has to stand."""
    busy: str = ""
    """It works: what the screen shows then, whatever else it shows. Without it only the prompt's absence tells."""
    busy_title: str = ""
    """Likewise: what the terminal's title shows then."""
    unseen_s: Seconds = 5.0
    """Seconds in which a program whose screen tells when it works may begin to."""
    silent_s: Seconds = 60.0
    """Seconds of silence, with neither of them on the screen, after which it counts as waiting."""
    submit: str = "\r"
    submit_s: Annotated[float, msgspec.Meta(ge=0, le=5)] = 0.05
    """Seconds between a prompt's text and `submit`, and between keys: some take what comes at once for one thing."""
    interrupt: str = "\x03"
    interrupts: Annotated[int, msgspec.Meta(ge=1, le=3)] = 1
    """How often that key has to be pressed, `submit_s` apart."""
    leave: str = ""
    """What is typed to have it end."""
    dialogs: tuple[Dialog, ...] = ()
    log: Log | None = None
    noise: tuple[str, ...] = ()
    """Lines that are no part of an answer."""
    failed: str = ""
    """In what a turn has printed: it has failed."""
    signed_out: str = ""
    """Likewise: it wants a login."""

    @property
    def capabilities(self) -> Capabilities:
        heuristic = (
            ("turns", "messages", "interrupt", "permissions") if self.dialogs else ("turns", "messages", "interrupt")
        )
        return Capabilities(
            interrupt=True,
            permissions=bool(self.dialogs),
            terminal=True,
            heuristic=heuristic,
            options=("model", "native") if self.model else ("native",),
        )

    @property
    def tells_work(self) -> bool:
        """Whether it shows that it works."""
        return bool(self.busy or self.busy_title)

    @property
    def patterns(self) -> list[str]:
        asked = [
            pattern for one in self.dialogs for pattern in (one.pattern, *(answer.match for answer in one.answers))
        ]
        return [self.prompt, self.busy, self.busy_title, self.failed, self.signed_out, *self.noise, *asked]


def _check(profile: Profile) -> None:
    for pattern in profile.patterns:
        re.compile(pattern, re.MULTILINE)
    if not profile.command:
        raise ValueError("it needs a `command`")


PROFILES: Final = Profiles(Profile, "trunkline_adapters.pty", "TRUNKLINE_PTY_PROFILES", check=_check)


def profile_of(command: list[str], source: Mapping[str, str] | None = None) -> Profile:
    """The profile of the program that a command starts; that of shells for one that is not known."""
    program = Path(command[0]).name if command else ""
    known = PROFILES.all(source)
    return next((one for one in known.values() if one.command[0] == program), known[SHELL])
