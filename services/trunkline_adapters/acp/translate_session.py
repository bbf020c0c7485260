"""What the session is and becomes: its description, modes, models, commands, options, title, notices, compactions."""

from typing import Any, Final, Literal, cast

from trunkline_adapters.acp.content import block_of
from trunkline_adapters.acp.native import BEGINNINGS
from trunkline_adapters.acp.profiles import NO_PROFILE, named_by
from trunkline_adapters.acp.state import Known, State, fact
from trunkline_adapters.acp.usage import note_context, total_cost
from trunkline_agentkit.fields import Obj, obj, objects, text
from trunkline_agentkit.protocol import Out
from trunkline_wire.blocks import Choice, Usage, join_text
from trunkline_wire.session import Capabilities, SessionCompacted, SessionInitialized, SessionStatus, SessionUpdated
from trunkline_wire.turn import MessageSystem
from trunkline_wire.work import PlanEntry, PlanUpdated, TaskUpdated, UsageUpdated

MODE: Final = "mode"
MODEL: Final = "model"
THINKING: Final = "thought_level"


def replied(state: State, method: str, params: Obj, result: Obj) -> list[Out]:
    """The agent's answer to a request of ours that is no prompt."""
    match method:
        case "initialize":
            state.agent = result
            if state.profile is NO_PROFILE:
                state.profile = named_by(text(obj(result, "agentInfo"), "name")) or NO_PROFILE
            return []
        case "session/load" if state.copying:
            return []
        case _ if method in BEGINNINGS:
            state.copying = False
            return _described(state, method, params, result)
        case "session/set_mode":
            return _changed(state, mode=text(params, "modeId"))
        case "session/set_model":
            return _changed(state, model=text(params, "modelId"))
        case "session/set_config_option":
            return options_updated(state, result)
        case _:
            return []


def _described(state: State, method: str, params: Obj, result: Obj) -> list[Out]:
    known = state.known
    known.native_session = text(result, "sessionId") or (
        text(params, "sessionId") if method != "session/fork" else None
    )
    modes, models = obj(result, "modes"), obj(result, "models")
    if modes:
        known.mode, known.modes = text(modes, "currentModeId"), _choices(objects(modes, "availableModes"), "id")
    if models:
        known.model = text(models, "currentModelId")
        known.models = _choices(objects(models, "availableModels"), "modelId")
    _take_options(known, objects(result, "configOptions"))
    state.initialized = True
    out = [_description(state)]
    if known.options:
        out.append(fact(SessionUpdated(config_options=known.options)))
    return out


def _description(state: State) -> Out:
    known = state.known
    known.capabilities = capabilities(state)
    data = SessionInitialized(
        capabilities=known.capabilities,
        native_session=known.native_session,
        model=known.model,
        mode=known.mode,
        commands=known.commands,
        models=known.models,
        modes=known.modes,
        account=state.account,
        version=text(obj(state.agent, "agentInfo"), "version"),
    )
    return fact(data)


def capabilities(state: State) -> Capabilities:
    """What this agent has said it can do, and its profile of what the protocol has no word for."""
    has, known, profile = obj(state.agent, "agentCapabilities"), state.known, state.profile
    session = obj(has, "sessionCapabilities")
    return Capabilities(
        streaming=profile.streaming,
        interrupt=True,
        resume=has.get("loadSession") is True or "resume" in session,
        fork="fork" in session,
        model_switching=bool(known.models),
        mode_switching=bool(known.modes),
        thinking=option_of(known, THINKING) is not None,
        slash_commands=bool(known.commands),
        mcp=True,
        image_input=obj(has, "promptCapabilities").get("image") is True,
        cost_tracking=profile.cost,
        permissions=True,
        questions=profile.questions,
        plans=profile.plans,
        queueing=True,
        compaction=any(command.id == profile.compact for command in known.commands),
        terminal=profile.terminal is not None,
        native_protocol=True,
    )


def option_of(known: Known, category: str) -> Obj | None:
    """The config option of this category, or of this id where the agent names no category."""
    for key in ("category", "id"):
        for option in known.options:
            if text(option, key) == category:
                return option
    return None


def choices_of(option: Obj) -> list[Choice]:
    """What a config option may be set to; groups are one list."""
    found: list[Obj] = []
    for one in objects(option, "options"):
        found += objects(one, "options") if "options" in one else [one]
    return _choices(found, "value")


def _choices(natives: list[Obj], key: str) -> list[Choice]:
    return [
        Choice(id=name, name=text(one, "name"), description=text(one, "description"))
        for one in natives
        if (name := text(one, key)) is not None
    ]


def _take_options(known: Known, options: list[Obj]) -> None:
    """Config options win over `modes` and `models`, which older agents send."""
    if not options:
        return
    known.options = options
    if (mode := option_of(known, MODE)) is not None:
        known.mode, known.modes = text(mode, "currentValue"), choices_of(mode)
    if (model := option_of(known, MODEL)) is not None:
        known.model, known.models = text(model, "currentValue"), choices_of(model)
    if (thinking := option_of(known, THINKING)) is not None:
        known.thinking = text(thinking, "currentValue")


