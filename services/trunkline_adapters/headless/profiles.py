"""What is known of each agent: one TOML file in `profiles/`, and no code.

The core asks a profile, never who the agent is. Files in the directory that `TRUNKLINE_HEADLESS_PROFILES` names come on top.
"""

import functools
import os
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final, Literal

import msgspec

from trunkline_adapters.headless.dialects import DIALECTS
from trunkline_wire import TrunklineError
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.session import Capabilities

DIRECTORY_VARIABLE: Final = "TRUNKLINE_HEADLESS_PROFILES"


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an agent is started for one turn, and what it prints."""

    title: str = "agent"
    tested: str = ""
    """The version that it was run and recorded with; empty: it was never run, and is as its documentation says."""
    dialect: str | None = None
    command: tuple[str, ...] = ()
    """The program and the arguments of every run."""
    prompt: Literal["stdin", "argument"] = "stdin"
    """How it takes the prompt; an argument is the last one, is visible to everyone on the machine and holds at most 128 KiB."""
    resume: tuple[str, ...] = ()
    """Arguments right behind the program that take up `{session}`; without them each prompt begins anew."""
    model: tuple[str, ...] = ()
    """Arguments that choose `{model}`."""
    modes: dict[str, tuple[str, ...]] = {}
    """Arguments by mode: how much it may do without asking, for it can't ask."""
    streaming: bool = True
    """Whether texts come in pieces."""
    cost: bool = False
    """Whether it tells what a turn costs."""
    ends: Literal["message", "exit"] = "message"
    """What ends a turn: a message, or the program's own end with exit code 0 behind an answer."""
    install: str = ""
    """What to do where the program is missing."""
    login: str = ""
    """What to do where the agent wants a login: a command to run."""
    signs: tuple[str, ...] = ()
    """What shows that somebody signed in: variables as `$NAME`, files as `~/path` or `$NAME/path`."""
    variables: tuple[str, ...] = ()
    """Names of environment variables that the agent gets from the worker's; a `*` at the end takes every name that starts so."""
    environment: dict[str, str] = {}
    """Variables that the agent always gets, unless the session's options say otherwise."""
    signed_out: str | None = None
    """A pattern in its error, or at the end of its error output: it wants a login."""
    lost: str | None = None
    """Likewise: it does not know the session that it was to take up."""
    missed: str | None = None
    """Likewise: it did not see the prompt that was on its standard input, and has done nothing."""
    stall_s: float = 600.0
    """Seconds without a word, while no tool runs, after which a turn has failed."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            streaming=self.streaming,
            interrupt=True,
            resume=bool(self.resume),
            model_switching=bool(self.model),
            mode_switching=bool(self.modes),
            cost_tracking=self.cost,
            options=tuple(
                name
                for name, has in (
                    ("model", self.model),
                    ("mode", self.modes),
                    ("resume_native", self.resume),
                    ("native", True),
                )
                if has
            ),
        )

    def failure(self, said: str) -> ErrorInfo:
        """What an error of the agent's, or the end of its error output, means."""
        if self.signed_out is not None and re.search(self.signed_out, said):
            how = f"run `{self.login}` as the worker's user" if self.login else "sign in as the worker's user"
            return ErrorInfo(code="agent_auth", message=f"{self.title} wants a login: {how}, then try again ({said})")
        if self.has_lost(said):
            return ErrorInfo(
                code="history_lost",
                message=f"{self.title} does not know the session any more: the next prompt begins a new one ({said})",
            )
        return ErrorInfo(code="agent_failed", message=said)

    def has_missed(self, said: str) -> bool:
        return self.missed is not None and re.search(self.missed, said) is not None

    def has_lost(self, said: str) -> bool:
        return self.lost is not None and re.search(self.lost, said) is not None


NO_PROFILE: Final = Profile()


def profile(name: str | None, source: Mapping[str, str] | None = None) -> Profile:
    """Raises TrunklineError `bad_params` for a name that there is no profile of, listing those that there are."""
    known = profiles((os.environ if source is None else source).get(DIRECTORY_VARIABLE))
    if name is None or name not in known:
        asked = (
            "which headless agent? name one with `--agent`" if name is None else f"there is no headless agent {name!r}"
        )
        raise TrunklineError("bad_params", f"{asked}; there are: {', '.join(sorted(known))}")
    return known[name]


@functools.cache
def profiles(directory: str | None = None) -> Mapping[str, Profile]:
    """All profiles by name. Raises TrunklineError `bad_settings` naming the file that is none."""
    found = {
        file.name.removesuffix(".toml"): _read(file.name, file.read_text())
        for file in resources.files("trunkline_adapters.headless").joinpath("profiles").iterdir()
        if file.name.endswith(".toml")
    }
    if directory is not None:
        found |= {path.stem: _read(str(path), path.read_text()) for path in sorted(Path(directory).glob("*.toml"))}
    return found


def _read(name: str, content: str) -> Profile:
    try:
        found = msgspec.convert(tomllib.loads(content), Profile)
        for pattern in (found.signed_out, found.lost, found.missed):
            re.compile(pattern or "")
    except (msgspec.ValidationError, tomllib.TOMLDecodeError, re.error) as error:
        raise TrunklineError("bad_settings", f"{name!r} is not a profile of a headless agent: {error}") from error
    if found.dialect not in DIALECTS or not found.command:
        raise TrunklineError(
            "bad_settings",
            f"{name!r} is not a profile of a headless agent: it needs a `command` and a `dialect` ({', '.join(sorted(DIALECTS))})",
        )
    return found
