"""Which call a sub-agent's thread belongs to. Codex names the thread only when the call is over, after its first messages."""

from trunkline_adapters.codex.state import State
from trunkline_agentkit.fields import Obj, obj, objects, text


def lane_of(state: State, method: str, params: Obj) -> str | None:
    """The item of the call that started the sub-agent of this message's thread; None where there is none."""
    thread = text(params, "threadId") or text(obj(params, "thread"), "id")
    if thread is None:
        return None
    if thread not in state.lanes and (call := _claimed(state, method, params)) is not None:
        state.lanes[thread] = call
        del state.unclaimed[call]
    return state.lanes.get(thread)


def _claimed(state: State, method: str, params: Obj) -> str | None:
    """The only call that waits for its thread, or that with the prompt which this thread begins with."""
    item = obj(params, "item")
    if method in {"item/started", "item/completed"} and text(item, "type") == "userMessage":
        said = "".join(text(part, "text") or "" for part in objects(item, "content"))
        return next((call for call, prompt in state.unclaimed.items() if prompt and prompt == said), _single(state))
    return _single(state)


def _single(state: State) -> str | None:
    return next(iter(state.unclaimed)) if len(state.unclaimed) == 1 else None
