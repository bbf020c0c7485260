"""Modes: what a session may do and what it has to ask for, as pairs of Codex's approval policy and sandbox. Pure."""

from typing import Any, Final

import msgspec

from trunkline_agentkit.fields import Obj, obj, text
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import Choice

PLAN: Final = "plan"
"""Codex's collaboration mode of that name; it keeps the policies it began with."""

APPROVALS: Final = ("untrusted", "on-request", "never")
SANDBOXES: Final = {
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
    "danger-full-access": "dangerFullAccess",
}
"""As `thread/start` says them -> as `turn/start` and settings do."""
WORKSPACE_WRITE: Final = "workspace-write"

_CONFIGURED: Final = "sandbox_workspace_write"
_WORKSPACE: Final = {
    "exclude_slash_tmp": "excludeSlashTmp",
    "exclude_tmpdir_env_var": "excludeTmpdirEnvVar",
    "network_access": "networkAccess",
    "writable_roots": "writableRoots",
}
"""What the sandbox allows, as config.toml says it -> as settings do."""


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    """One way to work. `approval` and `sandbox` are Codex's own words (`thread/start`)."""

    approval: str
    sandbox: str
    name: str = ""
    description: str = ""


MODES: Final = {
    "read-only": Mode(
        approval="on-request",
        sandbox="read-only",
        name="Read only",
        description="Reads; asks before it changes anything",
    ),
    "auto": Mode(
        approval="on-request",
        sandbox="workspace-write",
        name="Auto",
        description="Works inside the directory; asks for what lies outside of it and for the network",
    ),
    "untrusted": Mode(
        approval="untrusted",
        sandbox="workspace-write",
        name="Ask",
        description="Asks before every command that isn't known to be harmless, and before edits",
    ),
    "no-questions": Mode(
        approval="never",
        sandbox="workspace-write",
        name="No questions",
        description="Works inside the directory; what lies outside fails without a question",
    ),
    "full-access": Mode(
        approval="never",
        sandbox="danger-full-access",
        name="Full access",
        description="No sandbox, asks nothing at all",
    ),
}


def choices(current: str | None) -> list[Choice]:
    """All modes to choose from, and the current one if it is another pair of policies."""
    found = [Choice(id=id_, name=mode.name, description=mode.description) for id_, mode in MODES.items()]
    found.append(Choice(id=PLAN, name="Plan", description="Asks questions and makes a plan, changes nothing"))
    if current is not None and all(choice.id != current for choice in found):
        found.append(Choice(id=current))
    return found


def mode_of(settings: Obj) -> str | None:
    """The mode's id, from a thread's settings or from the answer to `thread/start`; None where they do not say."""
    if text(obj(settings, "collaborationMode"), "mode") == PLAN:
        return PLAN
    policy = settings.get("approvalPolicy")
    approval = "granular" if isinstance(policy, dict) else policy
    native = text(obj(settings, "sandboxPolicy") or obj(settings, "sandbox"), "type")
    sandbox = next((name for name, other in SANDBOXES.items() if other == native), native)
    if not isinstance(approval, str) or sandbox is None:
        return None
    return _named(approval, sandbox)


def _named(approval: str, sandbox: str) -> str:
    known = (id_ for id_, mode in MODES.items() if (mode.approval, mode.sandbox) == (approval, sandbox))
    return next(known, f"{approval}/{sandbox}")


def policies(mode: str) -> Mode:
    """The policies of a mode's id. Raises TrunklineError `bad_params` for one that is unknown."""
    if (found := MODES.get(mode)) is not None:
        return found
    approval, _, sandbox = mode.partition("/")
    if approval in APPROVALS and sandbox in SANDBOXES:
        return Mode(approval=approval, sandbox=sandbox)
    raise TrunklineError(
        "bad_params",
        f"mode {mode!r} is unknown; there are: {', '.join([*MODES, PLAN])}, and any of "
        f"{'|'.join(APPROVALS)}/{'|'.join(SANDBOXES)}",
    )


def name_of(mode: str) -> str:
    """The id by which Codex's settings name this mode: a known one, where a pair of policies is one. Raises `bad_params`."""
    if mode == PLAN:
        return mode
    chosen = policies(mode)
    return _named(chosen.approval, chosen.sandbox)


def needs_workspace(mode: str) -> bool:
    """Whether the mode's sandbox is the one that has settings of its own. Raises `bad_params`."""
    return mode != PLAN and policies(mode).sandbox == WORKSPACE_WRITE


def workspace_of(policy: Obj) -> Obj | None:
    """The settings of a sandbox policy in the thread's settings, if it is the one that has any."""
    return policy if text(policy, "type") == SANDBOXES[WORKSPACE_WRITE] else None


def configured_workspace(config: Obj, own: Obj) -> Obj:
    """The same from the configuration that Codex reads, and from the session's `own` keys of it, dotted or not, which win."""
    chosen = obj(config, _CONFIGURED) | obj(own, _CONFIGURED)
    chosen |= {
        key.removeprefix(f"{_CONFIGURED}."): value for key, value in own.items() if key.startswith(f"{_CONFIGURED}.")
    }
    return {name: chosen[key] for key, name in _WORKSPACE.items() if chosen.get(key) is not None}


def settings(
    mode: str, *, current: str | None, model: str | None, effort: str | None, workspace: Obj | None = None
) -> dict[str, Any]:
    """What `thread/settings/update` is to change for this mode; the others are the thread's present settings.

    `workspace`: what the sandbox `workspace-write` is to allow besides; Codex takes none of it from its configuration here.
    Raises TrunklineError `bad_params`.
    """
    if mode == PLAN:
        return {"collaborationMode": _collaboration(PLAN, model, effort)}
    chosen = policies(mode)
    changed: dict[str, Any] = {
        "approvalPolicy": chosen.approval,
        "sandboxPolicy": (workspace or {} if chosen.sandbox == WORKSPACE_WRITE else {})
        | {"type": SANDBOXES[chosen.sandbox]},
    }
    return changed | ({"collaborationMode": _collaboration("default", model, effort)} if current == PLAN else {})


def _collaboration(mode: str, model: str | None, effort: str | None) -> Obj:
    # Codex wants all of the settings; what is null falls back to its own instructions.
    own = {"model": model or "", "reasoning_effort": effort, "developer_instructions": None}
    return {"mode": mode, "settings": own}
