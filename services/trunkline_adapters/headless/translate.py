"""The translator: native messages in, events out. A pure state machine over what the dialects have in common.

A run of the program is a turn. Its first word begins the turn, its `Ended` ends it, and where that does not come the program's
own end does: see `over`.
"""

from trunkline_adapters.headless.dialects import DIALECTS, RECOGNISED
from trunkline_adapters.headless.native import (
    TOOL_KINDS,
    Began,
    Called,
    Dialect,
    Ended,
    Noticed,
    Opened,
    Piece,
    Printed,
    Retrying,
    Returned,
    Said,
    Spoke,
    Used,
    kind_of,
)
from trunkline_adapters.headless.profiles import NO_PROFILE, Profile
from trunkline_adapters.headless.state import Run, Segment, State
from trunkline_agentkit.fields import Obj, as_obj, text, whole
from trunkline_agentkit.protocol import Context, Fact, ItemEnd, Out
from trunkline_agentkit.protocol import Piece as OutPiece
from trunkline_wire import Data
from trunkline_wire.blocks import Block, Choice, Location, TextBlock, ThinkingBlock, text_of
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.session import SessionInitialized, SessionStatus, SessionUpdated
from trunkline_wire.turn import (
    MessageAssistant,
    MessageSystem,
    Outcome,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import NativeMessage, UsageUpdated

_TITLES = ("description", "file_path", "path", "command", "pattern", "query", "url")


class HeadlessTranslator:
    """Translates one session's runs. Without a profile the first message says which dialect is spoken."""

    def __init__(self, context: Context, profile: Profile = NO_PROFILE, mode: str | None = None) -> None:
        self._profile = profile
        self._dialect: Dialect | None = DIALECTS.get(profile.dialect or "")
        self._state = State(context=context, capabilities=profile.capabilities, mode=mode)

    @property
    def native_session(self) -> str | None:
        """The agent's own name of the session, as it was told last."""
        return self._state.native_session

    @property
    def open(self) -> bool:
        """Whether a run has begun whose turn has not ended."""
        return not self._state.run.ended

    @property
    def heard(self) -> bool:
        """Whether the present run has said anything that begins its turn."""
        return self._state.run.begun

    @property
    def working(self) -> bool:
        """Whether a tool runs: the agent may be silent as long as it takes."""
        return bool(self._state.run.tools)

    def begin(self, command: str | None, *, anew: bool = False) -> None:
        """A process was started with the prompt that this command has brought; `anew`: without what was said before."""
        self._state.runs += 1
        self._state.run = Run(number=self._state.runs, command=command, anew=anew)

    def forget(self) -> None:
        """The run was started again, without what was said before."""
        self._state.run.anew = True
        self._state.native_session = None

    def interrupting(self) -> None:
        """We ask the program to end."""
        self._state.run.interrupted = True

    def choose_mode(self, mode: str) -> None:
        self._state.mode = mode

    def feed(self, message: Obj) -> list[Out]:
        """What a message of the agent means; [] for what is known to mean nothing."""
        if self._dialect is None:
            self._dialect = next((one for one in RECOGNISED if one(message) is not None), None)
        said = None if self._dialect is None else self._dialect(message)
        if said is None:
            return [_fact(NativeMessage(known=False, kind=kind_of(message), reason="unknown_type"))]
        return [out for one in said for out in self._take(one)]

    def start(self) -> list[Out]:
        """The run's turn begins with the program, which says nothing until it is over."""
        return self._take(Began())

    def line(self, text: str) -> list[Out]:
        """A line that is no JSON object, of an agent whose output is its answer."""
        return [out for one in (Began(), Piece(text=f"{text}\n")) for out in self._take(one)]

    def sent(self, message: Obj) -> list[Out]:
        """Nothing is said to the agent but prompts, which are no messages."""
        del message
        return []

    def over(self, outcome: Outcome, error: ErrorInfo | None) -> list[Out]:
        """The program has ended without an end of its turn."""
        return [*self._begin(), *self._end(Ended(outcome=outcome), error)]

    def answered(self) -> bool:
        """Whether a run whose program has ended well was a whole turn, where the dialect knows no end of one."""
        run = self._state.run
        return self._profile.ends == "exit" and (run.spoke or None in run.segments)

    def failure(self) -> str | None:
        """What the program has told of a failure in the present run."""
        return self._state.run.failure

    def _take(self, said: Said) -> list[Out]:
        state = self._state
        if isinstance(said, Began):
            return self._began(said)
        if state.run.ended:
            return self._after(said)
        out = self._begin()
        if state.run.retrying and not isinstance(said, Retrying | Noticed | Used):
            state.run.retrying = False
            out.append(_fact(SessionStatus()))
        match said:
            case Opened():
                out += self._close(said.lane)
                item = state.item(said.message)
                state.run.segments[said.lane] = Segment(item=item, count=state.run.counts.get(item, 0))
                return out or [OutPiece(item=item, block=0, kind="text", text="")]
            case Piece():
                return [*out, *self._piece(said)]
            case Spoke():
                return [*out, *self._spoke(said)]
            case Called():
                return [*out, *self._close(said.lane), *self._called(said)]
            case Printed():
                return [*out, OutPiece(item=state.item(said.id), block=0, kind="tool_output", text=said.text)]
            case Returned():
                return [*out, *self._close(None), *self._returned(said)]
            case Noticed():
                if said.level == "error":
                    state.run.failure = said.text
                return [*out, _fact(MessageSystem(text=said.text, level=said.level))]
            case Retrying():
                state.run.retrying = True
                status = SessionStatus(
                    status="retrying",
                    attempt=said.attempt,
                    max_attempts=said.most,
                    after_ms=said.after_ms,
                    reason=said.reason,
                )
                return [*out, _fact(status)]
            case Used():
                return [*out, _fact(UsageUpdated(usage=said.usage))]
            case Ended():
                return [*out, *self._end(said, self._error(said))]

    def _after(self, said: Said) -> list[Out]:
        """What a program says behind the end of its turn; in a recording without our part a further run begins with `Began`."""
        match said:
            case Noticed():
                return [_fact(MessageSystem(text=said.text, level=said.level))]
            case _:
                return []

    def _began(self, began: Began) -> list[Out]:
        state = self._state
        if state.run.ended:
            self.begin(None)
        elif state.run.begun:
            return []
        out: list[Out] = []
        native, model = began.session or state.native_session, began.model or state.model
        mode = state.mode or (began.mode if began.mode in self._profile.modes else None)
        if not state.initialized:
            state.initialized = True
            modes = [Choice(id=name) for name in self._profile.modes]
            data = SessionInitialized(
                capabilities=state.capabilities,
                native_session=native,
                model=model,
                mode=mode,
                modes=modes,
                tools=list(began.tools),
                mcp_servers=list(began.mcp_servers),
                version=began.version,
            )
            out.append(_fact(data))
        elif native != state.native_session or model != state.model:
            data = SessionUpdated(
                native_session=native if native != state.native_session else None,
                model=model if model != state.model else None,
            )
            out.append(_fact(data))
        state.native_session, state.model, state.mode = native, model, mode
        return [*out, *self._begin()]

    def _begin(self) -> list[Out]:
        state = self._state
        if state.run.begun:
            return []
        state.run.begun = True
        state.turns += 1
        out = [_fact(TurnStarted(number=state.turns), cause=state.run.command)]
        if state.run.anew:
            said = f"{self._profile.title} begins anew: it knows nothing of what was said before."
            out.append(_fact(MessageSystem(text=said, level="warning")))
        return out

    def _segment(self, lane: str | None, message: str | None = None) -> Segment:
        run = self._state.run
        found = run.segments.get(lane)
        if found is None:
            if message is None:
                run.messages += 1
                message = f"message#{run.messages}"
            item = self._state.item(message)
            found = run.segments[lane] = Segment(item=item, count=run.counts.get(item, 0))
        return found

    def _piece(self, piece: Piece) -> list[Out]:
        segment, lane = self._segment(piece.lane), self._state.lane(piece.lane)
        out = self._finish(segment, lane) if segment.kind not in {None, piece.kind} else []
        segment.kind = piece.kind
        segment.parts.append(piece.text)
        return [*out, OutPiece(item=segment.item, block=segment.count, kind=piece.kind, text=piece.text, lane=lane)]

    def _spoke(self, spoke: Spoke) -> list[Out]:
        written = self._state.run.segments.get(spoke.lane)
        segment, lane = self._segment(spoke.lane, spoke.message), self._state.lane(spoke.lane)
        content, out = list(spoke.content), list[Out]()
        if segment.kind is not None:
            if content and _kind(content[0]) == segment.kind:
                joined = segment.close()
                content[0] = content[0] if _text(content[0]) else joined or content[0]
            else:
                out += self._finish(segment, lane)
        content = [block for block in content if _text(block) and not _told(segment, block)]
        if content:
            data = MessageAssistant(
                content=content,
                block=segment.count,
                model=spoke.model,
                stop_reason=spoke.stop_reason,
                usage=spoke.usage,
            )
            out.append(_fact(data, item=segment.item, lane=lane))
            self._count(segment, len(content), lane)
        if written is None:
            # It came whole: what follows is a message of its own, or names this one.
            del self._state.run.segments[spoke.lane]
        return out or [OutPiece(item=segment.item, block=segment.count, kind="text", text="")]

    def _finish(self, segment: Segment, lane: str | None, *, aborted: bool = False) -> list[Out]:
        """The block that was being written, as far as it came."""
        block = segment.close()
        if block is None:
            return []
        segment.joined.add(text_of(block.text))
        data = MessageAssistant(content=[block], block=segment.count, aborted=aborted)
        self._count(segment, 1, lane)
        return [_fact(data, item=segment.item, lane=lane)]

    def _count(self, segment: Segment, blocks: int, lane: str | None) -> None:
        segment.count += blocks
        self._state.run.counts[segment.item] = segment.count
        self._state.run.spoke = self._state.run.spoke or lane is None

    def _close(self, lane: str | None, *, aborted: bool = False) -> list[Out]:
        """Something else follows what was being written."""
        segment = self._state.run.segments.pop(lane, None)
        if segment is None:
            return []
        return [*self._finish(segment, self._state.lane(lane), aborted=aborted), ItemEnd(segment.item)]

    def _called(self, called: Called) -> list[Out]:
        state = self._state
        if called.id in state.run.tools:
            return []
        state.run.tools[called.id] = called.lane
        given = as_obj(called.input)
        path = text(given, "file_path") or text(given, "path") or text(given, "absolute_path")
        data = ToolStarted(
            name=called.name,
            kind=TOOL_KINDS.get(called.name.lower(), "other"),
            title=_title(called.name, given),
            input=called.input,
            locations=[Location(path=path, line=whole(given, "offset"))] if path else [],
            native_id=called.id,
        )
        return [_fact(data, item=state.item(called.id), lane=state.lane(called.lane))]

    def _returned(self, returned: Returned) -> list[Out]:
        state = self._state
        if returned.id not in state.run.tools:
            return []
        lane = state.lane(state.run.tools.pop(returned.id))
        data = ToolCompleted(
            status=returned.status,
            content=[TextBlock(text=returned.said)] if returned.said else [],
            exit_code=returned.exit_code,
            duration_ms=returned.duration_ms,
            structured=returned.structured,
            reason=returned.said if returned.status != "completed" else None,
        )
        return [_fact(data, item=state.item(returned.id), lane=lane)]

    def _error(self, ended: Ended) -> ErrorInfo | None:
        if ended.outcome != "error":
            return None
        return self._profile.failure(ended.error or self._state.run.failure or "the turn ended with an error")

    def _end(self, ended: Ended, error: ErrorInfo | None) -> list[Out]:
        """The turn's end, and that of all that is open in it."""
        run = self._state.run
        cut = run.interrupted and ended.outcome != "success"
        outcome: Outcome = "interrupted" if cut else ended.outcome
        out: list[Out] = []
        for lane in list(run.segments):
            out += self._close(lane, aborted=outcome != "success")
        out += self._cancel(run)
        if run.retrying:
            out.append(_fact(SessionStatus()))
        run.ended = True
        data = TurnCompleted(
            outcome=outcome,
            error=None if cut else error,
            usage=ended.usage,
            cost_usd=ended.cost_usd,
            total_cost_usd=ended.total_cost_usd,
            duration_ms=ended.duration_ms,
            api_duration_ms=ended.api_duration_ms,
            stop_reason=ended.stop_reason,
            result=ended.result,
            models=list(ended.models),
            steps=ended.steps,
        )
        return [*out, _fact(data)]

    def _cancel(self, run: Run) -> list[Out]:
        state, open_tools = self._state, run.tools
        run.tools = {}
        data = ToolCompleted(status="cancelled", reason="the turn ended")
        return [_fact(data, item=state.item(id), lane=state.lane(lane)) for id, lane in open_tools.items()]


def _kind(block: Block) -> str | None:
    return "text" if isinstance(block, TextBlock) else "thinking" if isinstance(block, ThinkingBlock) else None


def _text(block: Block) -> bool:
    return not isinstance(block, TextBlock | ThinkingBlock) or bool(block.text)


def _told(segment: Segment, block: Block) -> bool:
    """Some tell the end of a block behind the next one."""
    return isinstance(block, TextBlock | ThinkingBlock) and text_of(block.text) in segment.joined


def _title(name: str, given: Obj) -> str:
    """A line for people: what the call does."""
    for key in _TITLES:
        if (said := text(given, key)) is not None and said.strip():
            first = said.strip().splitlines()[0][:200]
            return first if key == "description" else f"{name} {first}"
    return name


def _fact(data: Data, *, item: str | None = None, lane: str | None = None, cause: str | None = None) -> Out:
    return Fact(data=data, item=item, lane=lane, cause=cause)
