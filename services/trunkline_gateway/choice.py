"""Which adapter runs an agent: the best way that works on the host."""

from collections.abc import Iterable
from typing import Final

import msgspec

from trunkline_gateway.workers import InstalledAdapter, InstalledAgent
from trunkline_wire import TrunklineError

WAYS: Final = ("native", "acp", "headless", "terminal")
"""How an agent is spoken with, the best first."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What runs an agent: an adapter, and the profile it names it by. `notice` says why it is not the best way."""

    adapter: str
    profile: str | None = None
    notice: str | None = None


def ways(adapters: Iterable[InstalledAdapter], agent: str) -> list[tuple[InstalledAdapter, InstalledAgent]]:
    """The ways to run an agent, the best first, whether they work or not."""
    found = [(adapter, one) for adapter in adapters for one in adapter.agents if one.name == agent]
    return sorted(found, key=lambda way: WAYS.index(way[0].way) if way[0].way in WAYS else len(WAYS))


def choose(adapters: Iterable[InstalledAdapter], agent: str) -> Chosen:
    """The best way that works. Raises TrunklineError `agent_not_found`: unknown, or not installed in any way."""
    adapters = list(adapters)
    found = ways(adapters, agent)
    if not found:
        if any(adapter.name == agent for adapter in adapters):
            return Chosen(adapter=agent)
        known = sorted({one.name for adapter in adapters for one in adapter.agents if one.error is None})
        raise TrunklineError(
            "agent_not_found",
            f"no agent {agent!r} is known: installed here are {', '.join(known) or 'none'}; "
            "a program that speaks the Agent Client Protocol runs with adapter `acp` and its command",
            agent=agent,
        )
    missing: list[str] = []
    for adapter, one in found:
        if one.error is None:
            notice = "; ".join([*missing, f"it runs through the adapter {adapter.name!r} ({adapter.protocol})"])
            return Chosen(adapter=adapter.name, profile=one.profile, notice=notice if missing else None)
        missing.append(one.error.message)
    raise TrunklineError("agent_not_found", "; or ".join(missing), agent=agent)
