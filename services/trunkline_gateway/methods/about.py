"""`session.info` and `session.config`: what a session is and can do, and how it is set."""

import hashlib
from typing import Literal, TypedDict, get_args

from trunkline_fold.session import SessionState
from trunkline_fold.state import Context, Status
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.methods.sessions import CommandSent, One, require_verb, send
from trunkline_gateway.presence import Watching
from trunkline_gateway.registry import Params, method
from trunkline_wire import Data
from trunkline_wire.blocks import Choice, Json, Usage
from trunkline_wire.commands import Rename, SetMode, SetModel, SetThinking
from trunkline_wire.ids import check_id
from trunkline_wire.session import Capabilities, McpServer, Thinking


class NativeIds(TypedDict):
    session: str | None
    all: list[str]


class ConfigChoices(TypedDict):
    model: list[Choice]
    mode: list[Choice]
    thinking: tuple[Thinking, ...]


class SessionConfig(TypedDict):
    model: str | None
    mode: str | None
    thinking: str | None
    title: str | None
    choices: ConfigChoices


class SessionInfo(TypedDict):
    session: str
    title: str | None
    adapter: str | None
    agent: str | None
    version: str | None
    cwd: str | None
    host: str | None
    workspace: str | None
    parent: str | None
    created: str | None
    capabilities: Capabilities | None
    models: list[Choice]
    modes: list[Choice]
    commands: list[Choice]
    agents: list[Choice]
    tools: list[str]
    mcp_servers: list[McpServer]
    config_options: Json
    status: Status
    status_since: str | None
    updated: str | None
    interface: Literal["structured", "terminal"]
    turns: int
    usage: Usage
    cost_usd: float | None
    context: Context
    archived: bool
    native: NativeIds
    closed: bool
    config: SessionConfig
    watching: list[Watching]


@method("session.info", "viewer", One)
async def info(gateway: Gateway, _: Caller, params: One) -> SessionInfo:
    """What a session is and can do, without what was said in it, and who watches it now.

    `native` are the ids under which the agent has known it, the present one last; none is present after a reset.
    """
    state = await gateway.directory.session(check_id(params.session, "ses"))
    return {
        "session": state.session,
        "title": state.title,
        "adapter": state.adapter,
        "agent": state.agent,
        "version": state.version,
        "cwd": state.cwd,
        "host": state.host,
        "workspace": state.workspace,
        "parent": state.parent,
        "created": state.created,
        "capabilities": state.capabilities,
        "models": state.models,
        "modes": state.modes,
        "commands": state.commands,
        "agents": state.agents,
        "tools": state.tools,
        "mcp_servers": state.mcp_servers,
        "config_options": state.config_options,
        "status": state.status,
        "status_since": state.status_since,
        "updated": state.updated,
        "interface": state.interface,
        "turns": state.turns,
        "usage": state.usage,
        "cost_usd": state.cost_usd,
        "context": state.context,
        "archived": state.archived,
        "native": {"session": state.native_session, "all": state.aliases},
        "closed": state.closed is not None,
        "config": _config(state),
        "watching": gateway.presence.of(params.session),
    }


class Config(Params, frozen=True, kw_only=True):
    """What is absent stays as it is; `id` makes a repetition harmless; with `wait` the answer has the outcomes."""

    session: str
    model: str | None = None
    mode: str | None = None
    thinking: Thinking | None = None
    title: str | None = None
    id: str | None = None
    wait: bool = False

    def changes(self) -> list[Data]:
        wanted: list[Data | None] = [
            None if self.model is None else SetModel(model=self.model),
            None if self.mode is None else SetMode(mode=self.mode),
            None if self.thinking is None else SetThinking(level=self.thinking),
            None if self.title is None else Rename(title=self.title),
        ]
        return [one for one in wanted if one is not None]


class Configured(TypedDict):
    """`commands`: what was sent, by the name of the value."""

    config: SessionConfig
    commands: dict[str, CommandSent]


@method("session.config", "viewer", Config)
async def config(gateway: Gateway, caller: Caller, params: Config) -> Configured:
    """How a session is set, and what it may be set to. With values it sets them, each by the command for it.

    Whether one may set all of them is checked before any is; what the agent can't is told in its command's outcome alone.
    `commands` has what `session.set_model` and its like answer, by the name of the value, in the order in which they were
    sent: model, mode, thinking, title. Without `wait` the config is still the one before.
    """
    check_id(params.session, "ses")
    given = None if params.id is None else check_id(params.id, "cmd")
    changes = params.changes()
    for data in changes:
        await require_verb(gateway, caller, data.TYPE)
    sent: dict[str, CommandSent] = {}
    for data in changes:
        name = data.TYPE.removeprefix("set_") if data.TYPE != Rename.TYPE else "title"
        id_ = None if given is None else _part(given, name)
        sent[name] = await send(gateway, caller, params.session, data, id=id_, wait=params.wait)
    state = await gateway.directory.session(params.session)
    return {"config": _config(state), "commands": sent}


def _part(id: str, name: str) -> str:
    """The id of one of a call's commands: the same for a repetition of the call."""
    return f"cmd_{hashlib.blake2s(f'{id} {name}'.encode(), digest_size=16).hexdigest()}"


def _config(state: SessionState) -> SessionConfig:
    return {
        "model": state.model,
        "mode": state.mode,
        "thinking": state.thinking,
        "title": state.title,
        "choices": {"model": state.models, "mode": state.modes, "thinking": get_args(Thinking)},
    }
