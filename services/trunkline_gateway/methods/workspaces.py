"""`workspace.*` and `usage.*`: the sessions of a directory, and what they cost."""

from collections.abc import Iterable
from typing import Any, Final, Literal, TypedDict, cast

import msgspec
import nats.errors

from trunkline_fold.session import SessionState
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Page, Paged, Params, method, page_of
from trunkline_gateway.roles import out_of_scope
from trunkline_gateway.sight import Sight
from trunkline_wire import TrunklineError, encode, subjects
from trunkline_wire.ids import check_id, check_token, workspace_id

ANSWER_S: Final = 25.0
RECENT: Final = 20


class List(Paged, frozen=True, kw_only=True):
    host: str | None = None
    search: str | None = None


class WorkspaceSummary(TypedDict):
    """A directory of a host: how many `sessions`, by status, open asks in all of them, and the time of the latest event."""

    workspace: str | None
    host: str | None
    cwd: str | None
    sessions: int
    statuses: dict[str, int]
    open_asks: int
    cost_usd: float
    updated: str | None


class WorkspacePage(Page):
    workspaces: list[WorkspaceSummary]


@method("workspace.list", "viewer", List, limited="itself")
async def list_(gateway: Gateway, caller: Caller, params: List) -> WorkspacePage:
    """The directories that have sessions, the one with the latest event first; `search` is looked for in the path."""
    groups: dict[str, list[SessionState]] = {}
    for state in Sight(gateway.directory, caller.principal.scope).states():
        wanted = params.host is None or state.host == params.host
        if state.workspace and wanted and (params.search or "").casefold() in (state.cwd or "").casefold():
            groups.setdefault(state.workspace, []).append(state)
    found, page = page_of(list(groups.values()), params)
    return {"workspaces": [_summary(states) for states in found], **page}


class One(Params, frozen=True, kw_only=True):
    workspace: str


class WorkspaceNow(WorkspaceSummary):
    recent: list[SessionState]


@method("workspace.get", "viewer", One, limited="itself")
async def get(gateway: Gateway, caller: Caller, params: One) -> WorkspaceNow:
    """A directory with its latest sessions."""
    check_id(params.workspace, "ws")
    states = _of(gateway, caller, params.workspace)
    if not states:
        raise TrunklineError("unknown_workspace", f"no session of workspace {params.workspace!r} is known")
    return {**_summary(states), "recent": states[:RECENT]}


class Directory(Params, frozen=True, kw_only=True):
    directory: str
    host: str | None = None


class NativeHistory(TypedDict):
    """What an agent ran without Trunkline: its own id, and what its file says."""

    native: str
    agent: str
    title: str | None
    model: str | None
    began: str | None
    ended: str | None
    turns: int
    messages: int


class WorkspaceFound(WorkspaceNow):
    histories: list[NativeHistory]


class Directories(TypedDict):
    path: str
    parent: str | None
    directories: list[str]
    has_more: bool


@method("workspace.get_or_create", "participant", Directory, limited="itself")
async def get_or_create(gateway: Gateway, caller: Caller, params: Directory) -> WorkspaceFound:
    """The workspace of a directory, whether it has sessions or not, with its latest ones.

    `histories` are what agents ran there without Trunkline and what is not imported yet (`trunkline import`).
    """
    host = check_token(params.host) if params.host is not None else gateway.workers.place(gateway.host)
    listed = await ask_host(gateway, host, "directories", params.directory)
    workspace = workspace_id(host, listed["path"])
    scope = caller.principal.scope
    if not scope.whole and workspace not in scope.workspaces:
        raise out_of_scope(f"the directory {params.directory!r}")
    histories = await ask_host(gateway, host, "histories", listed["path"])
    states = _of(gateway, caller, workspace)
    known = {native for state in gateway.directory.states.values() for native in state.aliases}
    about = _summary(states) if states else _empty(workspace, host, listed["path"])
    return {
        **about,
        "recent": states[:RECENT],
        "histories": [one for one in histories["histories"] if one["native"] not in known],
    }


@method("host.directories", "participant", Directory)
async def directories(gateway: Gateway, _: Caller, params: Directory) -> Directories:
    """The directories in one of a host's, to choose from; `~` is the home of its worker's user."""
    host = check_token(params.host) if params.host is not None else gateway.workers.place(gateway.host)
    return cast("Directories", await ask_host(gateway, host, "directories", params.directory))


