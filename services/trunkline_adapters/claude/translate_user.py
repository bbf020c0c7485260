"""User messages of the agent: tool results, a subagent's prompt, summaries, output of commands, echoes of ours."""

from trunkline_adapters.claude.content import blocks_of
from trunkline_adapters.claude.state import State, fact
from trunkline_adapters.claude.translate_asks import forget_tool
from trunkline_adapters.claude.translate_tools import completed
from trunkline_agentkit.fields import Obj, as_obj, items, obj, text, truth
from trunkline_agentkit.protocol import Out
from trunkline_wire.turn import MessageUser


def user(state: State, message: Obj) -> list[Out]:
    content = obj(message, "message").get("content")
    uuid = text(message, "uuid")
    if _is_echo(state, message, content, uuid):
        return []
    lane = state.lane_of(message)
    out: list[Out] = []
    rest: list[Obj] = []
    for part in items({"content": content}, "content"):
        block = as_obj(part)
        if block.get("type") == "tool_result":
            out += forget_tool(state, text(block, "tool_use_id") or "")
            out += completed(state, message, block, lane)
        else:
            rest.append(block)
    said = blocks_of(content) if isinstance(content, str) else blocks_of(rest)
    if said:
        if uuid:
            state.known_users.add(uuid)
        data = MessageUser(content=said, synthetic=True)
        out.append(fact(data, item=state.item(uuid) if uuid else None, lane=lane))
    return out


def _is_echo(state: State, message: Obj, content: object, uuid: str | None) -> bool:
    """A prompt of ours that comes back, or what was told before: the log has it."""
    if uuid is not None and uuid in state.known_users:
        return True
    return truth(message, "isReplay") and not (isinstance(content, str) and content.startswith("<local-command-"))
