"""The sessions that a program keeps in its own store, as lines and then as events. Pure.

A line is a session (`{"session": …}`) or a message with its parts, as the server tells them; those of a sub-agent's session
stand before the message with its call. The server keeps what is final, so nothing is told twice. Turns follow from who
spoke: one begins with a user's message and ends at the next, or with the history. Measured on OpenCode 1.18.33, Kilo 7.7.7.
"""

import datetime as dt
from typing import Final

from trunkline_adapters.opencode import tools
from trunkline_adapters.opencode.content import blocks_of
from trunkline_adapters.opencode.errors import ABORTED, error_info, is_refusal, name_of
from trunkline_adapters.opencode.usage import Counts, counts, usage_of
from trunkline_agentkit.fields import Obj, as_obj, obj, objects, text, truth, whole
from trunkline_agentkit.history import About, Dated
from trunkline_agentkit.protocol import Context, Fact
from trunkline_wire import Data, ErrorInfo, decode_json, timestamp
from trunkline_wire.blocks import Block, TextBlock, ThinkingBlock
from trunkline_wire.ids import item_id
from trunkline_wire.session import SessionCompacted
from trunkline_wire.turn import (
    MessageAssistant,
    MessageUser,
    Outcome,
    ToolCompleted,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import NativeMessage

CALL: Final = "call"
"""The field by which a sub-agent's lines say the tool part that runs it, as JSON."""


class OpenCodeHistory:
    """Translates the lines of one session, in order."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._about = About()
        self._time: str | None = None
        self._turns = 0
        self._running = False
        self._answered = False
        """Whether the model has said or done anything in the turn."""
        self._outcome: Outcome | None = None
        """What the last message says of it, if that is no success."""
        self._error: ErrorInfo | None = None
        self._counts = Counts()
        self._compacting: str | None = None
        """How the compaction was begun whose summary is to come."""
        self._open: dict[str, str | None] = {}
        """Tool parts without a result, and the lanes in which they are."""
        self._begun: set[str] = set()

    @property
    def about(self) -> About:
        return self._about

    def feed(self, line: Obj) -> list[Dated]:
        if session := obj(line, "session"):
            about = self._about
            about.cwd, about.title = text(session, "directory"), text(session, "title")
            about.version = text(session, "version")
            return []
        lane: str | None = None
        out: list[Dated] = []
        info, parts = obj(line, "info"), objects(line, "parts")
        if (said := text(line, CALL)) is not None:
            call = as_obj(decode_json(said))
            lane = self._item(text(call, "id") or said)
            out = self._dated(self._call(call, None), whole(obj(info, "time"), "created"))
        match text(info, "role"):
            case "user":
                return out + self._user(info, parts, lane)
            case "assistant":
                return out + self._model(info, parts, lane)
            case other:
                unknown = NativeMessage(known=False, kind=f"history/{other or 'untyped'}", reason="unknown_type")
                return out + self._dated([Fact(data=unknown)], None)

    def end(self) -> list[Dated]:
        return self._dated(self._end_turn(), None)

    def _user(self, info: Obj, parts: list[Obj], lane: str | None) -> list[Dated]:
        time = whole(obj(info, "time"), "created")
        for part in parts:
            if text(part, "type") == "compaction" and lane is None:
                self._compacting = "auto" if truth(part, "auto") else "manual"
        content = blocks_of([part for part in parts if not (truth(part, "synthetic") or truth(part, "ignored"))])
        if not content:
            return []
        said = Fact(
            data=MessageUser(content=content, synthetic=lane is not None),
            item=self._item(text(info, "id") or f"message {time}"),
            lane=lane,
        )
        if lane is not None:
            return self._dated([said], time)
        ended = self._dated(self._end_turn(), None)
        return ended + self._dated([*self._begin(), said], time)

    def _model(self, info: Obj, parts: list[Obj], lane: str | None) -> list[Dated]:
        item = self._item(text(info, "id") or "message")
        created, completed = whole(obj(info, "time"), "created"), whole(obj(info, "time"), "completed")
        if truth(info, "summary") and lane is None:
            return self._compacted(parts, item, completed or created)
        out: list[Dated] = []
        model = "/".join(name for key in ("providerID", "modelID") if (name := text(info, key)))
        if lane is None:
            if self._compacting == "manual":
                out += self._dated(self._end_turn(), None)
            self._compacting = None
            out += self._dated(self._begin(), created)
            self._note(info, model)
        block = 0
        for part in parts:
            match text(part, "type"):
                case "text" | "reasoning" as kind if said := text(part, "text"):
                    if truth(part, "synthetic") or truth(part, "ignored"):
                        continue
                    shown: Block = TextBlock(text=said) if kind == "text" else ThinkingBlock(text=said)
                    data = MessageAssistant(content=[shown], block=block, model=model or None)
                    block += 1
                    self._answered = self._answered or lane is None
                    time = whole(obj(part, "time"), "end") or created
                    out += self._dated([Fact(data=data, item=item, lane=lane)], time)
                case "tool":
                    self._answered = self._answered or lane is None
                    out += self._tool(part, lane, created)
                case _:
                    pass  # marks of steps, and what tools and prompts tell
        if completed is not None and lane is None:
            self._time = _moment(completed)
        return out

    def _note(self, info: Obj, model: str) -> None:
        """What a message of the model says of its turn."""
        self._about.model = model or self._about.model
        self._about.mode = text(info, "mode") or self._about.mode
        self._counts += counts(info)
        error = obj(info, "error")
        self._error, self._outcome = None, None
        if name_of(error) == ABORTED:
            self._outcome = "interrupted"
        elif is_refusal(error):
            self._outcome = "refused"
        elif error:
            self._outcome, self._error = "error", error_info(error)

    def _compacted(self, parts: list[Obj], item: str, time: int | None) -> list[Dated]:
        how, self._compacting = self._compacting or "unknown", None
        ended = self._dated(self._end_turn(), None) if how == "manual" else []
        said = "".join(text(part, "text") or "" for part in parts if text(part, "type") == "text")
        facts = [Fact(data=SessionCompacted(trigger=how))]
        if said:
            facts.append(Fact(data=MessageUser(content=[TextBlock(text=said)], synthetic=True), item=item))
        return ended + self._dated(facts, time)

    def _tool(self, part: Obj, lane: str | None, created: int | None) -> list[Dated]:
        state = obj(part, "state")
        begun = self._dated(self._call(part, lane), whole(obj(state, "time"), "start") or created)
        if text(state, "status") not in {"completed", "error"} or (id := text(part, "id")) not in self._open:
            return begun
        del self._open[id]
        item = self._item(id)
        done = tools.completed(part)
        changes = tools.file_changes(part) if done.status == "completed" else []
        facts = [Fact(data=data, item=item, lane=lane) for data in (done, *changes)]
        return begun + self._dated(facts, whole(obj(state, "time"), "end") or created)

    def _call(self, part: Obj, lane: str | None) -> list[Fact]:
        id = text(part, "id")
        if id is None or id in self._begun:
            return []
        self._begun.add(id)
        self._open[id] = lane
        return [Fact(data=tools.started(part), item=self._item(id), lane=lane)]

    def _begin(self) -> list[Fact]:
        if self._running:
            return []
        self._running = True
        self._turns += 1
        return [Fact(data=TurnStarted(number=self._turns))]

    def _end_turn(self) -> list[Fact]:
        reason = "the turn ended without its result"
        left = [
            Fact(data=ToolCompleted(status="cancelled", reason=reason), item=self._item(id), lane=lane)
            for id, lane in self._open.items()
        ]
        self._open.clear()
        if not self._running:
            return left
        outcome = self._outcome or ("success" if self._answered and not left else "aborted")
        used = self._counts
        data: Data = TurnCompleted(
            outcome=outcome,
            error=self._error,
            usage=usage_of(used) if used.tokens else None,
            cost_usd=used.cost if used.tokens else None,
        )
        self._running = self._answered = False
        self._outcome, self._error, self._counts = None, None, Counts()
        return [*left, Fact(data=data)]

    def _item(self, native: str) -> str:
        return item_id(self._context.session, self._context.incarnation, native)

    def _dated(self, facts: list[Fact], time: int | None) -> list[Dated]:
        if facts and time is not None:
            self._time = _moment(time)
        return [Dated(fact, self._time) for fact in facts]


def _moment(millis: int) -> str | None:
    """Milliseconds since 1970 as events have times; None for what is no time."""
    try:
        return timestamp(dt.datetime.fromtimestamp(millis / 1000, dt.UTC))
    except (OverflowError, OSError, ValueError):
        return None
