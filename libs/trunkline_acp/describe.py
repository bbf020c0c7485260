"""A session's state in the protocol's words: modes, config options, commands, plan, usage; and what of it has changed. Pure."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from trunkline_agentkit.fields import Obj
from trunkline_fold.state import SessionState
from trunkline_wire.blocks import Choice, Usage
from trunkline_wire.turn import Outcome, TurnCompleted

MODE: Final = "mode"
MODEL: Final = "model"
THINKING: Final = "thinking"
UNSET: Final = "default"
"""What an option is set to while nobody has set it and the agent has not told."""
LEVELS: Final = ("off", "low", "medium", "high", "max")

STOPS: Final[dict[Outcome, str]] = {
    "success": "end_turn",
    "interrupted": "cancelled",
    "refused": "refusal",
    "max_turns": "max_turn_requests",
    "max_budget": "max_turn_requests",
    "max_structured_output": "max_turn_requests",
}
"""How a turn has ended -> the protocol's stop reason. What is missing here is an error."""


def expected(state: SessionState, like: SessionState | None) -> SessionState:
    """A session whose agent has not started, with what it could choose from in a session before; any other as it is."""
    if like is None or state.initialized:
        return state
    return replace(state, modes=like.modes, models=like.models, capabilities=like.capabilities)


def described(state: SessionState) -> Obj:
    """What the answers to `session/new`, `load` and `resume` say of a session. What is not known yet is told by an update."""
    found: Obj = {"configOptions": config_options(state)}
    if (modes := mode_state(state)) is not None:
        found["modes"] = modes
    return found


def mode_state(state: SessionState) -> Obj | None:
    current = _mode(state)
    if not state.modes or current is None:
        return None
    modes = [_named(one, "id") for one in _with(state.modes, current)]
    return {"currentModeId": current, "availableModes": modes}


def config_options(state: SessionState) -> list[Obj]:
    """Mode, model and thinking as options to choose from, as far as the agent has them."""
    found: list[Obj] = []
    mode, model, thinking = _mode(state), state.model or state.options.model, state.thinking or state.options.thinking
    if state.modes:
        found.append(_select(MODE, "Mode", "mode", state.modes, mode))
    if state.models:
        found.append(_select(MODEL, "Model", "model", state.models, model))
    if state.capabilities is not None and state.capabilities.thinking:
        levels = [Choice(id=level, name=level.capitalize()) for level in LEVELS]
        found.append(_select(THINKING, "Thinking", "thought_level", levels, thinking))
    return found


def changes(before: SessionState, after: SessionState) -> list[Obj]:
    """The updates that tell an editor what differs."""
    updates: list[Obj] = []
    if after.title != before.title and after.title is not None:
        updates.append({"sessionUpdate": "session_info_update", "title": after.title, "updatedAt": after.updated})
    if after.commands != before.commands:
        updates.append(commands(after))
    if _mode(after) != _mode(before) and mode_state(after) is not None:
        updates.append({"sessionUpdate": "current_mode_update", "currentModeId": _mode(after)})
    if (options := config_options(after)) != config_options(before):
        updates.append({"sessionUpdate": "config_option_update", "configOptions": options})
    if after.plan != before.plan:
        updates.append(plan(after))
    if (used := usage(after)) is not None and used != usage(before):
        updates.append(used)
    return updates


def commands(state: SessionState) -> Obj:
    """The agent's slash commands."""
    told = [
        {"name": one.id, "description": one.description or one.name or one.id}
        | ({"input": {"hint": one.hint}} if one.hint else {})
        for one in state.commands
    ]
    return {"sessionUpdate": "available_commands_update", "availableCommands": told}


def plan(state: SessionState) -> Obj:
    entries = [
        {"content": one.content, "priority": one.priority or "medium", "status": one.status} for one in state.plan
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def usage(state: SessionState) -> Obj | None:
    """How full the context is, and the cost so far; None as long as the agent has not told the former."""
    used, size = state.context.used, state.context.size
    if used is None or size is None:
        return None
    told: Obj = {"sessionUpdate": "usage_update", "used": used, "size": size}
    return told if state.cost_usd is None else told | {"cost": {"amount": state.cost_usd, "currency": "USD"}}


def stop(ended: TurnCompleted) -> Obj | None:
    """The answer to a prompt whose turn has ended so; None where it has failed."""
    reason = STOPS.get(ended.outcome)
    if reason is None:
        return None
    if ended.outcome == "success" and ended.stop_reason == "max_tokens":
        reason = "max_tokens"
    told: Obj = {"stopReason": reason}
    return told if ended.usage is None else told | {"usage": _usage(ended.usage)}


def session_info(state: Obj) -> Obj:
    """An entry of `session/list`, of a state as the gateway has it."""
    title = state.get("title") or state.get("last_text")
    told = {"sessionId": state["session"], "cwd": state.get("cwd") or "/", "updatedAt": state.get("updated")}
    return told | ({"title": " ".join(str(title).split())[:120]} if title else {})


def _usage(used: Usage) -> dict[str, Any]:
    told = {
        "inputTokens": used.input,
        "outputTokens": used.output,
        "cachedReadTokens": used.cache_read,
        "cachedWriteTokens": used.cache_write,
        "totalTokens": used.input + used.output + used.cache_read + used.cache_write,
    }
    return told if used.reasoning is None else told | {"thoughtTokens": used.reasoning}


def _mode(state: SessionState) -> str | None:
    return state.mode or state.options.mode


def _select(id: str, name: str, category: str, choices: Sequence[Choice], current: str | None) -> Obj:
    offered = _with(choices, current or UNSET)
    return {
        "type": "select",
        "id": id,
        "name": name,
        "category": category,
        "currentValue": current or UNSET,
        "options": [_named(one, "value") for one in offered],
    }


def _with(choices: Sequence[Choice], current: str) -> list[Choice]:
    """The choices, with the one that is set, even if the agent does not list it."""
    listed = [*choices]
    return listed if any(one.id == current for one in listed) else [Choice(id=current, name=current), *listed]


def _named(choice: Choice, key: str) -> Obj:
    told: Obj = {key: choice.id, "name": choice.name or choice.id}
    return told if choice.description is None else told | {"description": choice.description}
