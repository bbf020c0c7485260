"""`worker.*`, `adapter.*` and `agent.*`: what can run agents, and where."""

from typing import Any

from trunkline_gateway.choice import ways
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Paged, method, page_of
from trunkline_gateway.workers import InstalledAdapter, InstalledAgent
from trunkline_wire.ids import check_token


@method("worker.list", "viewer", Paged, limited="itself")
async def workers(gateway: Gateway, _: Caller, params: Paged) -> dict[str, Any]:
    """The living workers, with the adapters of each."""
    return {**page_of("workers", gateway.workers.all(), params), "host": gateway.host}


class Agents(Paged, frozen=True, kw_only=True):
    host: str | None = None


@method("agent.list", "viewer", Agents, limited="itself")
async def agents(gateway: Gateway, _: Caller, params: Agents) -> dict[str, Any]:
    """The agents by the names that people call them, each with its ways on a host, the best first.

    The host that is told is `host`, or where a session goes that names none.
    """
    host = check_token(params.host) if params.host is not None else gateway.workers.place(gateway.host)
    adapters = gateway.workers.adapters(host)
    names = sorted({one.name for adapter in adapters for one in adapter.agents})
    told = page_of("agents", names, params)
    return told | {"agents": [_agent(name, ways(adapters, name)) for name in told["agents"]], "host": host}


def _agent(name: str, found: list[tuple[InstalledAdapter, InstalledAgent]]) -> dict[str, Any]:
    shown = [
        {
            "adapter": adapter.name,
            "way": adapter.way,
            "protocol": adapter.protocol,
            "profile": agent.profile,
            "path": agent.path,
            "version": agent.version,
            "error": agent.error,
            "login": agent.login,
            "signed_in": agent.signed_in,
            "capabilities": adapter.capabilities,
        }
        for adapter, agent in found
    ]
    return {"name": name, "title": found[0][1].title, "ways": shown}


@method("adapter.list", "viewer", Paged, limited="itself")
async def adapters(gateway: Gateway, _: Caller, params: Paged) -> dict[str, Any]:
    """The adapters, with the hosts that have each."""
    titles: dict[str, str | None] = {}
    found: dict[str, list[dict[str, Any]]] = {}
    for worker in gateway.workers.all():
        for adapter in worker.adapters:
            titles.setdefault(adapter.name, adapter.title)
            on_host = {"host": worker.host, "hostname": worker.hostname, "worker": worker.worker}
            on_host |= {"version": adapter.version, "path": adapter.path, "error": adapter.error}
            on_host |= {"protocol": adapter.protocol, "capabilities": adapter.capabilities}
            found.setdefault(adapter.name, []).append(on_host)
    shown = [{"name": name, "title": titles[name], "hosts": found[name]} for name in sorted(found)]
    return page_of("adapters", shown, params)
