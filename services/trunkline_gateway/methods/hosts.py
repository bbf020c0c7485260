"""`worker.*`, `adapter.*` and `agent.*`: what can run agents, and where."""

from typing import TypedDict

from trunkline_gateway.choice import ways
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Page, Paged, method, page_of
from trunkline_gateway.workers import InstalledAdapter, InstalledAgent, Worker
from trunkline_wire import ErrorInfo
from trunkline_wire.ids import check_token
from trunkline_wire.session import Capabilities


class WorkerPage(Page):
    """`host` is the gateway's own."""

    workers: list[Worker]
    host: str


@method("worker.list", "viewer", Paged, limited="itself")
async def workers(gateway: Gateway, _: Caller, params: Paged) -> WorkerPage:
    """The living workers, with the adapters of each."""
    found, page = page_of(gateway.workers.all(), params)
    return {"workers": found, "host": gateway.host, **page}


class AgentWay(TypedDict):
    """A way to run an agent: an adapter with the profile for it, or why it can't. `login` is how one signs in."""

    adapter: str
    way: str
    protocol: str | None
    profile: str | None
    path: str | None
    version: str | None
    error: ErrorInfo | None
    login: str
    signed_in: bool
    capabilities: Capabilities | None


class NamedAgent(TypedDict):
    name: str
    title: str | None
    ways: list[AgentWay]


class AgentPage(Page):
    agents: list[NamedAgent]
    host: str


class Agents(Paged, frozen=True, kw_only=True):
    host: str | None = None


@method("agent.list", "viewer", Agents, limited="itself")
async def agents(gateway: Gateway, _: Caller, params: Agents) -> AgentPage:
    """The agents by the names that people call them, each with its ways on a host, the best first.

    The host that is told is `host`, or where a session goes that names none.
    """
    host = check_token(params.host) if params.host is not None else gateway.workers.place(gateway.host)
    adapters = gateway.workers.adapters(host)
    names = sorted({one.name for adapter in adapters for one in adapter.agents})
    chosen, page = page_of(names, params)
    return {"agents": [_agent(name, ways(adapters, name)) for name in chosen], "host": host, **page}


def _agent(name: str, found: list[tuple[InstalledAdapter, InstalledAgent]]) -> NamedAgent:
    shown: list[AgentWay] = [
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


class AdapterThere(TypedDict):
    """An adapter on a worker's host; `error` says why it can't be used there."""

    host: str
    hostname: str | None
    worker: str
    version: str | None
    path: str | None
    error: ErrorInfo | None
    protocol: str | None
    capabilities: Capabilities | None


class NamedAdapter(TypedDict):
    name: str
    title: str | None
    hosts: list[AdapterThere]


class AdapterPage(Page):
    adapters: list[NamedAdapter]


@method("adapter.list", "viewer", Paged, limited="itself")
async def adapters(gateway: Gateway, _: Caller, params: Paged) -> AdapterPage:
    """The adapters, with the hosts that have each."""
    titles: dict[str, str | None] = {}
    found: dict[str, list[AdapterThere]] = {}
    for worker in gateway.workers.all():
        for adapter in worker.adapters:
            titles.setdefault(adapter.name, adapter.title)
            on_host: AdapterThere = {
                "host": worker.host,
                "hostname": worker.hostname,
                "worker": worker.worker,
                "version": adapter.version,
                "path": adapter.path,
                "error": adapter.error,
                "protocol": adapter.protocol,
                "capabilities": adapter.capabilities,
            }
            found.setdefault(adapter.name, []).append(on_host)
    names, page = page_of(sorted(found), params)
    return {"adapters": [{"name": name, "title": titles[name], "hosts": found[name]} for name in names], **page}
