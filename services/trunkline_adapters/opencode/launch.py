"""How a server is started and a session begun: options, addresses, and the bodies of requests. Pure, but for the password file."""

import base64
import ipaddress
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from trunkline_adapters.opencode.profiles import Profile
from trunkline_agentkit import Start, unsupported
from trunkline_agentkit.environment import named_variables
from trunkline_agentkit.fields import Obj, as_obj, items, obj, text
from trunkline_wire import TrunklineError
from trunkline_wire.session import SessionOptions, Thinking

NATIVE_OPTIONS: Final[Mapping[str, type]] = {
    "attempts": int,
    "password_file": str,
    "server": str,
    "user": str,
}
"""Names in `options.native`, and what they are.

`server` is the address of a server that runs already (`http://host:port`), `password_file` the path of the file with its password,
`user` the user's name where it is not the usual one; `attempts` is how often a model that fails is asked again.
"""

ATTEMPTS: Final = 8

_LEVELS: Final[Mapping[Thinking, tuple[str, ...]]] = {
    "off": ("none", "off", "minimal", "low"),
    "low": ("low", "minimal"),
    "medium": ("medium", "default"),
    "high": ("high",),
    "max": ("max", "xhigh", "high"),
}
"""What models call the levels of thinking, the best name first."""

_SECRET: Final = ("/auth", "/config", "/global/config", "/mcp", "/provider")
_SECRET_WORDS: Final = ("apikey", "authorization", "credential", "key", "password", "secret", "token")
_OPEN_WORDS: Final = ("cost", "limit", "tokens")
HIDDEN: Final = "[redacted]"


def check(options: SessionOptions) -> None:
    """Raises TrunklineError `unsupported` or `bad_params` naming what can't be honoured."""
    unknown = sorted(set(options.native) - set(NATIVE_OPTIONS))
    if unknown:
        raise TrunklineError(
            "unsupported",
            f"native options {', '.join(map(repr, unknown))} are unknown; there are: {', '.join(sorted(NATIVE_OPTIONS))}",
            capability="options",
            options=unknown,
        )
    for name, kind in NATIVE_OPTIONS.items():
        given = options.native.get(name)
        if given is not None and (not isinstance(given, kind) or isinstance(given, bool)):
            raise TrunklineError("bad_params", f"native option {name!r} must be of type {kind.__name__!r}")


def environment(start: Start, chosen: Profile, password: str, source: Mapping[str, str]) -> dict[str, str]:
    """The server's environment: the Start's, the profile's, and the password, which is in no argument."""
    secret = {chosen.password_variable: password, chosen.user_variable: chosen.user}
    return {**named_variables(chosen.variables, source), **chosen.environment, **start.environment, **secret}


def check_address(url: str, *, secret: bool) -> None:
    """Raises TrunklineError `bad_params` for what is no address of a server, or would show a secret."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in {"http", "https"} or not host:
        raise TrunklineError("bad_params", "the server's address is no URL: give http://host:port")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise TrunklineError(
            "bad_params", "the server's address must hold no user, password or query: name a password file instead"
        )
    if secret and parts.scheme == "http" and not _loopback(host):
        raise TrunklineError(
            "bad_params",
            f"the password would go to {host!r} unencrypted: give an https:// address, or that of a tunnel on 127.0.0.1",
        )


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_password(path: str) -> str:
    """Raises TrunklineError `bad_settings` for a file that holds none."""
    try:
        password = Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TrunklineError("bad_settings", f"the password file {path!r} can't be read: create it") from error
    if not password or "\n" in password:
        raise TrunklineError("bad_settings", f"the password file {path!r} must hold one password and nothing else")
    return password


def join(profile: Profile, address: str, directory: str, user: str | None, password_file: str | None) -> str:
    """The command that opens the agent's own terminal on a session of a server that runs, but for the session's id.

    The password comes from its file when the command is run: no argument shows it.
    """
    command = f"{profile.command[0]} attach {shlex.quote(address)} --dir {shlex.quote(directory)} -s"
    if user is not None:
        command = f"{profile.user_variable}={shlex.quote(user)} {command}"
    return (
        command
        if password_file is None
        else f'{profile.password_variable}="$(cat {shlex.quote(password_file)})" {command}'
    )


def terminal_arguments(start: Start, chosen: Profile) -> list[str]:
    """The arguments with which the program takes up the session in its own terminal.

    Further instructions and the schema go with prompts of ours alone, and have no place there.
    Raises TrunklineError `unsupported` for a session that can't go there.
    """
    options = start.options
    if not chosen.terminal:
        raise unsupported("terminal", f"{chosen.title} has no terminal that takes up a session")
    if "server" in options.native:
        raise unsupported(
            "terminal", "the session is on a server that others may join: `session.get` has the command, as `attach`"
        )
    if options.mcp_servers:
        raise unsupported(
            "terminal",
            f"MCP servers of a session can't be given to {chosen.title}'s terminal: put them into its own settings",
        )
    session = start.native_session or options.resume_native
    return [
        *(["--session", session] if session else []),
        *(["--model", options.model] if options.model is not None else []),
        *(["--agent", options.mode] if options.mode is not None else []),
    ]


def authorization(user: str, password: str | None) -> dict[str, str]:
    """The header that goes with every request."""
    if password is None:
        return {}
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def session_body(start: Start) -> Obj:
    """The body of `POST /session`."""
    body: Obj = {}
    if start.title is not None:
        body["title"] = start.title
    if denied := start.options.disallowed_tools:
        body["permission"] = [{"permission": name, "pattern": "*", "action": "deny"} for name in denied]
    return body


def prompt_body(options: SessionOptions, parts: list[Obj]) -> Obj:
    """What every prompt says besides model and mode."""
    body: Obj = {"parts": parts}
    if options.append_system_prompt is not None:
        body["system"] = options.append_system_prompt
    if options.output_schema is not None:
        body["format"] = {"type": "json_schema", "schema": options.output_schema}
    return body


def model_body(model: str) -> Obj:
    """`provider/model` as an object."""
    provider, _, name = model.partition("/")
    return {"providerID": provider, "modelID": name}


def mcp_body(name: str, given: Any) -> Obj:
    """An MCP server in OpenCode's words, from the form that is common in configuration files. Raises TrunklineError `bad_params`."""
    server = as_obj(given)
    if (url := text(server, "url")) is not None:
        return {"name": name, "config": {"type": "remote", "url": url, "headers": obj(server, "headers")}}
    command = server.get("command")
    words = [command, *items(server, "args")] if isinstance(command, str) else items(server, "command")
    if not words:
        raise TrunklineError("bad_params", f"the MCP server {name!r} has neither a command nor a URL")
    variables = {key: str(value) for key, value in (obj(server, "environment") or obj(server, "env")).items()}
    return {
        "name": name,
        "config": {"type": "local", "command": [str(word) for word in words], "environment": variables},
    }


def variant(level: Thinking, offered: list[str]) -> str | None:
    """The model's word for a level of thinking; None where it has none that fits."""
    return next((word for word in _LEVELS[level] if word in offered), None)


def shown(request: str, body: Any) -> Any:
    """An answer's body without the keys of providers and MCP servers, which the server tells whoever may ask."""
    path = request.partition(" ")[2]
    return _hide(body) if path.startswith(_SECRET) else body


def _hide(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _hide(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [_hide(inner, name) for inner in value]
    word = name.lower().replace("_", "").replace("-", "")
    secret = isinstance(value, str) and any(one in word for one in _SECRET_WORDS) and word not in _OPEN_WORDS
    return HIDDEN if secret else value
