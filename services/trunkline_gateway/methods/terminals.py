"""`terminal.*`: the terminals of sessions. To look at one live, connect to `/ws/terminal/<session>` (see `terminal_ws`)."""

import asyncio
import base64
import hashlib
import secrets
from typing import Final, TypedDict

from trunkline_fold.session import SessionState
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.methods.create import Create, create
from trunkline_gateway.methods.sessions import CommandSent
from trunkline_gateway.privileges import role_to_type
from trunkline_gateway.registry import Page, Paged, Params, method, page_of
from trunkline_gateway.roles import Principal
from trunkline_gateway.sight import Sight
from trunkline_wire import TrunklineError, make_command, timestamp
from trunkline_wire.commands import Close, Resume
from trunkline_wire.ids import check_id, check_token, new_command_id
from trunkline_wire.terminal import MAX_KEYS, Painting, TerminalRequest, TerminalState

START_S: Final = 30.0
"""Seconds that a terminal's program may take to start."""
_WAKE_S: Final = 25.0
_AGAIN_S: Final = 0.2
_PAINTING_S: Final = 5.0
_SHELL: Final = "shell"


class One(Params, frozen=True, kw_only=True):
    session: str


class OpenTerminal(TypedDict):
    session: str
    title: str | None
    adapter: str | None
    agent: str | None
    cwd: str | None
    host: str | None
    columns: int
    rows: int


class TerminalPage(Page):
    """`shells`: whether `terminal.shell` is on."""

    terminals: list[OpenTerminal]
    shells: bool


@method("terminal.list", "viewer", Paged, limited="itself")
async def list_(gateway: Gateway, caller: Caller, params: Paged) -> TerminalPage:
    """The sessions with an open terminal, the one with the latest event first."""
    states = Sight(gateway.directory, caller.principal.scope).states()
    shown: list[OpenTerminal] = [
        {
            "session": state.session,
            "title": state.title,
            "adapter": state.adapter,
            "agent": state.agent,
            "cwd": state.cwd,
            "host": state.host,
            "columns": state.terminal.columns,
            "rows": state.terminal.rows,
        }
        for state in states
        if state.terminal is not None and state.closed is None
    ]
    terminals, page = page_of(shown, params)
    return {"terminals": terminals, "shells": gateway.settings.shells, **page}


class Opened(TypedDict):
    """`path` is the WebSocket's, behind the gateway's URL."""

    session: str
    path: str
    state: TerminalState | None


@method("terminal.open", "participant", One)
async def open_(gateway: Gateway, caller: Caller, params: One) -> Opened:
    """Start a session's program in its terminal, if it does not run yet; who is there already changes nothing."""
    state = await _session(gateway, params.session)
    require_terminal(gateway, state)
    found = await _awake(gateway, caller, state)
    return {"session": params.session, "path": f"/ws/terminal/{params.session}", "state": found}


class Shell(Params, frozen=True, kw_only=True):
    session: str
    id: str | None = None
    """The id of the new session: asked for again it is the same one."""


class ShellOpened(Opened):
    """`of` is the session whose directory it is in."""

    of: str


@method("terminal.shell", "owner", Shell)
async def shell(gateway: Gateway, caller: Caller, params: Shell) -> ShellOpened:
    """Open a shell in a session's directory: a session of its own. Off unless the setting `shells` is on."""
    if not gateway.settings.shells:
        raise TrunklineError(
            "unsupported",
            "shells in the directories of sessions are off: set `shells = true` in the table [gateway] of trunkline.toml",
            capability="terminal",
        )
    state = await _session(gateway, params.session)
    if not state.cwd or not state.host:
        raise TrunklineError("bad_directory", f"session {params.session!r} has no directory")
    title = f"shell of {state.title or params.session}"
    wanted = Create(cwd=state.cwd, adapter="pty", agent=_SHELL, host=state.host, title=title[:200], session=params.id)
    created = await create(gateway, caller, wanted)
    gateway.audit.note("shell", caller.principal.actor, session=created["session"], of=params.session)
    opened = await open_(gateway, caller, One(session=created["session"]))
    return {**opened, "of": params.session}


