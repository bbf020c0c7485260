"""What the session is: what the server says about itself, and what changes of the session."""

from typing import Any, Final

from trunkline_adapters.opencode.content import COMMAND
from trunkline_adapters.opencode.state import State, fact
from trunkline_adapters.opencode.usage import counts, usage_of
from trunkline_agentkit.fields import Obj, as_obj, items, obj, objects, strings, text, truth, whole
from trunkline_agentkit.protocol import Out
from trunkline_wire.blocks import Choice
from trunkline_wire.session import McpServer, SessionCompacted, SessionInitialized, SessionUpdated
from trunkline_wire.turn import MessageSystem
from trunkline_wire.work import DiffUpdated, PlanEntry, PlanUpdated, UsageUpdated

SHELL: Final = Choice(
    id="shell", name="Shell", description="Runs a command in the session's directory, and shows it to the model"
)
COMPACT: Final = Choice(id="compact", name="Compact", description="Replaces what was said by a summary")

_DIFFS: Final = 8
_PRIORITIES: Final = ("high", "medium", "low")


def learned(state: State, request: str, body: Any) -> bool:
    """Keeps what the server says about itself; False for the answer to another request."""
    known = state.learned
    match request.partition("?")[0]:
        case "GET /global/health":
            known.version = text(as_obj(body), "version")
        case "GET /config":
            known.config = as_obj(body)
        case "GET /config/providers":
            known.providers = objects(as_obj(body), "providers")
            known.defaults = obj(as_obj(body), "default")
        case "GET /agent":
            known.agents = objects({"agents": body}, "agents")
        case "GET /command":
            known.commands = objects({"commands": body}, "commands")
        case "GET /experimental/tool/ids":
            known.tools = strings(items({"ids": body}, "ids"))
        case "GET /mcp" | "POST /mcp":
            known.mcp = as_obj(body)
        case _:
            return False
    return True


def opened(state: State, info: Obj) -> list[Out]:
    """The session's own is there: created, taken up or copied."""
    id = text(info, "id")
    if id is None:
        return []
    state.session = id
    known, about = state.known, state.learned
    known.mode = text(info, "agent") or default_mode(state)
    known.model = model_of(obj(info, "model")) or default_model(state, known.mode)
    known.title = text(info, "title")
    state.totals = counts(info)
    data = SessionInitialized(
        capabilities=state.capabilities,
        native_session=id,
        attach=f"{state.join} {id}" if state.join is not None else None,
        incarnation=state.context.incarnation,
        model=known.model,
        mode=known.mode,
        tools=about.tools,
        mcp_servers=[
            McpServer(name=name, status=text(as_obj(one), "status"), error=text(as_obj(one), "error"))
            for name, one in about.mcp.items()
        ],
        commands=commands_of(state),
        models=[model_choice(one, known.model) for one in models_of(state)],
        modes=[_agent_choice(one, known.mode) for one in modes_of(state)],
        agents=[_agent_choice(one, None) for one in about.agents if text(one, "mode") in {"subagent", "all"}],
        version=about.version or text(info, "version"),
    )
    return [fact(data)]


def modes_of(state: State) -> list[Obj]:
    """The agents that people choose from."""
    return [one for one in state.learned.agents if text(one, "mode") != "subagent" and not truth(one, "hidden")]


def default_mode(state: State) -> str:
    """The agent that a session begins with."""
    names = strings(text(one, "name") for one in modes_of(state))
    wanted = text(state.learned.config, "default_agent") or state.profile.mode
    return wanted if wanted in names or not names else names[0]


def models_of(state: State) -> list[Obj]:
    """All models of all providers that are set up."""
    return [
        as_obj(model) | {"providerID": text(provider, "id"), "provider": text(provider, "name")}
        for provider in state.learned.providers
        for model in obj(provider, "models").values()
    ]


def default_model(state: State, mode: str | None) -> str | None:
    """The model that is asked where the session names none: the agent's own, the configured one, or the first provider's."""
    agent = next((one for one in state.learned.agents if text(one, "name") == mode), {})
    own = model_of(obj(agent, "model")) or text(state.learned.config, "model")
    if own is not None:
        return own
    for provider in state.learned.providers:
        id = text(provider, "id")
        if id is not None and (name := text(state.learned.defaults, id)) is not None:
            return f"{id}/{name}"
    return None


