"""`worker.*` and `adapter.*`: what can run agents, and where."""

from typing import Any

from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Params, method


class Nothing(Params, frozen=True, kw_only=True):
    pass


@method("worker.list", "viewer", Nothing)
async def workers(gateway: Gateway, _: Caller, __: Nothing) -> dict[str, Any]:
    """The living workers, with the adapters of each."""
    return {"workers": gateway.workers.all(), "host": gateway.host}


@method("adapter.list", "viewer", Nothing)
async def adapters(gateway: Gateway, _: Caller, __: Nothing) -> dict[str, Any]:
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
    return {"adapters": [{"name": name, "title": titles[name], "hosts": found[name]} for name in sorted(found)]}
