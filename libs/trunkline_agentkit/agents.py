"""Which agents an adapter can run here, as far as it can be known without starting one."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from trunkline_agentkit.protocol import BackendAdapter
from trunkline_wire import ErrorInfo, TrunklineError


class Agent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent, as people call it.

    `tested` are the versions whose messages are recorded, none where that is not said. `profile` is what a session names it
    by where the adapter has several; `error` says why it can't run, `login` is the command that signs in. `signed_in`: something is there that it signs in with; whether that is valid only the agent knows.
    """

    name: str
    title: str
    profile: str | None = None
    path: str | None = None
    version: str | None = None
    tested: tuple[str, ...] = ()
    error: ErrorInfo | None = None
    login: str = ""
    signed_in: bool = False


@runtime_checkable
class ManyAgents(Protocol):
    """An adapter of several agents."""

    async def agents(self) -> list[Agent]:
        """All that it knows, installed or not."""
        ...


@runtime_checkable
class Described(Protocol):
    """An adapter whose agent describes its own protocol."""

    async def drift(self) -> list[str]:
        """What the installed program's protocol has that was not reviewed, and what it lacks: a line each.

        Raises TrunklineError `agent_not_found`, `agent_failed` where it describes nothing.
        """
        ...


async def agents_of(adapter: BackendAdapter, source: Mapping[str, str] | None = None) -> list[Agent]:
    """The agents of an adapter; one that is its own agent's alone is asked for its program."""
    if isinstance(adapter, ManyAgents):
        return await adapter.agents()
    manifest = adapter.manifest
    agent = Agent(
        name=adapter.name,
        title=manifest.title,
        tested=manifest.tested,
        login=manifest.login,
        signed_in=signed_in(manifest.signs, source),
    )
    try:
        installed = await adapter.probe()
    except TrunklineError as error:
        return [msgspec.structs.replace(agent, error=ErrorInfo.of(error))]
    return [msgspec.structs.replace(agent, path=installed.path, version=installed.version)]


def signed_in(signs: Iterable[str], source: Mapping[str, str] | None = None) -> bool:
    """Whether one of the signs is there: `$NAME` is a variable, `~/path` and `$NAME/path` are files. Nothing is read."""
    source = os.environ if source is None else source
    return any(_is_there(sign, source) for sign in signs)


def _is_there(sign: str, source: Mapping[str, str]) -> bool:
    root, _, path = sign.partition("/")
    if root == "~":
        return Path(source.get("HOME", "~"), path).expanduser().exists()
    value = source.get(root.removeprefix("$"), "")
    return bool(value) and (not path or Path(value, path).exists())