class Take(Params, frozen=True, kw_only=True):
    session: str
    viewer: str | None = None
    """The one that takes it: the id of `/ws/terminal`'s `hello`, or one of this method's before."""
    force: bool = False


class Typist(TypedDict):
    """The state tells who types now."""

    state: TerminalState | None


class Taken(Typist):
    viewer: str


@method("terminal.take", "participant", Take, acts_as_person=True)
async def take_(gateway: Gateway, caller: Caller, params: Take) -> Taken:
    """Become the one who types; `force` takes the keyboard from whoever has it. It is given up after a minute without a key."""
    await _session(gateway, params.session)
    viewer = viewer_of(caller.principal, params.viewer)
    state = await take(gateway, caller, params.session, viewer, force=params.force)
    return {"viewer": viewer, "state": state}


class Held(Params, frozen=True, kw_only=True):
    session: str
    viewer: str


@method("terminal.release", "participant", Held, acts_as_person=True)
async def release(gateway: Gateway, caller: Caller, params: Held) -> Typist:
    """Give the keyboard up."""
    await _session(gateway, params.session)
    request = TerminalRequest(kind="release", viewer=viewer_of(caller.principal, params.viewer))
    return {"state": (await gateway.terminals.ask(params.session, request)).state}


class Input(Params, frozen=True, kw_only=True):
    session: str
    viewer: str
    text: str


@method("terminal.input", "participant", Input, acts_as_person=True)
async def input_(gateway: Gateway, caller: Caller, params: Input) -> Typist:
    """Type. `terminal_taken` for anybody but the one who has taken the terminal."""
    viewer = viewer_of(caller.principal, params.viewer)
    keys = params.text.encode(errors="replace")
    if len(keys) > MAX_KEYS:
        raise TrunklineError("too_large", f"at most {MAX_KEYS} bytes of keys at once", limit=MAX_KEYS)
    await _session(gateway, params.session)
    # Asking again also shows whether it still is the one who types.
    state = await take(gateway, caller, params.session, viewer, force=False)
    gateway.terminals.type(params.session, viewer, keys)
    return {"state": state}


class Resize(Params, frozen=True, kw_only=True):
    session: str
    viewer: str
    columns: int
    rows: int


@method("terminal.resize", "participant", Resize, acts_as_person=True)
async def resize(gateway: Gateway, caller: Caller, params: Resize) -> Typist:
    """Set the terminal's size, which is the business of whoever types there."""
    await _session(gateway, params.session)
    viewer = viewer_of(caller.principal, params.viewer)
    request = TerminalRequest(kind="resize", viewer=viewer, columns=params.columns, rows=params.rows)
    return {"state": (await gateway.terminals.ask(params.session, request)).state}


class Screen(Params, frozen=True, kw_only=True):
    session: str
    history: int = 0


class Painted(TypedDict):
    columns: int
    rows: int
    paint: str


@method("terminal.screen", "viewer", Screen)
async def screen(gateway: Gateway, caller: Caller, params: Screen) -> Painted:
    """The screen as it is: what a terminal has to print to look like it (base64), after `history` lines that have scrolled away."""
    await _session(gateway, params.session)
    look = _Look(viewer_of(caller.principal, None), params.history)
    gateway.terminals.join(params.session, look)
    try:
        async with asyncio.timeout(_PAINTING_S):
            painting, content = await look.painted
    except TimeoutError:
        raise TrunklineError(
            "no_terminal", f"session {params.session!r} shows no terminal: `terminal.open` starts its program"
        ) from None
    finally:
        gateway.terminals.leave(params.session, look)
    return {"columns": painting.columns, "rows": painting.rows, "paint": base64.b64encode(content).decode()}


