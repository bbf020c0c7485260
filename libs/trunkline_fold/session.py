"""The fold of a session's events into its state.

Pure: no clock (times come from events) and no I/O. Folding any prefix and then the rest gives what folding all gives,
and an event at or below `state.sequence` changes nothing, so redelivery is harmless.
"""

from typing import Final

from msgspec.structs import replace

from trunkline_fold import status, usage
from trunkline_fold._bounded import clip, clip_choice, clip_or_none, first, last, one_line, small_json, upsert
from trunkline_fold.state import (
    MAX_ALIASES,
    MAX_CHOICES,
    MAX_COMMANDS,
    MAX_ENDED_ASKS,
    MAX_OPEN_ASKS,
    MAX_OPEN_TOOLS,
    MAX_PENDING,
    MAX_PLAN,
    MAX_SERVERS,
    MAX_TASKS,
    MAX_TOOLS,
    Auth,
    Context,
    LastError,
    LastTurn,
    OpenTool,
    OpenTurn,
    SessionState,
    TaskState,
    Terminal,
    decode_state,
    encode_state,
    initial,
    join_state,
    split_state,
)
from trunkline_wire import Event, UnknownData
from trunkline_wire.asks import (
    AskDecided,
    AskExpired,
    AskWithdrawn,
    PermissionRequested,
    PlanProposed,
    QuestionAsked,
)
from trunkline_wire.blocks import Choice, join_text
from trunkline_wire.session import (
    McpServer,
    SessionArchived,
    SessionClaimed,
    SessionClosed,
    SessionCompacted,
    SessionCreated,
    SessionErased,
    SessionForked,
    SessionHandedOver,
    SessionInitialized,
    SessionReset,
    SessionResumed,
    SessionStatus,
    SessionUpdated,
)
from trunkline_wire.turn import (
    MessageAssistant,
    MessageUser,
    TerminalClosed,
    TerminalOpened,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import (
    AuthUpdated,
    CommandAccepted,
    CommandFailed,
    CommandRejected,
    ErrorRaised,
    FileChanged,
    NativeMessage,
    PlanUpdated,
    TaskUpdated,
    UsageUpdated,
)

__all__ = ["SessionState", "decode_state", "encode_state", "fold_session", "initial", "join_state", "split_state"]

MAX_TITLE: Final = 80


def fold_session(state: SessionState, event: Event, sequence: int) -> SessionState:
    """The state after `event`, which stands at `sequence` of the stream."""
    if sequence <= state.sequence:
        return state
    after = _apply(status.end_by_progress(state, event), event)
    current, since = status.settle(after, event.time)
    return replace(
        after,
        sequence=sequence,
        updated=event.time,
        seq=state.seq if event.seq is None else event.seq,
        epoch=state.epoch if event.epoch is None else max(state.epoch, event.epoch),
        status=current,
        status_since=since,
    )


def _apply(state: SessionState, event: Event) -> SessionState:
    data = event.data
    match data:
        case SessionCreated() | SessionClaimed() | SessionInitialized() | SessionUpdated():
            return _identity(state, event)
        case SessionResumed() | SessionForked() | SessionArchived() | SessionHandedOver() | SessionClosed():
            return _life(state, event)
        case SessionErased():
            return replace(initial(state.session), erased=data)
        case SessionStatus():
            if data.status == "stopped":
                state = replace(state, pending=[], attach=None)
            return status.report(state, event, data)
        case SessionCompacted():
            return replace(state, counts=replace(state.counts, compactions=state.counts.compactions + 1))
        case SessionReset():
            # Of the native sessions the last one is no longer to be taken up; all of them stay as aliases.
            options = replace(state.options, resume_native=None)
            return replace(state, native_session=None, options=options, context=Context(), plan=[], suggestion=None)
        case TurnStarted() | TurnCompleted():
            return state if event.lane is not None else _turn(state, event)
        case MessageUser():
            return _user(state, event, data)
        case MessageAssistant():
            return _assistant(state, event, data)
        case ToolStarted() | ToolCompleted():
            return _tool(state, event)
        case PermissionRequested() | QuestionAsked() | PlanProposed():
            return _ask_opened(state, data.ask)
        case AskDecided() | AskExpired() | AskWithdrawn():
            return _asks_ended(state, [data.ask])
        case PlanUpdated():
            plan, rest = first([replace(entry, content=clip(entry.content, 500)) for entry in data.entries], MAX_PLAN)
            return _rest(replace(state, plan=plan), "plan", rest)
        case TaskUpdated():
            return _task(state, event, data)
        case UsageUpdated():
            return usage.update(state, data)
        case AuthUpdated():
            return _auth(state, event, data)
        case CommandAccepted() | CommandRejected() | CommandFailed():
            return _command(state, event)
        case ErrorRaised():
            state = replace(state, counts=replace(state.counts, errors=state.counts.errors + 1))
            return _error(state, data.code, data.message, event.time)
        case FileChanged():
            return replace(state, counts=replace(state.counts, files=state.counts.files + 1))
        case NativeMessage():
            counts = state.counts
            if data.known:
                return replace(state, counts=replace(counts, native_known=counts.native_known + 1))
            return replace(state, counts=replace(counts, native_unknown=counts.native_unknown + 1))
        case TerminalOpened():
            return replace(state, terminal=Terminal(columns=data.columns, rows=data.rows, title=data.title))
        case TerminalClosed():
            return replace(state, terminal=None)
        case UnknownData():
            return replace(state, counts=replace(state.counts, unknown_types=state.counts.unknown_types + 1))
        case _:
            return (
                state  # notices, summaries, hooks, diffs, votes, team events: shown from the log, no part of the state
            )


def _identity(state: SessionState, event: Event) -> SessionState:
    match event.data:
        case SessionCreated() as data:
            return replace(
                state,
                created=event.time,
                adapter=data.adapter,
                agent=data.agent,
                cwd=data.cwd,
                host=data.host,
                workspace=data.workspace,
                placement=data.placement,
                parent=data.parent,
                spawn=data.spawn,
                options=data.options,
                title=data.title,
                model=data.options.model,
                mode=data.options.mode,
                thinking=data.options.thinking,
            )
        case SessionClaimed() as data:
            survived = data.incarnation is not None and data.incarnation == state.incarnation
            state = replace(state, worker=data.worker, host=data.host, incarnation=data.incarnation)
            if survived:
                return state
            state = _asks_ended(state, state.open_asks)
            if state.condition != "stopped":
                state = status.end_condition(state)
            return replace(state, pending=[])
        case SessionInitialized() as data:
            state = replace(
                state,
                initialized=True,
                closed=None,
                capabilities=data.capabilities,
                incarnation=data.incarnation or state.incarnation,
                model=data.model or state.model,
                mode=data.mode or state.mode,
                version=data.version or state.version,
                account=small_json(data.account) or state.account,
                attach=data.attach,
            )
            if event.agent is not None and event.agent.agent is not None:
                state = replace(state, agent=event.agent.agent)
            state = _native(state, data.native_session)
            state = _choices(state, "commands", data.commands, MAX_COMMANDS)
            state = _choices(state, "models", data.models, MAX_CHOICES)
            state = _choices(state, "modes", data.modes, MAX_CHOICES)
            state = _choices(state, "agents", data.agents, MAX_CHOICES)
            return _servers(_tools(state, data.tools), data.mcp_servers)
        case SessionUpdated() as data:
            state = replace(
                state,
                model=data.model or state.model,
                mode=data.mode or state.mode,
                thinking=data.thinking or state.thinking,
                title=data.title or state.title,
                suggestion=clip_or_none(data.suggestion) or state.suggestion,
                config_options=(
                    state.config_options if data.config_options is None else small_json(data.config_options)
                ),
            )
            state = _native(state, data.native_session)
            if data.commands is not None:
                state = _choices(state, "commands", data.commands, MAX_COMMANDS)
            if data.models is not None:
                state = _choices(state, "models", data.models, MAX_CHOICES)
            if data.tools is not None:
                state = _tools(state, data.tools)
            return state if data.mcp_servers is None else _servers(state, data.mcp_servers)
        case _:
            return state


def _life(state: SessionState, event: Event) -> SessionState:
    match event.data:
        case SessionResumed(how="unarchived"):
            return replace(state, archived=False)
        case SessionResumed() as data:
            state = _native(replace(state, closed=None, archived=False), data.native_session)
            return status.end_condition(state) if state.condition == "stopped" else state
        case SessionForked() as data:
            return _native(replace(state, parent=data.parent, forked_at=data.at), data.native_session)
        case SessionArchived():
            return replace(state, archived=True)
        case SessionHandedOver() as data:
            # Each interface says for itself what it can do.
            return replace(state, interface=data.to, capabilities=None, attach=None)
        case SessionClosed() as data:
            closed = data if data.last_error is None else replace(data, last_error=clip(data.last_error, 500))
            return replace(
                status.end_condition(state),
                closed=closed,
                turn=None,
                pending=[],
                open_tools={},
                cmd_seq=max(state.cmd_seq, data.cmd_seq),
            )
        case _:
            return state


def _turn(state: SessionState, event: Event) -> SessionState:
    match event.data:
        case TurnStarted() as data:
            state = usage.begin_turn(state)
            return replace(
                state,
                turn=OpenTurn(
                    id=event.turn, number=data.number, started=event.time, cause=event.cause, trigger=data.trigger
                ),
                turns=state.turns + 1,
                pending=[],
                closed=None,
                suggestion=None,
            )
        case TurnCompleted() as data:
            opened = state.turn
            state = usage.end_turn(state, data)
            if data.error is not None:
                state = _error(state, data.error.code, data.error.message, event.time)
            return replace(
                state,
                turn=None,
                pending=[],
                last_turn=LastTurn(
                    id=event.turn or (opened.id if opened else None),
                    number=opened.number if opened else state.turns,
                    outcome=data.outcome,
                    completed=event.time,
                    trigger=opened.trigger if opened and data.trigger == "prompt" else data.trigger,
                    cause=opened.cause if opened else event.cause,
                    started=opened.started if opened else None,
                    duration_ms=data.duration_ms,
                    cost_usd=data.cost_usd,
                    error=data.error,
                ),
                # what a subagent in the background has open outlives the turn that started it
                open_tools={item: tool for item, tool in state.open_tools.items() if tool.lane is not None},
            )
        case _:
            return state


def _user(state: SessionState, event: Event, data: MessageUser) -> SessionState:
    if event.lane is not None or data.synthetic:
        return state
    key = data.command or event.id
    if data.delivery == "cancelled":
        return replace(state, pending=[other for other in state.pending if other != key])
    state = replace(state, counts=replace(state.counts, prompts=state.counts.prompts + 1))
    text = join_text(data.content)
    if text.strip():
        state = replace(
            state,
            title=state.title or one_line(text, MAX_TITLE),
            last_text=clip(text.strip()),
            last_author="user",
        )
    if data.delivery == "sent" and state.turn is None and event.turn is None:
        # a bounded list: an agent takes its prompts one after the other, and the next turn clears it
        state = replace(state, pending=last([*state.pending, key], MAX_PENDING)[0])
        if state.condition == "stopped":
            state = status.end_condition(state)
    return state


def _assistant(state: SessionState, event: Event, data: MessageAssistant) -> SessionState:
    state = usage.count_message(state, event.item or event.id, data, lane=event.lane)
    if data.error is not None:
        state = _error(state, data.error.code, data.error.message, event.time)
    text = join_text(data.content).strip()
    if not text or event.lane is not None:
        return state
    return replace(state, last_text=clip(text), last_author="assistant")


def _tool(state: SessionState, event: Event) -> SessionState:
    item = event.item or event.id
    match event.data:
        case ToolStarted() as data:
            state = replace(
                state, counts=replace(state.counts, tools=state.counts.tools + (item not in state.open_tools))
            )
            if len(state.open_tools) >= MAX_OPEN_TOOLS and item not in state.open_tools:
                return _rest(state, "open_tools", state.rest.get("open_tools", 0) + 1)
            tool = OpenTool(
                name=clip(data.name),
                started=event.time,
                kind=data.kind,
                title=clip_or_none(data.title),
                turn=event.turn,
                lane=event.lane,
                locations=data.locations[:5],
            )
            return replace(state, open_tools={**state.open_tools, item: tool})
        case ToolCompleted() as data:
            if data.status == "failed":
                state = replace(state, counts=replace(state.counts, tools_failed=state.counts.tools_failed + 1))
            if item not in state.open_tools:
                return state
            return replace(state, open_tools={key: tool for key, tool in state.open_tools.items() if key != item})
        case _:
            return state


def _ask_opened(state: SessionState, ask: str) -> SessionState:
    if ask in state.open_asks or ask in state.ended_asks:
        return state
    state = replace(state, counts=replace(state.counts, asks=state.counts.asks + 1))
    if len(state.open_asks) >= MAX_OPEN_ASKS:
        return _rest(state, "open_asks", state.rest.get("open_asks", 0) + 1)
    return replace(state, open_asks=[*state.open_asks, ask])


def _asks_ended(state: SessionState, asks: list[str]) -> SessionState:
    ended = [ask for ask in asks if ask in state.open_asks]
    if not ended:
        return state
    return replace(
        state,
        open_asks=[ask for ask in state.open_asks if ask not in ended],
        ended_asks=last([*state.ended_asks, *ended], MAX_ENDED_ASKS)[0],
    )


def _task(state: SessionState, event: Event, data: TaskUpdated) -> SessionState:
    old = next((task for task in state.tasks if task.task == data.task), None)
    old = old or TaskState(task=data.task, started=event.time, updated=event.time)
    task = TaskState(
        task=data.task,
        started=old.started,
        updated=event.time,
        kind=data.kind or old.kind,
        status=data.status or old.status,
        description=clip_or_none(data.description) or old.description,
        summary=clip_or_none(data.summary) or old.summary,
        background=old.background if data.background is None else data.background,
        usage=old.usage if data.usage is None else small_json(data.usage),
        tool=data.tool or old.tool,
        output_file=data.output_file or old.output_file,
    )
    tasks = upsert(state.tasks, task, lambda other: other.task == data.task)
    if len(tasks) > MAX_TASKS:
        ended = next((n for n, other in enumerate(tasks) if other.status in ("completed", "failed", "stopped")), 0)
        del tasks[ended]
        state = _rest(state, "tasks", state.rest.get("tasks", 0) + 1)
    return replace(state, tasks=tasks)


def _auth(state: SessionState, event: Event, data: AuthUpdated) -> SessionState:
    state = replace(
        state, auth=Auth(authenticating=data.authenticating, methods=data.methods[:20], error=clip_or_none(data.error))
    )
    if data.authenticating:
        return status.report(state, event, SessionStatus(status="authenticating"))
    return status.end_condition(state) if state.condition == "authenticating" else state


def _command(state: SessionState, event: Event) -> SessionState:
    match event.data:
        case CommandAccepted() as data:
            return replace(state, cmd_seq=max(state.cmd_seq, data.cmd_seq))
        case CommandRejected() as data:
            return replace(state, cmd_seq=max(state.cmd_seq, data.cmd_seq))
        case CommandFailed() as data:
            return replace(state, pending=[other for other in state.pending if other != data.command])
        case _:
            return state


def _error(state: SessionState, code: str, message: str, time: str) -> SessionState:
    return replace(state, last_error=LastError(code=code, message=clip(message), time=time))


def _native(state: SessionState, native: str | None) -> SessionState:
    if native is None or native == state.native_session:
        return state
    aliases = state.aliases
    if native not in aliases:
        aliases, rest = last([*aliases, native], MAX_ALIASES)
        state = _rest(state, "aliases", state.rest.get("aliases", 0) + rest)
    return replace(state, native_session=native, aliases=aliases)


def _choices(state: SessionState, name: str, choices: list[Choice], limit: int) -> SessionState:
    kept, rest = first(choices, limit)
    return _rest(replace(state, **{name: [clip_choice(choice) for choice in kept]}), name, rest)


def _tools(state: SessionState, tools: list[str]) -> SessionState:
    kept, rest = first(tools, MAX_TOOLS)
    return _rest(replace(state, tools=kept), "tools", rest)


def _servers(state: SessionState, servers: list[McpServer]) -> SessionState:
    kept, rest = first(servers, MAX_SERVERS)
    kept = [replace(server, error=clip_or_none(server.error)) for server in kept]
    return _rest(replace(state, mcp_servers=kept), "mcp_servers", rest)


def _rest(state: SessionState, name: str, count: int) -> SessionState:
    if state.rest.get(name, 0) == count:
        return state
    rest = {**state.rest, name: count}
    if not count:
        del rest[name]
    return replace(state, rest=rest)
