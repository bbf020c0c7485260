"""Profiles: what is known of the agents that one adapter runs, a TOML file each in its package's `profiles/`, and no code."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from trunkline_agentkit.agents import Agent, signed_in
from trunkline_agentkit.manifest import Manifest
from trunkline_agentkit.programs import find_program
from trunkline_agentkit.protocol import Installed
from trunkline_wire import ErrorInfo, TrunklineError


class AgentProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the profiles of all adapters have in common."""

    title: str = "agent"
    command: tuple[str, ...] = ()
    """The program, and the arguments that it always gets."""
    tested: tuple[str, ...] = ()
    """The versions that it was run and recorded with."""
    install: str = ""
    """What to do where the program is missing."""
    login: str = ""
    """The command to run where the agent wants a login."""
    signs: tuple[str, ...] = ()
    """What shows that somebody signed in: variables as `$NAME`, files as `~/path` or `$NAME/path`."""
    variables: tuple[str, ...] = ()
    """Names of environment variables that the agent gets from the worker's; a `*` at the end takes every name that starts so."""
    environment: dict[str, str] = {}
    """Variables that the agent always gets, unless the session's options say otherwise."""


P = TypeVar("P", bound=AgentProfile)


class Profiles(Generic[P]):
    """The profiles in `package`; files in the directory that `variable` names come on top.

    `check` raises ValueError, or `re.error`, for a profile that is of no use.
    """

    def __init__(
        self, kind: type[P], package: str, variable: str, *, check: Callable[[P], object] = lambda _: None
    ) -> None:
        self._kind = kind
        self._package = package
        self._variable = variable
        self._check = check
        self._read: dict[str | None, Mapping[str, P]] = {}

    @property
    def shipped(self) -> Mapping[str, P]:
        """Those of the package, by name."""
        return self.all({})

    def all(self, source: Mapping[str, str] | None = None) -> Mapping[str, P]:
        """All profiles by name; each directory is read once. Raises TrunklineError `bad_settings` naming the file that is none."""
        directory = (os.environ if source is None else source).get(self._variable)
        if directory not in self._read:
            self._read[directory] = self._read_all(directory)
        return self._read[directory]

    def get(self, name: str | None, source: Mapping[str, str] | None = None) -> P:
        """Raises TrunklineError `bad_params` without a name, or for one that there is no profile of, listing those there are."""
        known = self.all(source)
        if name is None or name not in known:
            why = "which agent? name one with `--agent`" if name is None else f"there is no agent {name!r} here"
            raise TrunklineError("bad_params", f"{why}; there are: {', '.join(sorted(known))}")
        return known[name]

    def agents(self, manifest: Manifest, source: Mapping[str, str]) -> list[Agent]:
        """One a profile, by name, installed or not."""
        found: list[Agent] = []
        for name, profile in sorted(self.all(source).items()):
            path, error = None, None
            try:
                path = profiled_program(manifest, name, profile, source)
            except TrunklineError as missing:
                error = ErrorInfo.of(missing)
            found.append(
                Agent(
                    name=name,
                    title=profile.title,
                    profile=name,
                    path=path,
                    tested=profile.tested,
                    error=error,
                    login=profile.login,
                    signed_in=signed_in(profile.signs, source),
                )
            )
        return found

    def probe(self, manifest: Manifest, source: Mapping[str, str]) -> Installed:
        """The first that is installed. Raises TrunklineError `agent_not_found`."""
        agents = self.agents(manifest, source)
        for agent in agents:
            if agent.path is not None:
                return Installed(path=agent.path)
        raise TrunklineError(
            "agent_not_found",
            f"{manifest.title}: none of the known agents is installed ({', '.join(agent.name for agent in agents)})",
            adapter=manifest.name,
        )

    def _read_all(self, directory: str | None) -> Mapping[str, P]:
        files = resources.files(self._package).joinpath("profiles").iterdir()
        found = {
            file.name.removesuffix(".toml"): self._parse(file.name, file.read_text())
            for file in files
            if file.name.endswith(".toml")
        }
        if directory is not None:
            own = sorted(Path(directory).glob("*.toml"))
            found |= {path.stem: self._parse(str(path), path.read_text()) for path in own}
        return found

    def _parse(self, name: str, content: str) -> P:
        try:
            profile = msgspec.convert(tomllib.loads(content), self._kind)
            self._check(profile)
        except (ValueError, re.error) as error:
            raise TrunklineError("bad_settings", f"{name!r} is not a profile of an agent: {error}") from error
        return profile


def profiled_program(manifest: Manifest, name: str | None, profile: AgentProfile, source: Mapping[str, str]) -> str:
    """The path of a profile's program; `TRUNKLINE_PROGRAM_<ADAPTER>_<AGENT>` names another, and of the agent that has the
    adapter's own name `TRUNKLINE_PROGRAM_<ADAPTER>`.

    Raises TrunklineError `agent_not_found`, saying how to install it.
    """
    own = name == manifest.name
    wanted = msgspec.structs.replace(
        manifest,
        name=manifest.name if own else f"{manifest.name}_{name or 'command'}",
        title=profile.title,
        program=profile.command[0],
        binaries=(),
        install=profile.install,
    )
    return find_program(wanted, source)
