"""Turns: what begins them, which prompts they took, and how they end."""

import msgspec

from trunkline_adapters.claude.content import blocks_of
from trunkline_adapters.claude.errors import result_error
from trunkline_adapters.claude.state import Prompt, State, Turn, fact
from trunkline_adapters.claude.translate_asks import withdraw_main
from trunkline_adapters.claude.translate_tools import cancel_open
from trunkline_adapters.claude.usage import message_usage, total, turn_cost, turn_models, window_of
from trunkline_agentkit.fields import Obj, items, obj, strings, text, truth, whole
from trunkline_agentkit.protocol import Out
from trunkline_wire.blocks import Usage
from trunkline_wire.session import SessionStatus
from trunkline_wire.turn import Delivery, MessageUser, ModelUsage, Outcome, Trigger, TurnCompleted, TurnStarted


def prompted(state: State, line: Obj, command: str | None = None, delivery: Delivery = "queued") -> None:
    """A user line of ours goes out."""
    if truth(line, "isSynthetic"):
        return
    uuid = text(line, "uuid")
    content = blocks_of(obj(line, "message").get("content"))
    state.prompts.append(Prompt(uuid=uuid, command=command, content=content, delivery=delivery))
    if uuid:
        state.known_users.add(uuid)
        if command:
            state.commands[uuid] = command


def begin(state: State, uuids: list[str] | None = None) -> list[Out]:
    """A turn begins, if none is open. `uuids` are the prompts that the CLI says it took."""
    if state.turn is not None:
        return []
    prompt, trigger = _take(state, uuids or [])
    state.turns += 1
    state.turn = Turn(number=state.turns, trigger=trigger)
    if prompt is not None and prompt.uuid:
        state.turn.uuids.add(prompt.uuid)
    cause = prompt.command if prompt is not None else None
    return [fact(TurnStarted(number=state.turns, trigger=trigger), cause=cause)]


def _take(state: State, uuids: list[str]) -> tuple[Prompt | None, Trigger]:
    for uuid in uuids:
        found = next((prompt for prompt in state.prompts if prompt.uuid == uuid), None)
        if found is not None:
            state.prompts.remove(found)
            return found, "prompt"
        return Prompt(uuid=uuid), "prompt"
    # A CLI that reports the life of prompts names those it takes: what is waiting with a uuid is not this turn's.
    waiting = [prompt for prompt in state.prompts if prompt.uuid is None or not state.lifecycle]
    if waiting:
        state.prompts.remove(waiting[0])
        return waiting[0], "prompt"
    return None, "background"


def lifecycle(state: State, message: Obj) -> list[Out]:
    """`command_lifecycle`: queued, started, completed or cancelled, of one prompt by its uuid."""
    state.lifecycle = True
    uuid = text(message, "command_uuid")
    if uuid is None:
        return []
    match text(message, "state"):
        case "started":
            if state.turn is None:
                return begin(state, [uuid])
            return _folded(state, uuid)
        case "cancelled" | "completed":
            # Completed without a start: the CLI has had this uuid before, perhaps in an earlier process, and drops it.
            prompt = next((one for one in state.prompts if one.uuid == uuid), None)
            if prompt is None:
                return []
            state.prompts.remove(prompt)
            return _delivered(state, prompt, "cancelled")
        case _:
            return []


def _folded(state: State, uuid: str) -> list[Out]:
    assert state.turn is not None
    if uuid in state.turn.uuids:
        return []
    state.turn.uuids.add(uuid)
    prompt = next((one for one in state.prompts if one.uuid == uuid), None)
    if prompt is None:
        return []
    state.prompts.remove(prompt)
    return [] if prompt.delivery == "steered" else _delivered(state, prompt, "steered")


def _delivered(state: State, prompt: Prompt, delivery: Delivery) -> list[Out]:
    """The message again, with what became of it: the same item, so it replaces what was told before."""
    item = state.item(prompt.command or prompt.uuid or "")
    data = MessageUser(content=prompt.content, delivery=delivery, command=prompt.command)
    return [fact(data, item=item)]


def recover(state: State) -> list[Out]:
    """Something of the agent's work came: retrying and compacting are over."""
    if state.condition is None:
        return []
    state.condition = None
    return [fact(SessionStatus(status=None))]


def result(state: State, message: Obj) -> list[Out]:
    """The end of a turn: one result for all prompts that were folded into it."""
    uuids = strings(items(message, "user_message_uuids"))
    out = begin(state, uuids)
    turn = state.turn
    assert turn is not None
    outcome = _outcome(turn, message)
    cancelled = "the turn was interrupted" if outcome == "interrupted" else "the turn ended without a result"
    out += recover(state)
    out += cancel_open(state, cancelled)
    out += withdraw_main(state)
    cost, total_cost = turn_cost(state, message)
    models = turn_models(state, message)
    data = TurnCompleted(
        outcome=outcome,
        trigger=_trigger(turn, message),
        error=result_error(message, turn.error) if outcome == "error" else None,
        structured_output=message.get("structured_output"),
        usage=_usage(state, message, models),
        cost_usd=cost,
        total_cost_usd=total_cost,
        duration_ms=whole(message, "duration_ms"),
        api_duration_ms=whole(message, "duration_api_ms"),
        stop_reason=text(message, "stop_reason") or text(message, "terminal_reason"),
        result=text(message, "result"),
        lines_added=turn.lines_added,
        lines_removed=turn.lines_removed,
        models=models,
        steps=whole(message, "num_turns"),
    )
    state.turn = None
    state.streams.clear()
    state.blocks.clear()
    taken = {*uuids, *turn.uuids}
    state.prompts = [prompt for prompt in state.prompts if prompt.uuid is None or prompt.uuid not in taken]
    return [*out, fact(data)]


def _trigger(turn: Turn, message: Obj) -> Trigger:
    kind = text(obj(message, "origin"), "kind")
    if kind is None:
        return turn.trigger
    return "background" if kind == "task-notification" else "other"


def _outcome(turn: Turn, message: Obj) -> Outcome:
    """`is_error` decides, never the subtype: a failed call of the API comes as `success`."""
    terminal = text(message, "terminal_reason") or ""
    if text(message, "stop_reason") == "refusal":
        return "refused"
    match text(message, "subtype"):
        case "error_max_turns":
            return "max_turns"
        case "error_max_budget_usd":
            return "max_budget"
        case "error_max_structured_output_retries":
            return "max_structured_output"
        case "error_during_execution" if turn.interrupted or terminal.startswith("aborted_"):
            return "interrupted"
        case _:
            pass
    if not truth(message, "is_error") and not (text(message, "subtype") or "success").startswith("error"):
        return "success"
    limits: dict[str, Outcome] = {
        "max_turns": "max_turns",
        "budget_exhausted": "max_budget",
        "structured_output_retry_exhausted": "max_structured_output",
    }
    return limits.get(terminal, "error")


def _usage(state: State, message: Obj, models: list[ModelUsage]) -> Usage | None:
    """All that was used since the last result, subagents and interrupted calls included: it adds up, as the cost does.

    The result's own `usage` leaves both out; it serves where the CLI does not say more.
    """
    usage = message_usage(obj(message, "usage"))
    if isinstance(message.get("model_usage_since_last_result"), dict) and models:
        usage = total(models)
    if usage is None or state.context_used is None:
        return usage
    size = window_of(message, state.known.model)
    return msgspec.structs.replace(usage, context_used=state.context_used, context_size=size)


def interrupting(state: State) -> None:
    """We have asked the agent to end its turn."""
    if state.turn is not None:
        state.turn.interrupted = True