@method("terminal.close", "participant", One)
async def close(gateway: Gateway, caller: Caller, params: One) -> CommandSent:
    """End the terminal's program and close its session; `resume` reopens it."""
    state = await _session(gateway, params.session)
    require_terminal(gateway, state)
    command = new_command_id()
    data = make_command(Close(), id=command, session=params.session, time=timestamp(), source=caller.principal.source)
    return {"command": command, "sequence": await gateway.requests.command(data)}


def viewer_of(principal: Principal, given: str | None) -> str:
    """A viewer's id: nobody can use that of another actor. `given` is one of before, or any token of the client's own."""
    own = hashlib.sha256(principal.actor.encode()).hexdigest()[:12]
    if given is None:
        return f"{own}-{secrets.token_hex(8)}"
    prefix, _, rest = check_token(given).rpartition("-")
    return f"{own}-{rest if prefix else given}"[:64]


async def take(gateway: Gateway, caller: Caller, session: str, viewer: str, *, force: bool) -> TerminalState:
    """The terminal's state with the viewer as the one who types. Raises TrunklineError `terminal_taken`, `no_terminal`,
    `forbidden`.
    """
    known = await _session(gateway, session)
    caller.principal.require(
        role_to_type(known.capabilities), "terminal.take in a session whose asks are answered there"
    )
    actor = caller.principal.actor
    request = TerminalRequest(kind="take", viewer=viewer, actor=actor, force=force)
    state = (await gateway.terminals.ask(session, request)).state or TerminalState(terminal="")
    if force:
        gateway.audit.note("terminal_taken", actor, session=session)
    return state


def require_terminal(gateway: Gateway, state: SessionState) -> None:
    """Raises TrunklineError `no_terminal` for a session whose agent has none."""
    able = state.capabilities
    if able is None and state.host is not None:
        known = [one for one in gateway.workers.adapters(state.host) if one.name == state.adapter]
        able = known[0].capabilities if known else None
    if able is not None and not able.terminal:
        raise TrunklineError(
            "no_terminal",
            f"session {state.session!r} has no terminal: `terminal.shell` opens one in its directory",
            session=state.session,
        )


async def _session(gateway: Gateway, session: str) -> SessionState:
    return await gateway.directory.session(check_id(session, "ses"))


async def _awake(gateway: Gateway, caller: Caller, state: SessionState) -> TerminalState | None:
    """Has the owner start the program; a session that was let go gets an owner first."""
    if state.closed is not None:
        raise TrunklineError(
            "session_closed",
            f"the session is closed ({state.closed.reason}); the command `resume` reopens it (`trunkline resume`)",
        )
    loop = asyncio.get_running_loop()
    until, woken = loop.time() + _WAKE_S, False
    while True:
        try:
            request = TerminalRequest(kind="open")
            return (await gateway.terminals.ask(state.session, request, START_S)).state
        except TrunklineError as error:
            if error.code != "no_terminal" or loop.time() > until:
                raise
        if not woken:
            woken = True
            source = caller.principal.source
            wake = make_command(Resume(), id=new_command_id(), session=state.session, time=timestamp(), source=source)
            await gateway.requests.command(wake)
        await asyncio.sleep(_AGAIN_S)


class _Look:
    """A viewer of one painting."""

    def __init__(self, id: str, history: int) -> None:
        self.id = id
        self.history = history
        self.painted: asyncio.Future[tuple[Painting, bytes]] = asyncio.get_running_loop().create_future()

    def show(self, frame: bytes) -> None:
        """Nothing: the screen is all it wants."""

    def paint(self, frame: bytes, painting: Painting, content: bytes) -> None:  # noqa: ARG002  # the protocol's signature
        if not self.painted.done():
            self.painted.set_result((painting, content))

    def state(self, state: TerminalState) -> None:
        """Nothing, likewise."""

    def lost(self) -> None:
        """Nothing, likewise."""

    def wants_painting(self, now: float) -> bool:  # noqa: ARG002  # the protocol's signature
        return False
