"""Claude Code's hooks: ours in its settings, and what it says when it calls them. Pure.

`http` hooks, which 2.1.332 has (https://code.claude.com/docs/en/hooks): a POST of the event, an empty 2xx decides nothing, and a
receiver that can't be reached costs the agent no more than the attempt. They are refused for SessionStart and Setup.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.fields import Obj, as_obj, items, obj, objects, strings, text, truth
from trunkline_agentkit.hooks import PATH, SESSION_HEADER, Hook, HookEndpoint
from trunkline_wire import TrunklineError, encode

EVENTS: Final[Mapping[str, str | None]] = {
    "Notification": None,
    "PermissionRequest": None,
    "PostToolUse": "Agent|Task|TaskCreate|TaskUpdate|TeamCreate|TeamDelete|SendMessage",
    "SessionEnd": None,
    "Stop": None,
    "SubagentStart": None,
    "SubagentStop": None,
    "TaskCompleted": None,
    "TaskCreated": None,
    "TeammateIdle": None,
}
"""What is heard of, and of which tools."""

TIMEOUT_S: Final = 2
"""Seconds that the agent waits at most for a receiver that has stopped answering."""

_PATH: Final = PATH.format(adapter="claude")
_NAME: Final = re.compile(r"[A-Za-z]{1,64}")
_ONCE: Final = {
    "PostToolUse": "tool_use_id",
    "PostToolUseFailure": "tool_use_id",
    "PreToolUse": "tool_use_id",
    "TaskCreated": "task_id",
    "UserPromptSubmit": "prompt_id",
}
"""Where the agent itself has a name for what has happened, which it never uses again with all else the same."""


def settings_file(source: Mapping[str, str]) -> Path:
    """The user's settings."""
    return configuration(source) / "settings.json"


def configuration(source: Mapping[str, str]) -> Path:
    """The CLI's own directory, of the user whose environment `source` is."""
    return Path(source.get("CLAUDE_CONFIG_DIR") or Path(source.get("HOME") or "~").expanduser() / ".claude")


def with_hooks(settings: Obj, endpoint: HookEndpoint) -> Obj:
    """Ours come last. Raises TrunklineError `bad_settings`."""
    settings = without_hooks(settings)
    ours: Obj = {
        "type": "http",
        "url": endpoint.url("claude"),
        "headers": {"Authorization": f"Bearer {endpoint.secret}", SESSION_HEADER: f"${SESSION_MARK}"},
        "allowedEnvVars": [SESSION_MARK],
        "timeout": TIMEOUT_S,
    }
    hooks = dict(obj(settings, "hooks"))
    for event, tools in EVENTS.items():
        group = ({} if tools is None else {"matcher": tools}) | {"hooks": [ours]}
        hooks[event] = [*hooks.get(event, []), group]
    return {**settings, "hooks": hooks}


def without_hooks(settings: Obj) -> Obj:
    """Raises TrunklineError `bad_settings` for hooks of a form that the CLI does not know: nothing of theirs is to get lost."""
    if "hooks" not in settings:
        return settings
    hooks: dict[str, Any] = {}
    for event, groups in _checked(settings["hooks"], dict, "hooks").items():
        left = [kept for group in _checked(groups, list, event) if (kept := _without(group)) is not None]
        if left or not groups:
            hooks[event] = left
    if not hooks and settings["hooks"]:
        return {name: value for name, value in settings.items() if name != "hooks"}
    return {**settings, "hooks": hooks}


def hindrances(settings: Obj, endpoint: HookEndpoint) -> list[str]:
    """What in the settings keeps ours from being called."""
    found: list[str] = []
    url = endpoint.url("claude")
    if truth(settings, "disableAllHooks"):
        found.append("`disableAllHooks` is on: no hook is called")
    if "allowedHttpHookUrls" in settings and not any(
        _covers(pattern, url) for pattern in strings(items(settings, "allowedHttpHookUrls"))
    ):
        found.append(f"`allowedHttpHookUrls` does not list {url}: add it")
    if "httpHookAllowedEnvVars" in settings and SESSION_MARK not in items(settings, "httpHookAllowedEnvVars"):
        found.append(f"`httpHookAllowedEnvVars` does not list {SESSION_MARK}: calls are not known to be of a session")
    return found


def read_hook(body: Obj) -> Hook | None:
    event, session = text(body, "hook_event_name"), text(body, "session_id")
    if event is None or session is None or _NAME.fullmatch(event) is None:
        return None
    once = event in _ONCE and text(body, _ONCE[event]) is not None
    digest = hashlib.sha256(encode(body)).hexdigest()[:32]
    return Hook(id=digest, event=event, native_session=session, input=body, once=once)


def _without(group: object) -> Obj | None:
    """A group of hooks without ours; None where nothing else was in it."""
    if not isinstance(group, dict):
        raise _odd("a group of hooks")
    group = as_obj(group)
    kept = [hook for hook in items(group, "hooks") if not _is_ours(as_obj(hook))]
    if len(kept) == len(items(group, "hooks")):
        return group
    return {**group, "hooks": kept} if kept else None


def _is_ours(hook: Obj) -> bool:
    address = urlsplit(text(hook, "url") or "")
    return (
        text(hook, "type") == "http"
        and (address.hostname, address.path) == ("127.0.0.1", _PATH)
        and SESSION_HEADER in obj(hook, "headers")
    )


def installed(settings: Obj) -> list[str]:
    """The events that hooks of ours stand for."""
    return sorted(
        event
        for event in obj(settings, "hooks")
        for group in objects(obj(settings, "hooks"), event)
        if any(_is_ours(hook) for hook in objects(group, "hooks"))
    )


def _covers(pattern: str, url: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), url) is not None


def _checked(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise _odd(repr(what))
    return value


def _odd(what: str) -> TrunklineError:
    return TrunklineError(
        "bad_settings", f"{what} in Claude Code's settings has a form that it does not know: correct it first"
    )
