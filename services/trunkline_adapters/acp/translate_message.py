"""What the model says: chunks, joined to messages at the next boundary."""

import re
from typing import Final, Literal

from trunkline_adapters.acp.content import block_of
from trunkline_adapters.acp.profiles import Profile
from trunkline_adapters.acp.state import Segment, State, Turn, fact, passing
from trunkline_adapters.acp.translate_session import mode_changed
from trunkline_adapters.acp.usage import note_call
from trunkline_agentkit.fields import Obj, obj, text
from trunkline_agentkit.protocol import ItemEnd, Out, Piece
from trunkline_wire.blocks import TextBlock, ThinkingBlock, text_of
from trunkline_wire.turn import MessageAssistant, MessageSystem, MessageUser

_KINDS: Final[dict[str, Literal["text", "thinking"]]] = {
    "agent_message_chunk": "text",
    "agent_thought_chunk": "thinking",
}


def spoke(state: State, update: Obj) -> list[Out]:
    """A chunk of an agent's message or thought."""
    block = block_of(obj(update, "content"))
    native, lane = text(update, "messageId"), state.lane_of(update)
    said = text_of(block.text) if isinstance(block, TextBlock) else None
    kind = _KINDS[text(update, "sessionUpdate") or ""]
    note_call(state, update)
    if said is not None and kind == "text" and native is None:
        if (told := _mode(state, said)) is not None:
            return told
        if state.profile.silent_chunk is not None and re.search(state.profile.silent_chunk, said):
            return passing(state)
        if state.profile.notice_chunk is not None and re.search(state.profile.notice_chunk, said):
            return [fact(MessageSystem(text=said.strip(), level="warning"))]
        if state.turn is not None and _tells_failure(state.profile, state.turn, said):
            state.turn.failure = said.strip()
            return [*close_segment(state, aborted=True), fact(MessageSystem(text=said.strip(), level="error"))]
    if state.turn is not None:
        state.turn.failure = None
    out: list[Out] = []
    segment = state.segment
    if segment is None or segment.native != native or segment.lane != lane:
        out += close_segment(state)
        segment = _open(state, native, lane)
    if said is None:
        _finish_block(segment)
        segment.blocks.append(block)
        out += passing(state)
    else:
        if segment.kind != kind:
            _finish_block(segment)
            segment.kind = kind
        segment.parts.append(said)
        out.append(Piece(item=segment.item, block=segment.index, kind=kind, text=said, lane=lane))
    if state.turn is None:
        # Nothing will end it: said outside of a turn, each chunk is a message.
        out += close_segment(state)
    return out


def _tells_failure(profile: Profile, turn: Turn, said: str) -> bool:
    if turn.failure is not None:
        return not turn.failure
    return profile.error_chunk is not None and re.search(profile.error_chunk, said) is not None


def _mode(state: State, said: str) -> list[Out] | None:
    found = re.fullmatch(state.profile.mode_chunk, said) if state.profile.mode_chunk is not None else None
    return None if found is None else mode_changed(state, found[1])


def _open(state: State, native: str | None, lane: str | None) -> Segment:
    state.segments += 1
    item = state.item(f"message:{native}" if native is not None else f"message#{state.segments}")
    state.segment = Segment(item=item, native=native, first=state.blocks.get(item, 0), lane=lane)
    return state.segment


def _finish_block(segment: Segment) -> None:
    said = "".join(segment.parts)
    if said:
        segment.blocks.append(ThinkingBlock(text=said) if segment.kind == "thinking" else TextBlock(text=said))
    segment.kind = None
    segment.parts.clear()


def close_segment(state: State, *, aborted: bool = False) -> list[Out]:
    """The message that is being written is finished: something else follows."""
    segment = state.segment
    if segment is None:
        return []
    state.segment = None
    _finish_block(segment)
    if not segment.blocks:
        return []
    state.blocks[segment.item] = segment.first + len(segment.blocks)
    data = MessageAssistant(content=segment.blocks, block=segment.first, aborted=aborted)
    return [fact(data, item=segment.item, lane=segment.lane), ItemEnd(segment.item)]


def user_spoke(state: State, update: Obj) -> list[Out]:
    """A chunk of a user's message: our own prompt comes back, or the agent writes in the user's name."""
    block = block_of(obj(update, "content"))
    if state.turn is None:
        return []
    said = text_of(block.text) if isinstance(block, TextBlock) else None
    if said is None or said.strip() in state.turn.prompt.said:
        return passing(state)
    return [*close_segment(state), fact(MessageUser(content=[block], synthetic=True))]
