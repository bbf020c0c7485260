"""`session.*`: list, get, and the commands."""

import functools
from contextlib import AsyncExitStack
from typing import Any, Final, Literal, NotRequired, TypedDict

import msgspec
from msgspec.structs import replace

from trunkline_fold.asks import Ask
from trunkline_fold.session import SessionState
from trunkline_gateway.agents import refuse_agents
from trunkline_gateway.blocks import OpenBlock
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.privileges import role_for_verb
from trunkline_gateway.registry import EventAt, Page, Paged, Params, method, page_of
from trunkline_gateway.sight import Sight
from trunkline_gateway.snapshot import MESSAGES, check_count, latest_messages
from trunkline_wire import Data, ErrorInfo, TrunklineError, encode, make_command, timestamp
from trunkline_wire.blocks import Block, Json, TextBlock, ThinkingBlock, text_of
from trunkline_wire.commands import VERBS, Close, Interrupt, Prompt, Steer
from trunkline_wire.events import Source
from trunkline_wire.ids import check_id, new_command_id
from trunkline_wire.work import CommandFailed, CommandFinished

OUTCOME_S: Final = 30.0
MAX_CONTENT: Final = 400 * 1024
MAX_ROUTE: Final = 256
NEW_TURN_VERBS: Final = frozenset({"run_command", "compact", "fork", "resume"})


class List(Paged, frozen=True, kw_only=True):
    search: str | None = None
    status: list[str] | None = None
    workspace: str | None = None
    host: str | None = None
    adapter: str | None = None
    agent: str | None = None
    parent: str | None = None
    open: bool | None = None
    archived: bool | None = None

    def wants(self, state: SessionState) -> bool:
        exact = (
            (self.workspace, state.workspace),
            (self.host, state.host),
            (self.adapter, state.adapter),
            (self.agent, state.agent),
            (self.parent, state.parent),
            (self.open, state.closed is None),
            (self.archived, state.archived),
        )
        if any(wanted is not None and wanted != value for wanted, value in exact):
            return False
        if self.status is not None and state.status not in self.status:
            return False
        if not self.search:
            return True
        shown = (state.title, state.cwd, state.session, state.agent, state.adapter, state.last_text)
        return any(self.search.casefold() in text.casefold() for text in shown if text)


class SessionPage(Page):
    sessions: list[SessionState]


@method("session.list", "viewer", List, limited="itself")
async def list_(gateway: Gateway, caller: Caller, params: List) -> SessionPage:
    """The sessions, the one with the latest event first; all the filters that are given must match.

    `search` is looked for in title, directory, id, agent and the latest text, whatever its case.
    """
    states = [state for state in Sight(gateway.directory, caller.principal.scope).states() if params.wants(state)]
    sessions, page = page_of(states, params)
    return {"sessions": sessions, **page}


class One(Params, frozen=True, kw_only=True):
    session: str


class Get(One, frozen=True, kw_only=True):
    messages: int = MESSAGES
    """How many of the latest messages are told, at most MAX_MESSAGES."""


class SessionNow(TypedDict):
    state: SessionState
    asks: list[Ask]
    messages: list[EventAt]
    blocks: list[OpenBlock]


@method("session.get", "viewer", Get)
async def get(gateway: Gateway, _: Caller, params: Get) -> SessionNow:
    """A session as of the log's end: its state, its asks, the latest messages as events, and what is being written now.

    `blocks` are the texts so far of open blocks; a subscription's snapshot says the same, and follows it.
    """
    check_id(params.session, "ses")
    check_count(params.messages)
    state = await gateway.directory.session(params.session)
    async with AsyncExitStack() as stack:
        channel = None if state.turn is None else await stack.enter_async_context(gateway.hub.channel(params.session))
        # All of one moment: no await in between.
        position, asks = gateway.directory.position, list(gateway.directory.asks(params.session))
        state, blocks = (
            gateway.directory.states.get(params.session, state),
            [] if channel is None else channel.blocks.open(),
        )
    messages = await latest_messages(gateway, params.session, params.messages, until=position)
    return {"state": state, "asks": asks, "messages": messages, "blocks": blocks}


class CommandSent(TypedDict):
    """`sequence` is the command's in the log of commands. Where it was waited for, `outcome` says what became of it:
    `how` and `result` of one that has finished, `error` of one that has not.
    """

    command: str
    sequence: int
    outcome: NotRequired[Literal["finished", "failed", "rejected"]]
    how: NotRequired[str | None]
    result: NotRequired[Json]
    error: NotRequired[ErrorInfo]


class PromptParams(Params, frozen=True, kw_only=True):
    session: str
    text: str | None = None
    content: list[Block] | None = None
    id: str | None = None
    delivery: Literal["auto", "queue", "steer"] = "auto"
    route: str | None = None
    """An extension's own address: it is in the source of every event of the turn, as `<name>/<route>`."""


