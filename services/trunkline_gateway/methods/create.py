"""`session.create`: the best way to run an agent, in a directory that exists, by who may."""

import asyncio
import os
from pathlib import Path
from typing import Final, NotRequired, TypedDict

from trunkline_fold.session import SessionState
from trunkline_gateway.agents import refuse_agents
from trunkline_gateway.choice import Chosen, choose
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.privileges import role_for_session
from trunkline_gateway.registry import Params, method
from trunkline_gateway.roles import out_of_scope
from trunkline_gateway.workers import InstalledAdapter
from trunkline_wire import Spawn, TrunklineError, timestamp
from trunkline_wire.ids import check_id, check_token, new_session_id, workspace_id
from trunkline_wire.session import Capabilities, SessionOptions

SPAWN_S: Final = 30.0


class Create(Params, frozen=True, kw_only=True):
    cwd: str
    adapter: str | None = None
    """None: the best that runs `agent` on the host."""
    session: str | None = None
    host: str | None = None
    title: str | None = None
    agent: str | None = None
    options: SessionOptions = SessionOptions()
    wait: bool = True


class Created(TypedDict):
    """`state` None: the session is not there yet, for it was not waited for. `notice`: why another way than the best was taken."""

    session: str
    state: SessionState | None
    notice: NotRequired[str]


@method("session.create", "participant", Create, limited="itself")
async def create(gateway: Gateway, caller: Caller, params: Create) -> Created:
    """Start a session of an `agent`, by the best `adapter` or a given one, in a directory of `host`.

    Without `host` it starts on the gateway's own, or, where that has no worker, on a living one that can run it.
    Repeating it with the same `session` is harmless. `notice` says why another way than the best was taken.
    """
    session = check_id(params.session, "ses") if params.session is not None else new_session_id()
    host = check_token(params.host) if params.host is not None else _place(gateway, params, session)
    chosen = _chosen(gateway, params, host)
    role = role_for_session(params.options, _capabilities(gateway, chosen.adapter, host))
    caller.principal.require(role, "session.create with these options")
    if role != "participant":
        await refuse_agents(gateway, caller)
    if host == gateway.host:
        await asyncio.to_thread(_check_directory, params.cwd)
    await _check_scope(gateway, caller, session, host, params.cwd)
    gateway.require_room()
    # The same session is the same request: a client that lost the answer asks again.
    spawn = Spawn(
        id=f"cmd_{session.removeprefix('ses_')}",
        session=session,
        adapter=chosen.adapter,
        cwd=params.cwd,
        time=timestamp(),
        host=host,
        agent=chosen.profile,
        title=params.title,
        options=params.options,
        source=caller.principal.source,
    )
    known = gateway.directory.states.get(session)
    if known is not None and known.spawn != spawn.id:
        raise TrunklineError("session_exists", f"session {session!r} exists already", session=session)
    if known is None:
        await gateway.requests.spawn(spawn)
    if not params.wait:
        return _created(session, known, chosen.notice)
    try:
        state = await gateway.directory.until(session, lambda: gateway.directory.states.get(session), SPAWN_S)
    except TimeoutError:
        raise TrunklineError(
            "no_worker",
            f"no worker of host {host!r} took the session within {SPAWN_S:g} s: `worker.list` shows who is there",
            session=session,
        ) from None
    return _created(session, state, chosen.notice)


def _created(session: str, state: SessionState | None, notice: str | None) -> Created:
    return {"session": session, "state": state, "notice": notice} if notice else {"session": session, "state": state}


def _place(gateway: Gateway, params: Create, session: str) -> str:
    def fits(adapters: list[InstalledAdapter]) -> bool:
        if params.adapter is not None:
            return any(one.name == params.adapter and one.error is None for one in adapters)
        try:
            choose(adapters, params.agent or "")
        except TrunklineError:
            return False
        return True

    return gateway.workers.place(gateway.host, fits, session)


def _chosen(gateway: Gateway, params: Create, host: str) -> Chosen:
    if params.adapter is not None:
        check_token(params.adapter)
        _check_adapter(gateway, params.adapter, host)
        return Chosen(adapter=params.adapter, profile=params.agent)
    if params.agent is None:
        raise TrunklineError("bad_params", "name an agent (`agent.list` has them) or an adapter", field="agent")
    adapters = gateway.workers.adapters(host)
    if not adapters:
        raise TrunklineError("no_worker", f"no worker of host {host!r} is there: `worker.list` shows who is")
    return choose(adapters, params.agent)


def _check_adapter(gateway: Gateway, adapter: str, host: str) -> None:
    workers = gateway.workers.all()
    if workers and not gateway.workers.hosts_with(adapter):
        known = sorted({known.name for worker in workers for known in worker.adapters})
        raise TrunklineError(
            "unknown_adapter", f"no adapter {adapter!r} is installed; there are {', '.join(known) or 'none'}"
        )
    there = [found for worker in workers if worker.host == host and (found := worker.adapter(adapter)) is not None]
    error = there[0].error if there else None
    if error is not None:
        raise TrunklineError("agent_not_found", f"{adapter!r} can't run on host {host!r}: {error.message}")


def _check_directory(cwd: str) -> None:
    path = Path(cwd)
    if not path.is_absolute():
        raise TrunklineError("bad_directory", f"{cwd!r} is not an absolute path", cwd=cwd)
    if not path.is_dir():
        raise TrunklineError("bad_directory", f"there is no directory {cwd!r} on this host", cwd=cwd)


def _capabilities(gateway: Gateway, adapter: str, host: str) -> Capabilities | None:
    return next((one.capabilities for one in gateway.workers.adapters(host) if one.name == adapter), None)


async def _check_scope(gateway: Gateway, caller: Caller, session: str, host: str, cwd: str) -> None:
    """A limited token may start sessions in the directories of its workspaces, and ask again for one of its sessions."""
    scope = caller.principal.scope
    if scope.whole or session in scope.sessions:
        return
    # Only this host can tell where a link leads.
    real = await asyncio.to_thread(os.path.realpath, cwd) if host == gateway.host else cwd
    if not scope.holds(session, workspace_id(host, real)):
        raise out_of_scope(f"the directory {cwd!r}")
