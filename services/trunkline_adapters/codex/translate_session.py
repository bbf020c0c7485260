"""What the session is: answers to our requests, and its settings."""

from typing import Final

from trunkline_adapters.codex import modes, survival
from trunkline_adapters.codex.native import OPENING
from trunkline_adapters.codex.state import State, changed, fact
from trunkline_adapters.codex.translate_begin import answered
from trunkline_agentkit.fields import Obj, obj, objects, text, truth
from trunkline_agentkit.protocol import Out
from trunkline_wire.blocks import Choice
from trunkline_wire.session import SessionInitialized
from trunkline_wire.turn import MessageSystem

REVIEW: Final = Choice(
    id="review",
    name="Review",
    description="Reviews the changes that are not committed, or what is named",
    hint="[branch <name> | commit <sha> | <instructions>]",
)


def replied(state: State, key: str, method: str, params: Obj, result: Obj) -> list[Out]:
    """The server's answer to our request `method`; `key` is its id."""
    out = answered(state, key, result)
    match method:
        case "initialize":
            state.version = _version(result)
        case "account/read":
            state.account = obj(result, "account")
        case "model/list":
            state.models += objects(result, "data")
        case "skills/list":
            _skills(state, result)
        case "thread/turns/list" if state.lost and text(params, "itemsView") == "summary":
            survival.find_turn(state, result)
        case "thread/turns/list" if state.lost:
            out += survival.listed(state, text(params, "threadId") or "", result)
        case "thread/resume" if state.lost:
            out += survival.resumed(state, result)
        case _ if method in OPENING:
            out += _opened(state, result)
        case _:
            pass
    return out


def _version(result: Obj) -> str | None:
    """The version in `name/0.171.0 (…)`."""
    agent = text(result, "userAgent") or ""
    _, _, rest = agent.partition("/")
    return rest.split(" ", 1)[0] or None


def _skills(state: State, result: Obj) -> None:
    found = [skill for entry in objects(result, "data") for skill in objects(entry, "skills")]
    enabled = {name: skill for skill in found if truth(skill, "enabled") and (name := text(skill, "name"))}
    state.skills = {name: text(skill, "path") or "" for name, skill in enabled.items()}
    state.commands = [
        Choice(id=name, description=text(skill, "shortDescription") or text(skill, "description"))
        for name, skill in enabled.items()
    ]


def _opened(state: State, result: Obj) -> list[Out]:
    """The answer to `thread/start`, `thread/resume` or `thread/fork`: the session's own thread."""
    thread = obj(result, "thread")
    id = text(thread, "id")
    if id is None:
        return []
    if state.thread is not None:
        # A thread that is none of ours.
        return []
    state.thread = id
    known = state.known
    known.model = text(result, "model")
    known.mode = modes.mode_of(result)
    known.thinking = text(result, "reasoningEffort")
    known.title = text(thread, "name")
    known.workspace = modes.workspace_of(obj(result, "sandbox"))
    data = SessionInitialized(
        capabilities=state.capabilities,
        native_session=id,
        attach=f"{state.join} {id}" if state.join is not None else None,
        incarnation=state.context.incarnation,
        model=known.model,
        mode=known.mode,
        commands=[REVIEW, *state.commands],
        models=[_model(one, known.model) for one in state.models if not truth(one, "hidden")],
        modes=modes.choices(known.mode),
        mcp_servers=list(state.mcp_servers.values()),
        account={name: value for name, value in state.account.items() if value is not None},
        version=state.version or text(thread, "cliVersion"),
    )
    return [fact(data)]


def _model(native: Obj, current: str | None) -> Choice:
    id = text(native, "model") or text(native, "id") or ""
    efforts = [text(one, "reasoningEffort") or "" for one in objects(native, "supportedReasoningEfforts")]
    return Choice(
        id=id,
        name=text(native, "displayName"),
        description=text(native, "description"),
        hint=f"thinking: {', '.join(efforts)}" if efforts else None,
        current=True if id == current else None,
    )


def settings_updated(state: State, params: Obj) -> list[Out]:
    """`thread/settings/updated`: only what has changed is told."""
    settings = obj(params, "threadSettings")
    state.known.workspace = modes.workspace_of(obj(settings, "sandboxPolicy")) or state.known.workspace
    mode = modes.mode_of(settings)
    fresh = {"model": text(settings, "model"), "mode": mode, "thinking": text(settings, "effort")}
    return changed(state, fresh)


def renamed(state: State, params: Obj) -> list[Out]:
    return changed(state, {"title": text(params, "threadName")})


def reverted(state: State) -> list[Out]:
    """`thread/reverted`: the conversation goes on from an earlier turn; files stay as they are."""
    state.totals.pop(state.thread or "", None)
    said = "The conversation was taken back to an earlier turn; files are as they were"
    return [fact(MessageSystem(text=said, kind="reverted"))]
