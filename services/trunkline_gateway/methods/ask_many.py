"""`ask.answer_many`: one answer to many asks, each decided and reported by itself."""

import asyncio
import hashlib
from typing import Final, Literal, NotRequired, TypedDict

from trunkline_fold.asks import Ask
from trunkline_fold.policy import apart, paths, shell
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.methods.asks import answering, give
from trunkline_gateway.registry import Params, method
from trunkline_gateway.sight import Sight
from trunkline_wire import Answer, ErrorInfo, TrunklineError, timestamp
from trunkline_wire.asks import AskDecided, PermissionRequested, QuestionAsked
from trunkline_wire.blocks import Json, ToolKind
from trunkline_wire.ids import check_id, new_command_id

MAX_ASKS: Final = 200
AT_ONCE: Final = 16


class AnswerMany(Params, frozen=True, kw_only=True):
    """Which asks: a list, or filters, all of which must fit; `all` for every open permission. A session has its lanes with it,
    a team its lead and all its members.

    `tool` is a glob on the tool's name, `command` one on its command line: to allow it is read narrowly, to deny widely,
    as a policy's is. With `dry_run` nothing is answered. `id` makes a repetition harmless.
    """

    behaviour: Literal["allow", "deny"]
    asks: list[str] | None = None
    session: str | None = None
    team: str | None = None
    workspace: str | None = None
    tool: str | None = None
    kind: ToolKind | None = None
    command: str | None = None
    all: bool = False
    message: str | None = None
    dry_run: bool = False
    id: str | None = None


class Considered(TypedDict):
    """An ask. Where it was answered, what became of it: `outcome`, with the `decision`, the `votes` so far or the `error`."""

    ask: str
    session: str
    lane: str | None
    requested: Json
    """Of a permission or a plan."""
    outcome: NotRequired[Literal["decided", "voted", "refused"]]
    decision: NotRequired[AskDecided]
    votes: NotRequired[int]
    quorum: NotRequired[int]
    answer: NotRequired[str]
    error: NotRequired[ErrorInfo]


class AnsweredMany(TypedDict):
    dry_run: bool
    asks: list[Considered]
    id: str


@method("ask.answer_many", "approver", AnswerMany, acts_as_person=True, limited="itself")
async def answer_many(gateway: Gateway, caller: Caller, params: AnswerMany) -> AnsweredMany:
    """Allow or deny many asks at once, each by itself: `asks` says of every one what became of it, or would be answered."""
    id_ = check_id(params.id, "cmd") if params.id is not None else new_command_id()
    chosen = _chosen(gateway, caller, params)
    if params.dry_run:
        return {"dry_run": True, "asks": [_shown(record) for record in chosen], "id": id_}
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(record: Ask) -> Considered:
        async with turns:
            try:
                outcome = await give(gateway, record, _answer(caller, params, record, id_))
            except TrunklineError as error:
                return {**_shown(record), "outcome": "refused", "error": ErrorInfo.of(error)}
            return {**_shown(record), **outcome}

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(record)) for record in chosen]
    return {"dry_run": False, "asks": [task.result() for task in tasks], "id": id_}


def _chosen(gateway: Gateway, caller: Caller, params: AnswerMany) -> list[Ask]:
    sight = Sight(gateway.directory, caller.principal.scope)
    filters = (params.session, params.team, params.workspace, params.tool, params.kind, params.command)
    if params.asks is None and not params.all and all(one is None for one in filters):
        raise TrunklineError(
            "bad_params", "say which asks: `asks`, `session`, `team`, `workspace`, `tool`, `kind`, `command`, or `all`"
        )
    if params.asks is not None:
        found = [_known(gateway, sight, ask) for ask in dict.fromkeys(params.asks)]
    else:
        found = [record for record in sight.asks() if record.status == "open" and record.kind == "permission"]
    if params.team is not None:
        of_team = gateway.boards.find(gateway.directory, caller.principal.scope, params.team).sessions
        found = [record for record in found if record.session in of_team]
    found = [record for record in found if _fits(gateway, record, params)]
    if len(found) > MAX_ASKS:
        raise TrunklineError("too_large", f"{len(found)} asks are more than {MAX_ASKS} at once: narrow it down")
    return sorted(found, key=_by_sequence)


def _by_sequence(record: Ask) -> int:
    return record.sequence


def _known(gateway: Gateway, sight: Sight, ask: str) -> Ask:
    record = gateway.directory.ask(check_id(ask, "ask"))
    if record is None or not sight.holds(record.session):
        raise TrunklineError("unknown_ask", f"there is no ask {ask!r}", ask=ask)
    if isinstance(record.requested, QuestionAsked):
        raise TrunklineError("bad_answer", f"{ask!r} asks questions, which are answered one by one", ask=ask)
    return record


def _fits(gateway: Gateway, record: Ask, params: AnswerMany) -> bool:
    requested = record.requested
    state = gateway.directory.states.get(record.session)
    if params.session is not None and record.session != params.session:
        return False
    if params.workspace is not None and (state is None or state.workspace != params.workspace):
        return False
    if params.tool is None and params.kind is None and params.command is None:
        return True
    if not isinstance(requested, PermissionRequested):
        return False
    if params.tool is not None and not paths.text_glob(params.tool, requested.name):
        return False
    if params.kind is not None and requested.kind != params.kind:
        return False
    return params.command is None or _commanded(requested, params.command, params.behaviour)


def _commanded(requested: PermissionRequested, pattern: str, behaviour: str) -> bool:
    commands = shell.commands_of(requested.input)
    if behaviour == "deny":
        return any(apart.mentioned(pattern, apart.parts_of(command).texts) for command in commands)
    if not commands or paths.is_hidden(requested.input) or shell.is_steered(requested.input):
        return False
    return all(shell.allowed(pattern, command) for command in commands)


def _shown(record: Ask) -> Considered:
    return {"ask": record.ask, "session": record.session, "lane": record.lane, "requested": record.requested}


def _answer(caller: Caller, params: AnswerMany, record: Ask, id: str) -> Answer:
    wanted = "allow_once" if params.behaviour == "allow" else "reject_once"
    options = getattr(record.requested, "options", [])
    # Each has an id of its own, the same when the whole is repeated.
    digest = hashlib.sha256(f"{id} {record.ask}".encode()).hexdigest()[:32]
    return Answer(
        id=f"cmd_{digest}",
        session=record.session,
        ask=record.ask,
        behaviour=params.behaviour,
        time=timestamp(),
        option=next((option.id for option in options if option.kind == wanted), None),
        message=params.message,
        source=answering(caller),
    )
