"""How an agent is started: which program, with which environment, and what it is told about the session."""

import datetime as dt
import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import msgspec

from trunkline_adapters.acp.native import VERSION
from trunkline_adapters.acp.profiles import NO_PROFILE, PROFILES, Profile, Terminal
from trunkline_agentkit import Exit, Start, unsupported
from trunkline_agentkit.environment import named_variables
from trunkline_agentkit.fields import Obj, as_obj, items, obj, objects, text
from trunkline_wire import TrunklineError
from trunkline_wire.session import SessionOptions, Thinking

NATIVE_OPTIONS: Final = frozenset({"add_dirs", "authenticate", "command", "variables"})
"""Names in `options.native`: directories beside the session's own, an authentication method's id, the program and its
arguments, names of variables that a `command` gets from the worker's environment."""


_LEVELS: Final[Mapping[Thinking, tuple[str, ...]]] = {
    "off": ("off", "none", "minimal"),
    "low": ("low", "minimal"),
    "medium": ("medium", "default"),
    "high": ("high",),
    "max": ("max", "xhigh", "ultra", "high"),
}
"""What agents call the levels of thinking, the best name first."""


def check(options: SessionOptions) -> None:
    """Raises TrunklineError `unsupported` or `bad_params` naming what can't be honoured."""
    unknown = sorted(set(options.native) - NATIVE_OPTIONS)
    if unknown:
        raise TrunklineError(
            "unsupported",
            f"native options {', '.join(map(repr, unknown))} are unknown; there are: {', '.join(sorted(NATIVE_OPTIONS))}",
            capability="options",
            options=unknown,
        )
    for name in ("add_dirs", "command", "variables"):
        given = options.native.get(name, [])
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            raise TrunklineError("bad_params", f"{name!r} must be a list of texts")


def choose(start: Start, source: Mapping[str, str]) -> Profile:
    """The profile of the agent that is asked for. Raises TrunklineError `bad_params` where neither agent nor command is named."""
    command: list[str] = start.options.native.get("command", [])
    chosen = NO_PROFILE if start.agent is None else PROFILES.get(start.agent, source)
    if command:
        chosen = msgspec.structs.replace(chosen, command=tuple(command))
    if not chosen.command:
        raise TrunklineError(
            "bad_params",
            "which ACP agent? name one with `--agent`, or give its program with `--command`"
            if start.agent is None
            else f"the profile of {start.agent!r} names no command: give one with `--command`",
        )
    return chosen


def environment(start: Start, chosen: Profile, source: Mapping[str, str]) -> dict[str, str]:
    """The Start's environment, with the profile's variables and those that it, or the session, takes from the worker's."""
    names = (*chosen.variables, *start.options.native.get("variables", []))
    temporary = dict.fromkeys(chosen.temporary, start.environment.get("TMPDIR", ""))
    return {**named_variables(names, source), **chosen.environment, **temporary, **start.environment}


def terminal_arguments(start: Start, terminal: Terminal) -> list[str]:
    """The arguments with which the agent's program takes up the session in its own terminal.

    Raises TrunklineError `unsupported` for what it can't be given there.
    """
    options = start.options
    lacking = [name for name in ("add_dirs", "command") if name in options.native]
    lacking += ["mcp_servers"] if options.mcp_servers else []
    if lacking:
        raise unsupported("terminal", f"the agent's terminal can't be given {', '.join(map(repr, lacking))}")
    mode = terminal.modes.get(options.mode or "", options.mode)
    words: list[str] = []
    for given, name, value in (
        (terminal.resume, "session", start.native_session or options.resume_native),
        (terminal.model, "model", options.model),
        (terminal.mode, "mode", mode),
    ):
        if value is not None:
            words += [word.replace(f"{{{name}}}", value) for word in given]
    return words


def initialize(chosen: Profile) -> Obj:
    """The parameters of `initialize`."""
    return {
        "protocolVersion": VERSION,
        "clientInfo": {"name": "trunkline", "title": "Trunkline", "version": version("trunkline")},
        "clientCapabilities": {
            "fs": {"readTextFile": chosen.files, "writeTextFile": chosen.files},
            "terminal": chosen.terminals,
            "elicitation": {"form": {}, "url": {}},
            "session": {"compaction": {}, "configOptions": {"boolean": {}}},
        },
    }