def model_of(native: Obj) -> str | None:
    """`provider/model`, as OpenCode writes it in its configuration."""
    provider, name = text(native, "providerID"), text(native, "id") or text(native, "modelID")
    return f"{provider}/{name}" if provider is not None and name is not None else None


def model_choice(native: Obj, current: str | None) -> Choice:
    id = model_of(native) or ""
    levels = sorted(obj(native, "variants"))
    return Choice(
        id=id,
        name=text(native, "name"),
        description=text(native, "provider"),
        hint=f"thinking: {', '.join(levels)}" if levels else None,
        current=True if id == current else None,
    )


def _agent_choice(native: Obj, current: str | None) -> Choice:
    name = text(native, "name") or ""
    return Choice(
        id=name, name=name, description=text(native, "description"), current=True if name == current else None
    )


def commands_of(state: State) -> list[Choice]:
    own = [
        Choice(id=name, description=text(one, "description"), hint=" ".join(strings(items(one, "hints"))) or None)
        for one in state.learned.commands
        if (name := text(one, "name"))
    ]
    names = {one.id for one in own}
    return own + [one for one in (SHELL, COMPACT) if one.id not in names]


def session_updated(state: State, info: Obj) -> list[Out]:
    """`session.updated`: only what has changed is told."""
    fresh: dict[str, Any] = {
        "title": text(info, "title"),
        "mode": text(info, "agent"),
        "model": model_of(obj(info, "model")),
    }
    changed = {name: value for name, value in fresh.items() if value and value != getattr(state.known, name)}
    out: list[Out] = []
    if changed:
        for name, value in changed.items():
            setattr(state.known, name, value)
        out.append(fact(SessionUpdated(**changed)))
    total = counts(info)
    if obj(info, "tokens") and total != state.totals:
        state.totals = total
        usage = usage_of(total, context_used=state.context_used, context_size=_context_size(state))
        out.append(fact(UsageUpdated(usage=usage, total_cost_usd=total.cost)))
    return out


def _context_size(state: State) -> int | None:
    model = next((one for one in models_of(state) if model_of(one) == state.known.model), {})
    return whole(obj(model, "limit"), "context") or None


def compacted(state: State) -> list[Out]:
    """`session.compacted`."""
    state.condition = None
    data = SessionCompacted(trigger=state.compact_trigger, before=state.compacting_from)
    state.compacting_from = None
    return [fact(data)]


def todo(properties: Obj, lane: str | None) -> list[Out]:
    """`todo.updated`."""
    entries: list[PlanEntry] = []
    for one in objects(properties, "todos"):
        status, priority = text(one, "status"), text(one, "priority")
        if status == "cancelled":
            continue
        entries.append(
            PlanEntry(
                content=text(one, "content") or "",
                status=status if status in ("in_progress", "completed") else "pending",
                priority=next((word for word in _PRIORITIES if word == priority), None),
            )
        )
    return [fact(PlanUpdated(entries=entries), lane=lane)]


def diff_told(state: State, message: str, diffs: list[Obj], lane: str | None) -> list[Out]:
    """What was changed by the turn of a user message, where it has not been told."""
    diff = "\n".join(patch.removesuffix("\n") for one in diffs if (patch := text(one, "patch")))
    if not diff or diff == state.diffs.get(message):
        return []
    state.diffs[message] = diff
    if len(state.diffs) > _DIFFS:
        del state.diffs[next(iter(state.diffs))]
    return [fact(DiffUpdated(diff=diff), lane=lane)]


def reverted(state: State, info: Obj) -> list[Out]:
    """The answer to a `revert` or `unrevert` of ours."""
    state.users.clear()
    undone = obj(info, "revert")
    said = (
        "The conversation and the files were taken back to before an earlier message; the next prompt makes it final"
        if undone
        else "What was taken back is there again"
    )
    return [fact(MessageSystem(text=said, kind="reverted" if undone else "unreverted"))]


def prompt_of(messages: list[Obj], command: str) -> str | None:
    """The user message that a command has brought, among messages as they are read back."""
    for message in messages:
        if any(text(obj(part, "metadata"), COMMAND) == command for part in objects(message, "parts")):
            return text(obj(message, "info"), "id")
    return None
