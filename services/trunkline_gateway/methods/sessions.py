"""`session.*`: create, list, get, and the commands."""

import asyncio
import functools
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from trunkline_fold.session import SessionState
from trunkline_gateway.agents import refuse_agents
from trunkline_gateway.choice import Chosen, choose
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Params, method
from trunkline_wire import Data, Spawn, TrunklineError, encode, make_command, timestamp
from trunkline_wire.blocks import Block, TextBlock, ThinkingBlock, text_of
from trunkline_wire.commands import VERBS, Close, Interrupt, Prompt, Steer
from trunkline_wire.ids import check_id, check_token, new_command_id, new_session_id
from trunkline_wire.session import SessionOptions
from trunkline_wire.work import CommandFailed, CommandFinished

SPAWN_S: Final = 30.0
OUTCOME_S: Final = 30.0
MAX_CONTENT: Final = 400 * 1024
MAX_LIST: Final = 500
OWNER_VERBS: Final = frozenset({"native", "kill"})
NEW_TURN_VERBS: Final = frozenset({"run_command", "compact", "fork", "resume"})


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


@method("session.create", "participant", Create)
async def create(gateway: Gateway, caller: Caller, params: Create) -> dict[str, Any]:
    """Start a session of an `agent`, by the best `adapter` or a given one, in a directory of this host (or of `host`).

    Repeating it with the same `session` is harmless. `notice` says why another way than the best was taken.
    """
    session = check_id(params.session, "ses") if params.session is not None else new_session_id()
    host = check_token(params.host) if params.host is not None else gateway.host
    chosen = _chosen(gateway, params, host)
    if host == gateway.host:
        await asyncio.to_thread(_check_directory, params.cwd)
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
    notice = {"notice": chosen.notice} if chosen.notice else {}
    if not params.wait:
        return {"session": session, "state": known, **notice}
    try:
        state = await gateway.directory.until(session, lambda: gateway.directory.states.get(session), SPAWN_S)
    except TimeoutError:
        raise TrunklineError(
            "no_worker",
            f"no worker of host {host!r} took the session within {SPAWN_S:g} s: `worker.list` shows who is there",
            session=session,
        ) from None
    return {"session": session, "state": state, **notice}


class List(Params, frozen=True, kw_only=True):
    limit: int = 50
    offset: int = 0


@method("session.list", "viewer", List)
async def list_(gateway: Gateway, _: Caller, params: List) -> dict[str, Any]:
    """The sessions, the one with the latest event first."""
    if params.limit < 1 or params.offset < 0:
        raise TrunklineError("bad_params", "limit must be 1 or more, offset 0 or more", field="limit")
    states = sorted(gateway.directory.states.values(), key=lambda state: state.sequence, reverse=True)
    page = states[params.offset : params.offset + min(params.limit, MAX_LIST)]
    return {"sessions": page, "total": len(states), "has_more": params.offset + len(page) < len(states)}


class One(Params, frozen=True, kw_only=True):
    session: str


@method("session.get", "viewer", One)
async def get(gateway: Gateway, _: Caller, params: One) -> dict[str, Any]:
    """A session's state as of the log's end, and its asks."""
    check_id(params.session, "ses")
    state = await gateway.directory.session(params.session)
    return {"state": state, "asks": list(gateway.directory.asks(params.session))}


class PromptParams(Params, frozen=True, kw_only=True):
    session: str
    text: str | None = None
    content: list[Block] | None = None
    id: str | None = None
    delivery: Literal["auto", "queue", "steer"] = "auto"


@method("session.prompt", "participant", PromptParams)
async def prompt(gateway: Gateway, caller: Caller, params: PromptParams) -> dict[str, Any]:
    """Send a user message. Returns when it is in the log of commands; the same `id` again is the same command."""
    if (params.text is None) == (params.content is None):
        raise TrunklineError("bad_params", "give either `text` or `content`", field="text")
    content = check_content([TextBlock(text=params.text)] if params.text is not None else params.content or [])
    gateway.require_room()
    data = Prompt(content=content, delivery=params.delivery)
    return await _send(gateway, caller, params.session, data, id=params.id)


class InterruptParams(Params, frozen=True, kw_only=True):
    session: str
    turn: str | None = None
    cancel_queued: bool = False
    id: str | None = None
    wait: bool = False


@method("session.interrupt", "participant", InterruptParams)
async def interrupt(gateway: Gateway, caller: Caller, params: InterruptParams) -> dict[str, Any]:
    """Stop the named turn, or the one that is open."""
    state = await _open_session(gateway, params.session, "interrupt", params.id)
    target = params.turn
    if not _is_repeated(gateway, params.id):
        target = _target(state, params.turn, needed=not params.cancel_queued)
    data = Interrupt(cancel_queued=params.cancel_queued)
    return await _send(gateway, caller, params.session, data, id=params.id, target=target, wait=params.wait)


class CloseParams(Params, frozen=True, kw_only=True):
    session: str
    reason: str | None = None
    id: str | None = None
    wait: bool = False