def session_params(start: Start, agent: Obj) -> Obj:
    """What every request that begins a session says. Raises TrunklineError `bad_params`, `unsupported`."""
    params: Obj = {"cwd": start.cwd, "mcpServers": mcp_servers(start.options.mcp_servers, agent)}
    if directories := start.options.native.get("add_dirs"):
        if "additionalDirectories" not in obj(obj(agent, "agentCapabilities"), "sessionCapabilities"):
            raise TrunklineError("unsupported", "the agent takes no further directories: leave `add_dirs` out")
        params["additionalDirectories"] = directories
    return params


def mcp_servers(servers: Mapping[str, Any], agent: Obj) -> list[Obj]:
    """MCP servers in the protocol's words, from the form that is common in configuration files."""
    supported = obj(obj(agent, "agentCapabilities"), "mcpCapabilities")
    return [_mcp_server(name, as_obj(given), supported) for name, given in servers.items()]


def _mcp_server(name: str, given: Obj, supported: Obj) -> Obj:
    url, kind = text(given, "url"), text(given, "type")
    if url is not None:
        kind = kind if kind == "sse" else "http"
        if not supported.get(kind):
            raise TrunklineError(
                "unsupported",
                f"the agent takes no MCP servers over {kind}, so {name!r} can't be used",
                capability="mcp",
            )
        return {"type": kind, "name": name, "url": url, "headers": _pairs(obj(given, "headers"))}
    command = text(given, "command")
    if command is None:
        raise TrunklineError("bad_params", f"the MCP server {name!r} has neither a command nor a URL")
    return {
        "name": name,
        "command": command,
        "args": [str(one) for one in items(given, "args")],
        "env": _pairs(obj(given, "env")),
    }


def _pairs(given: Obj) -> list[Obj]:
    return [{"name": name, "value": str(value)} for name, value in given.items()]


def level_among(level: Thinking, offered: Sequence[str]) -> str:
    """The agent's word for a level of thinking. Raises TrunklineError `bad_params` where it has none, listing what it has."""
    wanted = next((name for name in _LEVELS[level] if name in offered), None)
    if wanted is None:
        raise TrunklineError("bad_params", f"the agent has no level {level!r}; there are: {', '.join(offered)}")
    return wanted


def until_loadable(since: str | None, now: dt.datetime) -> float:
    """Seconds until the minute in which a session began is over; one that began nobody knows when may have begun just now."""
    minute = now.replace(second=0, microsecond=0)
    if since is not None and dt.datetime.fromisoformat(since) < minute:
        return 0.0
    return (minute + dt.timedelta(minutes=1) - now).total_seconds()


def failed(chosen: Profile, agent: Obj, end: Exit, error: TrunklineError) -> TrunklineError:
    """What kept an agent from beginning, given how it ended; `agent` is its answer to `initialize`, empty if none came."""
    if error.code == "agent_auth":
        return login(chosen, agent)
    if error.code != "agent_failed" or "native_code" in error.details or agent:
        return error
    return end.at_start(chosen.title)


def login(chosen: Profile, agent: Obj) -> TrunklineError:
    """The error for an agent that wants a login: it says which command to run."""
    methods = objects(agent, "authMethods")
    how = f"run `{chosen.login}`" if chosen.login else _login_of(chosen, methods)
    ids = [name for one in methods if (name := text(one, "id")) is not None]
    return TrunklineError(
        "agent_auth", f"{chosen.title} wants a login: {how} as the worker's user, then try again", methods=ids
    )


def _login_of(chosen: Profile, methods: list[Obj]) -> str:
    for method in methods:
        if text(method, "type") == "terminal":
            return f"run `{shlex.join([*chosen.command, *map(str, items(method, 'args'))])}`"
        shown = obj(obj(method, "_meta"), "terminal-auth")
        if (command := text(shown, "command")) is not None:
            return f"run `{shlex.join([command, *map(str, items(shown, 'args'))])}`"
    for method in methods:
        if (said := text(method, "description")) is not None:
            return said[:1].lower() + said[1:] if said.startswith("Run ") else f"sign in ({said})"
    return f"sign in with `{chosen.command[0]}`"
