"""How a session is begun: the parameters of `initialize`, `thread/start`, `thread/resume` and `thread/fork`. Pure.

MCP servers, instructions and settings, which may hold secrets, go over stdin: arguments are visible to everyone on the machine.
"""

import json
import shlex
from typing import Any, Final

from trunkline_adapters.codex import modes
from trunkline_agentkit import Start, unsupported
from trunkline_wire import TrunklineError
from trunkline_wire.session import SessionOptions, Thinking

NATIVE_OPTIONS: Final = frozenset(
    {
        "config",
        "dynamic_tools",
        "interface",
        "model_provider",
        "personality",
        "server",
        "service_tier",
        "token_file",
    }
)
"""Names in `options.native`.

`config` holds keys of Codex's config.toml, `dynamic_tools` tools that whoever answers asks provides, `interface` is `exec` to
do without an app-server, `server` the address of one that runs already (`ws://…` or `unix:///path`), `token_file` the path of
the file with its capability token.
"""

_TOKEN: Final = "CODEX_REMOTE_TOKEN"  # noqa: S105  # the name of a variable

_HIDDEN: Final = ("config", "dynamic_tools")
"""Names in `options.native` of what may hold secrets, or lives in our connection."""

_EFFORTS: Final[dict[Thinking, tuple[str, ...]]] = {
    "off": ("none", "minimal", "low"),
    "low": ("low",),
    "medium": ("medium",),
    "high": ("high",),
    "max": ("max", "xhigh", "high"),
}
"""Levels of thinking in Codex's words, the best first: which there are depends on the model."""


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
    if options.mode is not None and options.mode != modes.PLAN:
        modes.policies(options.mode)
    for name, kind in (("config", dict), ("dynamic_tools", list), ("server", str), ("token_file", str)):
        if name in options.native and not isinstance(options.native[name], kind):
            raise TrunklineError("bad_params", f"native option {name!r} must be of type {kind.__name__!r}")
    if options.native.get("interface") not in (None, "app-server", "exec"):
        raise TrunklineError("bad_params", "native option 'interface' is 'app-server' or 'exec'")


def initialize(version: str) -> dict[str, Any]:
    return {
        "clientInfo": {"name": "trunkline", "title": "Trunkline", "version": version},
        "capabilities": {"experimentalApi": True, "requestAttestation": False},
    }


def thread(start: Start, before: str | None = None) -> tuple[str, dict[str, Any]]:
    """(method, params) that give the session its thread. `before` is the turn that a fork leaves out, with all after it."""
    options = start.options
    native = start.native_session or options.resume_native
    params = _settings(options) | {"cwd": start.cwd}
    if native is None:
        if tools := options.native.get("dynamic_tools"):
            params["dynamicTools"] = tools
        return "thread/start", params
    params |= {"threadId": native, "excludeTurns": True}
    if not start.fork:
        return "thread/resume", params
    return "thread/fork", params | ({"beforeTurnId": before} if before is not None else {})


def join(address: str, token_file: str | None) -> str:
    """The command that opens Codex's own terminal on a thread of a server that runs, but for the thread's id.

    The token comes from its file when the command is run: no argument shows it.
    """
    command = f"codex resume --remote {shlex.quote(address)}"
    if token_file is None:
        return command
    return f'{_TOKEN}="$(cat {shlex.quote(token_file)})" {command} --remote-auth-token-env {_TOKEN}'


def terminal_arguments(start: Start) -> list[str]:
    """The arguments with which Codex takes up the thread in its own terminal.

    Without a daemon: Codex's own would outlive the terminal, and have the thread still when it is taken back. Instructions are
    the thread's and stay; MCP servers and settings may hold secrets, which have no place here.
    Raises TrunklineError `unsupported` for a session that can't go there.
    """
    options, native = start.options, start.options.native
    if "server" in native:
        raise unsupported(
            "terminal", "the session is on a server that others may join: `session.get` has the command, as `attach`"
        )
    hidden = [name for name in _HIDDEN if native.get(name)] + (["mcp_servers"] if options.mcp_servers else [])
    if hidden:
        raise unsupported(
            "terminal",
            f"Codex's terminal takes {', '.join(map(repr, hidden))} in arguments alone, which everyone on the machine can read: "
            "put them into config.toml",
        )
    chosen = None if options.mode in (None, modes.PLAN) else modes.policies(options.mode)
    settings = {
        "model": options.model,
        "model_provider": native.get("model_provider"),
        "model_reasoning_effort": effort(options.thinking, []) if options.thinking is not None else None,
        "approval_policy": chosen.approval if chosen else None,
        "sandbox_mode": chosen.sandbox if chosen else None,
        "personality": native.get("personality"),
        "service_tier": native.get("service_tier"),
    }
    words = [f"{name}={json.dumps(value)}" for name, value in settings.items() if value is not None]
    thread = start.native_session or options.resume_native
    return [
        *(["resume"] if thread else []),
        "--no-daemon",
        *(part for word in words for part in ("--config", word)),
        *([thread] if thread else []),
    ]


def _settings(options: SessionOptions) -> dict[str, Any]:
    config: dict[str, Any] = dict(options.native.get("config") or {})
    if options.mcp_servers:
        config["mcp_servers"] = {**config.get("mcp_servers", {}), **options.mcp_servers}
    chosen = None if options.mode in (None, modes.PLAN) else modes.policies(options.mode)
    found = {
        "model": options.model,
        "modelProvider": options.native.get("model_provider"),
        "approvalPolicy": chosen.approval if chosen else None,
        "sandbox": chosen.sandbox if chosen else None,
        "baseInstructions": options.system_prompt,
        "developerInstructions": options.append_system_prompt,
        "personality": options.native.get("personality"),
        "serviceTier": options.native.get("service_tier"),
        "config": config or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def effort(level: Thinking, offered: list[str]) -> str:
    """The model's word for a level of thinking; `offered` empty: Codex knows nothing of the model."""
    wanted = _EFFORTS[level]
    if not offered:
        return {"off": "none", "max": "xhigh"}.get(level, wanted[0])
    return next((word for word in wanted if word in offered), offered[-1] if level == "max" else offered[0])


def review_target(arguments: str) -> dict[str, Any]:
    """What `/review` is to look at: nothing named is what isn't committed."""
    word, _, rest = arguments.strip().partition(" ")
    if not word:
        return {"type": "uncommittedChanges"}
    if word == "branch" and rest:
        return {"type": "baseBranch", "branch": rest.strip()}
    if word == "commit" and rest:
        return {"type": "commit", "sha": rest.strip(), "title": None}
    return {"type": "custom", "instructions": arguments.strip()}
