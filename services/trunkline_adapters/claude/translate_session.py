"""What the session is: `initialize` replies, `system/init` of each turn, and answers to our own requests."""

from typing import Any

from trunkline_adapters.claude.native import BYPASS_MODE, MODES, THINKING_BUDGETS
from trunkline_adapters.claude.state import State, fact
from trunkline_adapters.claude.translate_asks import reconcile
from trunkline_adapters.claude.translate_turn import begin, interrupting
from trunkline_agentkit.fields import Obj, items, obj, objects, strings, text, truth, whole
from trunkline_agentkit.protocol import Out
from trunkline_wire.blocks import Choice
from trunkline_wire.session import McpServer, SessionInitialized, SessionUpdated
from trunkline_wire.work import FileRewound


def init(state: State, message: Obj) -> list[Out]:
    """`system/init`, which comes at the start of every turn: the whole the first time, then only what has changed."""
    known = state.known
    slash = strings(items(message, "slash_commands"))
    fresh: dict[str, Any] = {
        "native_session": text(message, "session_id"),
        "model": text(message, "model"),
        "mode": text(message, "permissionMode"),
        "tools": strings(items(message, "tools")),
        "mcp_servers": mcp_servers(objects(message, "mcp_servers")),
    }
    changed = {key: value for key, value in fresh.items() if value and value != getattr(known, key)}
    if slash != known.slash or not known.commands:
        known.slash = slash
        if (commands := _commands(state)) != known.commands:
            changed["commands"] = commands
    for key, value in changed.items():
        setattr(known, key, value)
    if state.initialized:
        out: list[Out] = [fact(SessionUpdated(**changed))] if changed else []
    else:
        state.initialized = True
        out = [fact(_initialized(state, message))]
    return out + begin(state, strings(items(message, "user_message_uuids")))


def _initialized(state: State, message: Obj) -> SessionInitialized:
    known, reply = state.known, state.reply
    agents = _agents(reply) or [Choice(id=name) for name in strings(items(message, "agents"))]
    return SessionInitialized(
        capabilities=state.capabilities,
        native_session=known.native_session,
        incarnation=state.context.incarnation,
        model=known.model,
        mode=known.mode,
        tools=known.tools,
        mcp_servers=known.mcp_servers,
        commands=known.commands,
        models=models(reply),
        modes=_modes(known.mode),
        agents=agents,
        account=obj(reply, "account"),
        version=text(message, "claude_code_version") or text(reply, "claude_code_version"),
    )


def _commands(state: State) -> list[Choice]:
    """The commands that `init` names, with what the `initialize` reply says about them."""
    described = {choice.id: choice for choice in commands(state.reply)}
    named = [described.get(name) or Choice(id=name) for name in state.known.slash]
    return named or list(described.values())


def commands(reply: Obj) -> list[Choice]:
    return [
        Choice(id=text(one, "name") or "", description=text(one, "description"), hint=text(one, "argumentHint"))
        for one in objects(reply, "commands")
    ]


def models(reply: Obj) -> list[Choice]:
    return [
        Choice(
            id=text(one, "value") or "",
            name=text(one, "displayName"),
            description=text(one, "description"),
            hint=text(one, "resolvedModel"),
        )
        for one in objects(reply, "models")
    ]


def _modes(current: str | None) -> list[Choice]:
    modes = [Choice(id=id_, name=name, description=said) for id_, (name, said) in MODES.items()]
    if current == BYPASS_MODE:
        modes.append(Choice(id=BYPASS_MODE, name="Bypass", description="Asks nothing at all"))
    return modes


def _agents(reply: Obj) -> list[Choice]:
    return [
        Choice(id=text(one, "name") or "", description=text(one, "description"), hint=text(one, "model"))
        for one in objects(reply, "agents")
    ]


def mcp_servers(native: list[Obj]) -> list[McpServer]:
    servers: list[McpServer] = []
    for one in native:
        tools = items(one, "tools")
        servers.append(
            McpServer(
                name=text(one, "name") or "",
                status=text(one, "status"),
                error=text(one, "error"),
                tools=len(tools) if tools else None,
            )
        )
    return servers


def asked(state: State, message: Obj) -> None:
    """A control request of ours goes out."""
    request_id = text(message, "request_id")
    if request_id is None:
        return
    request = obj(message, "request")
    state.requests[request_id] = request
    if text(request, "subtype") == "interrupt":
        interrupting(state)


def replied(state: State, message: Obj) -> list[Out]:
    """The agent's `control_response` to a request of ours."""
    envelope = obj(message, "response")
    request = state.requests.pop(text(envelope, "request_id") or "", {})
    subtype = text(request, "subtype")
    reply = obj(envelope, "response")
    if subtype == "initialize":
        return _initialize_reply(state, envelope, reply)
    if text(envelope, "subtype") != "success":
        return []
    match subtype:
        case "set_model":
            return _update(state, "model", text(reply, "model") or text(request, "model"))
        case "set_permission_mode":
            return _update(state, "mode", text(reply, "mode") or text(request, "mode"))
        case "set_max_thinking_tokens":
            return _thinking(request)
        case "mcp_status":
            servers = mcp_servers(objects(reply, "mcpServers"))
            return _update(state, "mcp_servers", servers)
        case "list_models":
            return [fact(SessionUpdated(models=models(reply)))]
        case "rewind_files":
            return _rewound(state, request, reply)
        case _:
            return []


def _initialize_reply(state: State, envelope: Obj, reply: Obj) -> list[Out]:
    # 2.1.50 answers a second initialize with an error, and lists the pending asks beside it.
    out = reconcile(state, envelope if "pending_permission_requests" in envelope else reply)
    if not reply:
        return out
    state.reply = reply
    if not state.initialized:
        return out
    fresh = _commands(state)
    if fresh != state.known.commands:
        state.known.commands = fresh
        return [fact(SessionUpdated(commands=fresh, models=models(reply))), *out]
    return out


def _update(state: State, field: str, value: Any) -> list[Out]:
    if value is None or value == getattr(state.known, field):
        return []
    setattr(state.known, field, value)
    return [fact(SessionUpdated(**{field: value}))]


def mode_changed(state: State, mode: str | None) -> list[Out]:
    return _update(state, "mode", mode)


def title_changed(state: State, title: str | None) -> list[Out]:
    return _update(state, "title", title)


def conversation_reset(state: State, message: Obj) -> list[Out]:
    """`/clear`: the same session goes on under a new native id."""
    state.context_used = None
    return _update(state, "native_session", text(message, "new_conversation_id"))


def _thinking(request: Obj) -> list[Out]:
    budget = whole(request, "max_thinking_tokens")
    if budget is None:
        return [fact(SessionUpdated(thinking="default"))]
    level = next((name for name, tokens in THINKING_BUDGETS.items() if tokens == budget), str(budget))
    return [fact(SessionUpdated(thinking=level))]


def _rewound(state: State, request: Obj, reply: Obj) -> list[Out]:
    uuid = text(request, "user_message_id") or ""
    if not truth(reply, "canRewind"):
        return []
    if truth(request, "dry_run"):
        state.rewinds[uuid] = reply
        return []
    # Only the trial run names the files.
    said = state.rewinds.pop(uuid, {}) | reply
    data = FileRewound(
        to=state.commands.get(uuid, uuid),
        paths=strings(items(said, "filesChanged")),
        lines_added=whole(said, "insertions"),
        lines_removed=whole(said, "deletions"),
    )
    return [fact(data)]
