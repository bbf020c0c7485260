"""Looking for the agents' programs, by every adapter that is installed here."""

import asyncio
from typing import TYPE_CHECKING, Final

import click
import msgspec

if TYPE_CHECKING:
    from trunkline_agentkit.agents import Agent
    from trunkline_agentkit.protocol import BackendAdapter
    from trunkline_wire import TrunklineError

PROBE_S: Final = 20.0


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An agent and an adapter that runs it, or could."""

    adapter: "BackendAdapter"
    agent: "Agent"


async def survey() -> list[Found]:
    """All agents that the adapters know, by name and then the best way first. Whatever hinders one is its `error`.

    An adapter that can't even be loaded is named on the error output.
    """
    from trunkline_agentkit.manifest import WAYS
    from trunkline_agentkit.registry import load_all

    found = await asyncio.gather(*(_ask(adapter) for adapter in load_all(say_broken).values()))
    return sorted(
        (one for some in found for one in some), key=lambda one: (one.agent.name, WAYS.index(one.adapter.manifest.way))
    )


def say_broken(error: "TrunklineError") -> None:
    """For an adapter that can't be loaded."""
    click.echo(f"left out: {error}", err=True)


async def _ask(adapter: "BackendAdapter") -> list[Found]:
    from trunkline_agentkit.agents import Agent, agents_of
    from trunkline_wire import ErrorInfo

    try:
        async with asyncio.timeout(PROBE_S):
            agents = await agents_of(adapter)
    except TimeoutError:
        late = ErrorInfo(code="timeout", message=f"the program did not say its version within {PROBE_S:g} s")
        agents = [Agent(name=adapter.name, title=adapter.manifest.title, error=late)]
    return [Found(adapter=adapter, agent=agent) for agent in await asyncio.gather(*map(_with_version, agents))]


async def _with_version(agent: "Agent") -> "Agent":
    from trunkline_agentkit.programs import program_version

    if agent.path is None or agent.version is not None:
        return agent
    return msgspec.structs.replace(agent, version=await program_version(agent.path))