class Sums(Params, frozen=True, kw_only=True):
    by: Literal["session", "workspace", "agent", "model", "host"] = "agent"
    session: str | None = None
    workspace: str | None = None
    limit: int = 100


class Used(TypedDict):
    """Tokens, cost (USD) and turns of so many sessions."""

    sessions: int
    turns: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    cost_usd: float


class UsedBy(Used):
    key: str


class UsageSums(TypedDict):
    total: Used
    by: Literal["session", "workspace", "agent", "model", "host"]
    rows: list[UsedBy]
    has_more: bool


@method("usage.get", "viewer", Sums, limited="itself")
async def usage(gateway: Gateway, caller: Caller, params: Sums) -> UsageSums:
    """Tokens, cost (USD) and turns, in all and by session, workspace, agent, model or host; the most expensive first."""
    states = [
        state
        for state in Sight(gateway.directory, caller.principal.scope).states()
        if params.session in (None, state.session) and params.workspace in (None, state.workspace)
    ]
    rows: dict[str, _Sum] = {}
    for state in states:
        if params.by == "model":
            for model, used in state.usage_by_model.items():
                rows.setdefault(model, _Sum()).add(used, used.cost_usd, state.turns)
        else:
            key = getattr(state, params.by) or state.adapter or "unknown"
            rows.setdefault(key, _Sum()).add(state.usage, state.cost_usd, state.turns)
    total = _Sum()
    for state in states:
        total.add(state.usage, state.cost_usd, state.turns)
    ordered = sorted(rows.items(), key=lambda row: (-row[1].cost_usd, -row[1].output, row[0]))
    return {
        "total": total.told(),
        "by": params.by,
        "rows": [{"key": key, **row.told()} for key, row in ordered[: max(1, params.limit)]],
        "has_more": len(ordered) > params.limit,
    }


class _Sum(msgspec.Struct):
    sessions: int = 0
    turns: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float = 0.0

    def add(self, used: Any, cost: float | None, turns: int) -> None:
        self.sessions += 1
        self.turns += turns
        self.cost_usd += cost or 0.0
        for name in ("input", "output", "cache_read", "cache_write"):
            setattr(self, name, getattr(self, name) + getattr(used, name))

    def told(self) -> Used:
        return cast("Used", msgspec.structs.asdict(self))


async def ask_host(gateway: Gateway, host: str, question: str, path: str) -> dict[str, Any]:
    """A host's answer. Raises TrunklineError: the host's own, or `no_worker` where nobody of it is there."""
    subject = subjects.host(host, question)
    try:
        reply = await gateway.bus.commands.request(subject, encode({"path": path}), timeout=ANSWER_S)
    except (TimeoutError, nats.errors.NoRespondersError, nats.errors.TimeoutError) as error:
        raise TrunklineError(
            "no_worker", f"nobody answers for host {host!r}: `worker.list` shows who is there", host=host
        ) from error
    answer = msgspec.json.decode(reply.data)
    if "error" in answer:
        raise TrunklineError(answer["error"]["code"], answer["error"]["message"], **answer["error"].get("details", {}))
    return answer["result"]


def _of(gateway: Gateway, caller: Caller, workspace: str) -> list[SessionState]:
    seen = Sight(gateway.directory, caller.principal.scope).states()
    return [state for state in seen if state.workspace == workspace]


def _empty(workspace: str, host: str, cwd: str) -> WorkspaceSummary:
    return {
        "workspace": workspace,
        "host": host,
        "cwd": cwd,
        "sessions": 0,
        "statuses": {},
        "open_asks": 0,
        "cost_usd": 0.0,
        "updated": None,
    }


def _summary(states: Iterable[SessionState]) -> WorkspaceSummary:
    """Of a workspace, from its sessions, the latest first."""
    every = list(states)
    latest = every[0]
    statuses: dict[str, int] = {}
    for state in every:
        statuses[state.status] = statuses.get(state.status, 0) + 1
    return {
        "workspace": latest.workspace,
        "host": latest.host,
        "cwd": latest.cwd,
        "sessions": len(every),
        "statuses": statuses,
        "open_asks": sum(len(state.open_asks) for state in every),
        "cost_usd": sum(state.cost_usd or 0.0 for state in every),
        "updated": latest.updated,
    }