def options_updated(state: State, update: Obj) -> list[Out]:
    """`config_option_update`, or the same as an answer."""
    options, known = objects(update, "configOptions"), state.known
    if not options or options == known.options:
        return []
    before = {"mode": known.mode, "model": known.model, "thinking": known.thinking, "models": known.models}
    _take_options(known, options)
    after = {"mode": known.mode, "model": known.model, "thinking": known.thinking, "models": known.models}
    changed: dict[str, Any] = {name: value for name, value in after.items() if value != before[name]}
    out: list[Out] = [fact(SessionUpdated(config_options=options, **changed))]
    if state.initialized and capabilities(state) != known.capabilities:
        out.insert(0, _description(state))  # an agent that tells its options only now can do more than it said
    return out


def _changed(state: State, **fields: str | None) -> list[Out]:
    """Model or mode is this now, if it was not."""
    news = {name: value for name, value in fields.items() if value is not None and value != getattr(state.known, name)}
    for name, value in news.items():
        setattr(state.known, name, value)
    return [fact(SessionUpdated(**cast("dict[str, Any]", news)))] if news else []


def mode_changed(state: State, mode: str | None) -> list[Out]:
    return _changed(state, mode=mode)


def commands_updated(state: State, update: Obj) -> list[Out]:
    commands = [
        Choice(id=name, description=text(one, "description"), hint=text(obj(one, "input"), "hint"))
        for one in objects(update, "availableCommands")
        if (name := text(one, "name")) is not None
    ]
    if commands == state.known.commands:
        return []
    state.known.commands = commands
    if not state.initialized:
        return []  # they go into the description
    if capabilities(state) != state.known.capabilities:
        # With its commands, which agents tell only now, it can do more, or less.
        return [_description(state)]
    return [fact(SessionUpdated(commands=commands))]


def info_updated(state: State, update: Obj) -> list[Out]:
    title = text(update, "title")
    if title is None or title == state.known.title:
        return []
    state.known.title = title
    return [fact(SessionUpdated(title=title))]


def usage_updated(state: State, update: Obj) -> list[Out]:
    said = {key: update.get(key) for key in ("used", "size", "cost")}
    if said == state.known.usage:
        return []
    state.known.usage = said
    note_context(state, update)
    usage = Usage(context_used=state.context_used, context_size=state.context_size)
    return [fact(UsageUpdated(usage=usage, total_cost_usd=total_cost(state)))]


def plan_updated(update: Obj) -> list[Out]:
    """`plan`, and `plan_update` with entries, a text or a file."""
    plan = obj(update, "plan") or update
    entries = [_entry(one) for one in objects(plan, "entries")]
    if not entries and (said := text(plan, "content") or text(plan, "markdown") or text(plan, "uri")) is not None:
        entries = [PlanEntry(content=said)]
    return [fact(PlanUpdated(entries=entries))]


def _entry(native: Obj) -> PlanEntry:
    status, priority = text(native, "status"), text(native, "priority")
    return PlanEntry(
        content=text(native, "content") or "",
        status=status if status in ("pending", "in_progress", "completed") else "pending",
        priority=priority if priority in ("high", "medium", "low") else None,
    )


def noticed(update: Obj) -> list[Out]:
    said = "\n".join(one for one in (text(update, "title"), text(update, "description")) if one)
    severity = text(update, "severity")
    level = severity if severity in ("info", "warning", "error") else "info"
    return [fact(MessageSystem(text=said, level=level, kind="notice"))] if said else []


def compaction_updated(state: State, update: Obj) -> list[Out]:
    """Compactions begin with a status, and end with what they kept."""
    name = text(update, "compactionId") or ""
    summary = join_text([block_of(one) for one in objects(update, "summary")])
    match text(update, "status"):
        case "in_progress":
            begun = name not in state.compacting
            state.compacting[name] = [summary] if summary else state.compacting.get(name, [])
            return [fact(SessionStatus(status="compacting"))] if begun else []
        case "completed":
            said = summary or "".join(state.compacting.get(name, []))
            out = _compacted(state, name)
            out.append(fact(SessionCompacted(trigger="agent")))
            return [*out, fact(MessageSystem(text=said, kind="compaction"))] if said else out
        case "failed" | "cancelled" as status:
            said = text(update, "error") or f"the compaction was {status}"
            return [*_compacted(state, name), fact(MessageSystem(text=said, level="warning", kind="compaction"))]
        case _:
            return []


def _compacted(state: State, name: str) -> list[Out]:
    return [fact(SessionStatus(status=None))] if state.compacting.pop(name, None) is not None else []


def summary_chunk(state: State, update: Obj) -> list[Out]:
    block = block_of(obj(update, "content"))
    state.compacting.setdefault(text(update, "compactionId") or "", []).append(join_text([block]))
    return []


_TASK_STATES: Final[dict[str, Literal["running", "pending", "completed", "failed", "stopped"]]] = {
    "running": "running",
    "idle": "completed",
    "requires_action": "running",
}


def subagent_updated(update: Obj) -> list[Out]:
    """A child session of the agent."""
    task = text(update, "sessionId")
    if task is None:
        return []
    status = _TASK_STATES.get(text(obj(update, "state"), "state") or text(update, "state") or "")
    return [
        fact(
            TaskUpdated(
                task=task,
                kind="subagent",
                status=status,
                description=text(update, "title"),
                summary=text(update, "description"),
            )
        )
    ]


def account_told(state: State, params: Obj) -> list[Out]:
    """How the agent is signed in; it goes into the session's description."""
    told = obj(params, "authStatus") or params
    state.account = {key: value for key, value in told.items() if isinstance(value, str | bool)}
    return []