@method("session.prompt", "participant", PromptParams)
async def prompt(gateway: Gateway, caller: Caller, params: PromptParams) -> CommandSent:
    """Send a user message. Returns when it is in the log of commands; the same `id` again is the same command."""
    if (params.text is None) == (params.content is None):
        raise TrunklineError("bad_params", "give either `text` or `content`", field="text")
    content = check_content([TextBlock(text=params.text)] if params.text is not None else params.content or [])
    gateway.require_room()
    data = Prompt(content=content, delivery=params.delivery)
    return await send(gateway, caller, params.session, data, id=params.id, source=_source(caller, params.route))


def _source(caller: Caller, route: str | None) -> Source:
    source, extension = caller.principal.source, caller.principal.extension
    if route is None:
        return source
    if extension is None:
        raise TrunklineError("forbidden", "`route` is an extension's own address: leave it out", field="route")
    if not route.isprintable() or len(route) > MAX_ROUTE:
        raise TrunklineError("bad_params", f"a route has up to {MAX_ROUTE} printable characters", field="route")
    return replace(source, route=f"{extension}/{route}")


class InterruptParams(Params, frozen=True, kw_only=True):
    session: str
    turn: str | None = None
    cancel_queued: bool = False
    id: str | None = None
    wait: bool = False


@method("session.interrupt", "participant", InterruptParams)
async def interrupt(gateway: Gateway, caller: Caller, params: InterruptParams) -> CommandSent:
    """Stop the named turn, or the one that is open."""
    state = await _open_session(gateway, params.session, "interrupt", params.id)
    target = params.turn
    if not _is_repeated(gateway, params.id):
        target = _target(state, params.turn, needed=not params.cancel_queued)
    data = Interrupt(cancel_queued=params.cancel_queued)
    return await send(gateway, caller, params.session, data, id=params.id, target=target, wait=params.wait)


class CloseParams(Params, frozen=True, kw_only=True):
    session: str
    reason: str | None = None
    id: str | None = None
    wait: bool = False


@method("session.close", "participant", CloseParams)
async def close(gateway: Gateway, caller: Caller, params: CloseParams) -> CommandSent:
    """End the session's agent and close the session; `resume` reopens it."""
    return await send(gateway, caller, params.session, Close(reason=params.reason), id=params.id, wait=params.wait)


class CommandParams(Params, frozen=True, kw_only=True):
    session: str
    verb: str
    args: dict[str, Any] = {}
    target: str | None = None
    id: str | None = None
    wait: bool = False


@method("session.command", "participant", CommandParams)
async def command(gateway: Gateway, caller: Caller, params: CommandParams) -> CommandSent:
    """Send a command of any verb. With `wait` the answer has its `outcome` too."""
    data = read_args(params.verb, params.args)
    await require_verb(gateway, caller, params.verb)
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
    return await send(gateway, caller, params.session, data, id=params.id, target=target, wait=params.wait)


async def require_verb(gateway: Gateway, caller: Caller, verb: str) -> None:
    """Raises TrunklineError `forbidden`, and `agent_forbidden` where an agent wants what goes around its asks."""
    role = role_for_verb(verb)
    caller.principal.require(role, f"session.command {verb}")
    if role != "participant":
        await refuse_agents(gateway, caller)


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


async def send(
    gateway: Gateway,
    caller: Caller,
    session: str,
    data: Data,
    *,
    id: str | None,
    target: str | None = None,
    wait: bool = False,
    source: Source | None = None,
) -> CommandSent:
    command_id = check_id(id, "cmd") if id is not None else new_command_id()
    await _open_session(gateway, session, data.TYPE, command_id)
    sequence = await gateway.requests.command(
        make_command(
            data,
            id=command_id,
            session=session,
            time=timestamp(),
            target=target,
            source=source or caller.principal.source,
        )
    )
    sent: CommandSent = {"command": command_id, "sequence": sequence}
    return await _ended(gateway, session, sent) if wait else sent


async def _ended(gateway: Gateway, session: str, sent: CommandSent) -> CommandSent:
    command_id = sent["command"]
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
            return {**sent, "outcome": "finished", "how": end.how, "result": end.result}
        case CommandFailed():
            return {**sent, "outcome": "failed", "error": end.error}
        case _:
            return {**sent, "outcome": "rejected", "error": end.error}


def _is_repeated(gateway: Gateway, id: str | None) -> bool:
    """Whether the command has its outcome: sent again it gets that one, whatever became of the session since."""
    return id is not None and gateway.directory.command_end(id) is not None


async def _open_session(gateway: Gateway, session: str, verb: str, id: str | None) -> SessionState:
    check_id(session, "ses")
    state = gateway.directory.states.get(session) or await gateway.directory.session(session)
    if state.closed is not None and verb != "resume" and not _is_repeated(gateway, id):
        raise TrunklineError(
            "session_closed",
            f"the session is closed ({state.closed.reason}); the command `resume` reopens it (`trunkline resume`)",
        )
    return state


def _target(state: SessionState, turn: str | None, *, needed: bool) -> str | None:
    current = state.turn.id if state.turn is not None else None
    if turn is not None and turn != current:
        raise TrunklineError("stale_target", f"turn {turn!r} is not the open one", turn=turn, open=current)
    if state.turn is None and needed:
        raise TrunklineError("stale_target", "no turn is open")
    return current
