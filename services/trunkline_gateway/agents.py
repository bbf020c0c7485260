"""What only a person may do is refused to the processes of agents, whatever credentials they found."""

import asyncio

from trunkline_gateway import peers
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_wire import TrunklineError


async def refuse_agents(gateway: Gateway, caller: Caller) -> None:
    """Raises TrunklineError `agent_forbidden` for a process that belongs to an agent."""
    if not caller.peer.local:
        return
    sessions = frozenset(gateway.directory.states)
    workers = gateway.workers.processes(gateway.host)
    pid, reason = await asyncio.to_thread(peers.judge, caller.peer, workers, sessions)
    if pid is None:
        if caller.principal.via in {"tcp", "link"}:
            return
        raise TrunklineError(
            "agent_forbidden", "the process at the other end can't be told: connect over TCP, with a token"
        )
    if reason is not None:
        raise TrunklineError(
            "agent_forbidden", f"agents decide nothing and own nothing ({reason}): let a person do it", pid=pid
        )