@method("session.close", "participant", CloseParams)
async def close(gateway: Gateway, caller: Caller, params: CloseParams) -> dict[str, Any]:
    """End the session's agent and close the session; `resume` reopens it."""
    return await _send(gateway, caller, params.session, Close(reason=params.reason), id=params.id, wait=params.wait)


class CommandParams(Params, frozen=True, kw_only=True):
    session: str
    verb: str
    args: dict[str, Any] = {}
    target: str | None = None
    id: str | None = None
    wait: bool = False


@method("session.command", "participant", CommandParams)
async def command(gateway: Gateway, caller: Caller, params: CommandParams) -> dict[str, Any]:
    """Send a command of any verb. With `wait` the answer has its `outcome` too."""
    data = read_args(params.verb, params.args)
    if params.verb in OWNER_VERBS:
        caller.principal.require("owner", f"session.command {params.verb}")
        await refuse_agents(gateway, caller)
    target = params.target
    match data:
        case Prompt(content=content) | Steer(content=content):
            check_content(content)
            gateway.require_room()
        case _ if params.verb in NEW_TURN_VERBS:
            gateway.require_room()
        case _:
            pass
    if isinstance(data, Interrupt | Steer) and not _is_repeated(gateway, params.id):
        state = await _open_session(gateway, params.session, params.verb, params.id)
        target = _target(state, target, needed=not (isinstance(data, Interrupt) and data.cancel_queued))
    return await _send(gateway, caller, params.session, data, id=params.id, target=target, wait=params.wait)


def read_args(verb: str, args: dict[str, Any]) -> Data:
    """A verb's arguments. Raises TrunklineError `bad_params` for an unknown verb, or naming the argument."""
    kind = VERBS.get(verb)
    if kind is None:
        raise TrunklineError("bad_params", f"there is no verb {verb!r}; known are {', '.join(VERBS)}", field="verb")
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    unknown = sorted(set(args) - names)
    if unknown:
        raise TrunklineError("bad_params", f"{verb!r} has no argument {unknown[0]!r}", field=f"args.{unknown[0]}")
    try:
        return msgspec.convert(args, kind)
    except msgspec.ValidationError as error:
        raise TrunklineError("bad_params", f"wrong arguments of {verb!r}: {error}", field="args") from error


def check_content(content: list[Block]) -> list[Block]:
    """Raises TrunklineError `bad_params` for a message that says nothing, `too_large` above MAX_CONTENT bytes."""
    if not any(not isinstance(b, TextBlock | ThinkingBlock) or text_of(b.text).strip() for b in content):
        raise TrunklineError("bad_params", "the message is empty", field="content")
    size = len(encode(content))
    if size > MAX_CONTENT:
        raise TrunklineError(
            "too_large",
            f"the message has {size} bytes, at most {MAX_CONTENT} are allowed: put it into a file of the project",
            size=size,
            limit=MAX_CONTENT,
        )
    return content


async def _send(
    gateway: Gateway,
    caller: Caller,
    session: str,
    data: Data,
    *,
    id: str | None,
    target: str | None = None,
    wait: bool = False,
) -> dict[str, Any]:
    command_id = check_id(id, "cmd") if id is not None else new_command_id()
    await _open_session(gateway, session, data.TYPE, command_id)
    sequence = await gateway.requests.command(
        make_command(
            data,
            id=command_id,
            session=session,
            time=timestamp(),
            target=target,
            source=caller.principal.source,
        )
    )
    sent: dict[str, Any] = {"command": command_id, "sequence": sequence}
    return sent | await _outcome(gateway, session, command_id) if wait else sent


async def _outcome(gateway: Gateway, session: str, command_id: str) -> dict[str, Any]:
    ended = functools.partial(gateway.directory.command_end, command_id)
    try:
        end = await gateway.directory.until(session, ended, OUTCOME_S)
    except TimeoutError:
        raise TrunklineError(
            "timeout",
            f"no outcome of {command_id!r} within {OUTCOME_S:g} s; it may still take effect",
            command=command_id,
        ) from None
    match end:
        case CommandFinished():
            return {"outcome": "finished", "how": end.how, "result": end.result}
        case CommandFailed():
            return {"outcome": "failed", "error": end.error}
        case _:
            return {"outcome": "rejected", "error": end.error}


def _is_repeated(gateway: Gateway, id: str | None) -> bool:
    """Whether the command has its outcome: sent again it gets that one, whatever became of the session since."""
    return id is not None and gateway.directory.command_end(id) is not None


async def _open_session(gateway: Gateway, session: str, verb: str, id: str | None) -> SessionState:
    check_id(session, "ses")
    state = gateway.directory.states.get(session) or await gateway.directory.session(session)
    if state.closed is not None and verb != "resume" and not _is_repeated(gateway, id):
        raise TrunklineError(
            "session_closed", f"the session is closed ({state.closed.reason}); the command `resume` reopens it"
        )
    return state


def _target(state: SessionState, turn: str | None, *, needed: bool) -> str | None:
    current = state.turn.id if state.turn is not None else None
    if turn is not None and turn != current:
        raise TrunklineError("stale_target", f"turn {turn!r} is not the open one", turn=turn, open=current)
    if state.turn is None and needed:
        raise TrunklineError("stale_target", "no turn is open")
    return current


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
