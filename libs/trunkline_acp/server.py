"""The agent that an editor sees: the protocol's methods on the gateway's."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from importlib import metadata
from typing import Any, Final

import msgspec

from trunkline_acp import describe
from trunkline_acp.connection import Editor, Reply
from trunkline_acp.content import prompt_blocks
from trunkline_acp.native import VERSION, Able, able
from trunkline_acp.session import Attached
from trunkline_acp.way import Way
from trunkline_agentkit.fields import Obj, obj, objects, text
from trunkline_fold.session import SessionState, decode_state
from trunkline_wire import TrunklineError, encode
from trunkline_wire.ids import check_id, new_session_id

log = logging.getLogger(__name__)

PAGE: Final = 50
MAX_SESSIONS: Final = 100
"""Sessions that one editor may have open at a time."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asked for. With `session` every session of the editor is that one.

    Without `agent` a new session gets the one that was used last, or the first that is installed and signed in.
    """

    session: str | None = None
    agent: str | None = None
    options: dict[str, Any] = {}


class Server:
    """One editor's connection. `connect` makes a link to the gateway: each session has one of its own."""

    def __init__(self, editor: Editor, connect: Callable[[], Way], wanted: Wanted) -> None:
        self._editor = editor
        self._connect = connect
        self._link = connect()
        self._wanted = wanted
        self._able = Able()
        self._sessions: dict[str, Attached] = {}

    async def run(self) -> None:
        """Serves the editor until it has said its last; its sessions go on. Raises `not_running` where no gateway answers."""
        async with self._link:
            try:
                await self._editor.run(
                    {
                        "initialize": self._initialize,
                        "authenticate": self._authenticate,
                        "session/new": self._new,
                        "session/load": self._load,
                        "session/resume": self._resume,
                        "session/list": self._list,
                        "session/close": self._close,
                        "session/prompt": self._prompt,
                        "session/set_mode": self._set_mode,
                        "session/set_config_option": self._set_option,
                    },
                    {"session/cancel": self._cancel},
                )
            finally:
                await asyncio.gather(*(one.close() for one in self._sessions.values()), return_exceptions=True)

    async def _initialize(self, params: Obj) -> Obj:
        self._able = able(obj(params, "clientCapabilities"))
        title = f"Trunkline: {self._wanted.agent}" if self._wanted.agent else "Trunkline"
        return {
            "protocolVersion": VERSION,
            "agentInfo": {"name": "trunkline", "title": title, "version": metadata.version("trunkline")},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": False},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "authMethods": [],
        }

    async def _authenticate(self, params: Obj) -> Obj:
        raise TrunklineError(
            "bad_params", f"there is no method {text(params, 'methodId')!r}: sign in with the agent's own program"
        )

    # sessions

    async def _new(self, params: Obj) -> Obj | Reply:
        if self._wanted.session is not None:
            state = await self._state(self._wanted.session)
            attached = await self._attach(state.session)
            return Reply(_with_id(state), lambda: attached.open("start", state.seq))
        self._require_room()
        cwd = text(params, "cwd")
        if cwd is None:
            raise TrunklineError("bad_params", "session/new needs `cwd`, an absolute path")
        agent = text(obj(obj(params, "_meta"), "trunkline"), "agent") or self._wanted.agent or await self._usual()
        created = await self._link.call(
            "session.create",
            session=new_session_id(),
            agent=agent,
            cwd=cwd,
            options=await self._options(agent, objects(params, "mcpServers")),
        )
        state = decode_state(encode(created["state"]))
        like = await self._like(state)
        attached = await self._attach(state.session, like)
        return Reply(_with_id(describe.expected(state, like)), lambda: attached.open("start", state.seq))

    async def _load(self, params: Obj) -> Obj:
        """The whole past is told before the answer."""
        state = await self._state(_session(params))
        attached = await self._attach(state.session)
        await attached.open("start", state.seq)
        return describe.described(await attached.caught_up())

    async def _resume(self, params: Obj) -> Reply:
        """The editor knows the past: only what is under way is told, behind the answer."""
        state = await self._state(_session(params))
        attached = await self._attach(state.session)
        return Reply(describe.described(state), lambda: attached.open("snapshot"))

    async def _list(self, params: Obj) -> Obj:
        cwd, cursor = text(params, "cwd"), text(params, "cursor") or "0"
        if not cursor.isdecimal():
            raise TrunklineError("bad_params", f"{cursor!r} is no cursor of `session/list`")
        offset = int(cursor)
        page = await self._link.call("session.list", limit=PAGE, offset=offset)
        found = [
            one
            for one in page["sessions"]
            if not one.get("archived")
            and (cwd is None or one.get("cwd") == cwd)
            and self._wanted.session in {None, one["session"]}
        ]
        more = {"nextCursor": str(offset + len(page["sessions"]))} if page.get("has_more") else {}
        return {"sessions": [describe.session_info(one) for one in found]} | more

    async def _close(self, params: Obj) -> Obj:
        """Lets go of a session, with the prompts that this editor has under way; it stays open for others."""
        attached = self._attached(params)
        del self._sessions[attached.session]
        if attached.prompting:
            attached.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await attached.quiet()
        await attached.close()
        return {}

    # turns

    async def _prompt(self, params: Obj) -> Obj:
        return await self._attached(params).prompt(prompt_blocks(params))

    def _cancel(self, params: Obj) -> None:
        attached = self._sessions.get(text(params, "sessionId") or "")
        if attached is not None:
            attached.cancel()

    async def _set_mode(self, params: Obj) -> Obj:
        await self._attached(params).change("set_mode", {"mode": text(params, "modeId") or ""})
        return {}

    async def _set_option(self, params: Obj) -> Obj:
        attached = self._attached(params)
        option, value = text(params, "configId"), text(params, "value")
        match option:
            case describe.MODE | describe.MODEL if value is not None:
                await attached.change(f"set_{option}", {option: value})
            case describe.THINKING if value is not None:
                await attached.change("set_thinking", {"level": value})
            case _:
                raise TrunklineError("bad_params", f"there is no option {option!r} with a value to choose")
        options = describe.config_options(attached.expected)
        chosen = [one | {"currentValue": value} if one["id"] == option else one for one in options]
        return {"configOptions": chosen}

    # the gateway

    async def _attach(self, session: str, like: SessionState | None = None) -> Attached:
        """A view of a session that replaces the one that this editor had of it."""
        if session not in self._sessions:
            self._require_room()
        old = self._sessions.pop(session, None)
        if old is not None:
            await old.close()
        attached = self._sessions[session] = Attached(self._editor, self._connect(), session, self._able, like)
        return attached

    def _require_room(self) -> None:
        if len(self._sessions) >= MAX_SESSIONS:
            raise TrunklineError("rate_limited", f"{MAX_SESSIONS} sessions are open here: close one first")

    def _attached(self, params: Obj) -> Attached:
        session = _session(params)
        attached = self._sessions.get(session)
        if attached is None:
            raise TrunklineError("unknown_session", f"session {session!r} is not open here: load or resume it")
        return attached

    async def _state(self, session: str) -> SessionState:
        if self._wanted.session not in {None, session}:
            raise TrunklineError("unknown_session", f"this connection is for session {self._wanted.session!r} alone")
        found = await self._link.call("session.get", session=check_id(session, "ses"))
        return decode_state(encode(found["state"]))

    async def _like(self, state: SessionState) -> SessionState | None:
        """The latest session of the same agent that has told what can be chosen from: a new one's has not started yet."""
        recent = (await self._link.call("session.list", limit=PAGE))["sessions"]
        same = (one for one in recent if (one.get("adapter"), one.get("agent")) == (state.adapter, state.agent))
        found = next((one for one in same if one.get("initialized") and (one.get("models") or one.get("modes"))), None)
        return None if found is None else decode_state(encode(found))

    async def _usual(self) -> str:
        """The agent of the latest session that can run here; else the first that is signed in."""
        agents = (await self._link.call("agent.list"))["agents"]
        usable = [one["name"] for one in agents if any(_usable(way) for way in one["ways"])]
        recent = (await self._link.call("session.list", limit=PAGE))["sessions"]
        for state in recent:
            for name in (state.get("agent"), state.get("adapter")):
                if name in usable:
                    return name
        if not usable:
            raise TrunklineError("agent_not_found", "no agent is installed and signed in: see `trunkline agents`")
        return usable[0]

    async def _options(self, agent: str, servers: list[Obj]) -> Obj:
        """Options of a new session. The editor's MCP servers are left out where the agent takes none."""
        options = dict(self._wanted.options)
        if not servers:
            return options
        agents = (await self._link.call("agent.list"))["agents"]
        ways = next((one["ways"] for one in agents if one["name"] == agent), [])
        way = next((one for one in ways if one["error"] is None), None)
        if way is not None and "mcp_servers" in ((way.get("capabilities") or {}).get("options") or []):
            return options | {"mcp_servers": {text(one, "name") or "server": mcp_server(one) for one in servers}}
        log.warning("mcp_servers_left_out", extra={"agent": agent, "servers": len(servers)})
        return options


def mcp_server(native: Obj) -> Obj:
    """An MCP server of the protocol in the words of session options."""
    url = text(native, "url")
    if url is not None:
        headers = {str(one.get("name")): str(one.get("value")) for one in objects(native, "headers")}
        return {"type": text(native, "type") or "http", "url": url} | ({"headers": headers} if headers else {})
    environment = {str(one.get("name")): str(one.get("value")) for one in objects(native, "env")}
    server: Obj = {"command": text(native, "command") or "", "args": list(native.get("args") or [])}
    return server | ({"env": environment} if environment else {})


def _usable(way: Obj) -> bool:
    return way.get("error") is None and way.get("signed_in") is not False and way.get("adapter") != "demo"


def _session(params: Obj) -> str:
    session = text(params, "sessionId")
    if session is None:
        raise TrunklineError("bad_params", "`sessionId` is missing")
    return session


def _with_id(state: SessionState) -> Obj:
    return {"sessionId": state.session} | describe.described(state)
