"""What Codex tells its user beside the turns: warnings, hooks, MCP servers, sign-in, limits."""

from typing import Final, Literal

from trunkline_adapters.codex.state import State, fact
from trunkline_adapters.codex.translate_begin import recover
from trunkline_agentkit.fields import Obj, obj, objects, text, truth, whole
from trunkline_agentkit.protocol import Out
from trunkline_wire.session import McpServer, SessionStatus, SessionUpdated
from trunkline_wire.turn import MessageSystem
from trunkline_wire.work import AuthUpdated, HookFired, UsageUpdated

_HOOKS: Final[dict[str, Literal["started", "completed", "failed"]]] = {
    "running": "started",
    "completed": "completed",
    "stopped": "completed",
    "blocked": "failed",
    "failed": "failed",
}
_REVIEWS: Final = {
    "approved": "allowed",
    "denied": "refused",
    "timedOut": "not decided in time",
    "aborted": "not decided",
}


def warned(state: State, method: str, params: Obj, lane: str | None) -> list[Out]:
    """A warning, told once."""
    said = [text(params, name) for name in ("message", "summary", "details", "path")]
    told = "\n".join(one for one in said if one)
    if not told or told in state.notices:
        return []
    state.notices.add(told)
    return [fact(MessageSystem(text=told, level="warning", kind=method), lane=lane)]


def hook(params: Obj, lane: str | None) -> list[Out]:
    """`hook/started` and `hook/completed`."""
    run = obj(params, "run")
    lines = [text(entry, "text") for entry in objects(run, "entries")]
    output = "\n".join(line for line in lines if line) or text(run, "statusMessage")
    data = HookFired(
        hook_event=text(run, "eventName") or "unknown",
        name=text(run, "sourcePath"),
        status=_HOOKS.get(text(run, "status") or "", "completed"),
        output=output,
        hook=text(run, "id"),
    )
    return [fact(data, lane=lane)]


def reviewed(state: State, method: str, params: Obj, lane: str | None) -> list[Out]:
    """An approval that Codex lets a model of its own decide."""
    if not method.endswith("completed"):
        return []
    review = obj(params, "review")
    outcome = _REVIEWS.get(text(review, "status") or "", "reviewed")
    rationale = text(review, "rationale")
    said = f"Codex's own reviewer: {outcome}" + (f" ({rationale})" if rationale else "")
    native = text(params, "targetItemId")
    item = state.item(state.native_item(text(params, "threadId"), native)) if native else None
    level = "info" if outcome == "allowed" else "warning"
    return [fact(MessageSystem(text=said, level=level, kind="approval_review"), item=item, lane=lane)]


def mcp_started(state: State, params: Obj) -> list[Out]:
    """`mcpServer/startupStatus/updated`: all servers, with what has changed about one."""
    name = text(params, "name")
    if name is None:
        return []
    server = McpServer(name=name, status=text(params, "status"), error=text(params, "error"))
    if state.mcp_servers.get(name) == server:
        return []
    state.mcp_servers[name] = server
    return [fact(SessionUpdated(mcp_servers=list(state.mcp_servers.values())))]


def signed_in(method: str, params: Obj) -> list[Out]:
    """Sign-in of the account, or of an MCP server."""
    if method == "account/updated":
        mode = text(params, "authMode")
        return [fact(AuthUpdated(methods=[mode] if mode else []))]
    name = text(params, "name")
    done = truth(params, "success")
    said = f"{name or 'Codex'} is signed in" if done else f"{name or 'Codex'} is not signed in"
    return [fact(AuthUpdated(output=[said], error=None if done else text(params, "error") or said))]


def recovering(state: State, method: str, params: Obj) -> list[Out]:
    """A model provider's sign-in is renewed."""
    if method.endswith("Completed"):
        return recover(state)
    state.condition = "authenticating"
    return [fact(SessionStatus(status="authenticating", reason=text(params, "message")))]


def limited(params: Obj) -> list[Out]:
    """`account/rateLimits/updated`, which is empty where nobody is signed in."""
    limits = obj(params, "rateLimits")
    said = any(limits.get(name) is not None for name in ("primary", "secondary", "credits", "individualLimit"))
    return [fact(UsageUpdated(rate_limits=limits))] if said else []


def rerouted(state: State, params: Obj) -> list[Out]:
    to = text(params, "toModel")
    if to is None:
        return []
    state.known.model = to
    said = f"Codex uses {to} instead of {text(params, 'fromModel') or 'the model that was chosen'}"
    reason = text(params, "reason")
    notice = MessageSystem(text=f"{said} ({reason})" if reason else said, level="warning", kind="model_rerouted")
    return [fact(SessionUpdated(model=to)), fact(notice)]


def goal(params: Obj) -> list[Out]:
    found = obj(params, "goal")
    objective = text(found, "objective")
    if objective is None:
        return []
    used, budget = whole(found, "tokensUsed"), whole(found, "tokenBudget")
    spent = f", {used} of {budget} tokens" if budget else ""
    said = f"Goal ({text(found, 'status') or 'set'}{spent}): {objective}"
    return [fact(MessageSystem(text=said, kind="goal"))]


def disconnected(params: Obj) -> list[Out]:
    said = f"The environment {text(params, 'environmentId') or '?'} is not connected any more"
    return [fact(MessageSystem(text=said, level="warning", kind="environment"))]
