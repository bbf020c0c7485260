"""From native messages to the log: numbering, turns, what is kept, and the ends that an agent forgot."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from trunkline_agentkit import Fact, ItemEnd, Native, Out, Piece, load
from trunkline_agentkit.endings import leftovers
from trunkline_agentkit.intake import Cause, Intake, Lines
from trunkline_agentkit.memory import Memory
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.protocol import Context
from trunkline_agentkit.recorder import Recorder
from trunkline_agentkit.replay import INCARNATION, SESSION, Replay, translate
from trunkline_wire import Data, Event, Source, make_event
from trunkline_wire.asks import AskWithdrawn, PermissionRequested
from trunkline_wire.blocks import TextBlock
from trunkline_wire.session import SessionInitialized, SessionResumed, SessionStatus, SessionUpdated
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import CommandAccepted, ErrorRaised, NativeMessage, TaskUpdated

TIME = "2026-11-27T12:00:00.000000Z"


class Paper:
    """Takes what is written, in place of a log."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.pieces: list[str] = []
        self.ended: list[str] = []

    def append(
        self, data: Data, *, native: bytes | None = None, time: str | None = None, headers: Any = None, **fields: Any
    ) -> Event:
        del headers  # no part of the event
        raw: dict[str, Any] = {} if native is None else {"native": msgspec.Raw(native)}
        event = make_event(data, session=SESSION, time=time or TIME, seq=len(self.events) + 1, epoch=1, **fields, **raw)
        self.events.append(event)
        return event

    def piece(self, item: str, block: int, kind: str, text: str, **_: Any) -> None:
        self.pieces.append(f"{kind} {block} of {item}: {text}")

    def progress(self, data: Data, **_: Any) -> None: ...

    def end_item(self, item: str) -> None:
        self.ended.append(item)


def intake(paper: Paper, *, keep: str = "all", cause: Cause | None = None) -> Intake:
    context = Context(session=SESSION, incarnation=INCARNATION, cwd="/", keep_native=keep)
    return Intake(
        Pen(paper, Memory(SESSION)),
        context,
        load("demo").manifest,
        Lines(),
        cause_of=lambda native, _: cause or Cause(command=native),
        on_event=lambda _: None,
    )


def native(*out: Out, raw: bytes = b'{"x":1}') -> Native:
    return Native(raw=raw, out=out, kind="k")


def test_facts_are_numbered_by_line_and_part_and_deltas_are_not() -> None:
    paper = Paper()
    reading = intake(paper)
    reading.take(native(Piece(item="i", block=0, kind="text", text="he")))
    reading.take(native(Piece(item="i", block=0, kind="text", text="")))
    reading.take(native(Fact(data=SessionUpdated(model="a")), ItemEnd("i"), Fact(data=SessionUpdated(model="b"))))
    reading.take(native())
    assert [event.origin for event in paper.events] == [(1, 1, 2), (1, 2, 2), (2, 1, 1)]
    assert [event.has_native for event in paper.events] == [True, False, True]
    assert paper.events[2].data == NativeMessage(known=True, kind="k")
    assert paper.pieces == ["text 0 of i: he"]
    assert paper.ended == ["i"]


def test_a_turn_stamps_what_happens_in_it_and_closes_its_tools() -> None:
    paper = Paper()
    asked = Source(actor="someone", via="web")
    reading = intake(paper, cause=Cause(command="cmd", source=asked))
    reading.take(native(Fact(data=TurnStarted(number=77))))
    reading.take(native(Fact(data=ToolStarted(name="run"), item="tool")))
    reading.take(native(Fact(data=ToolStarted(name="sub"), item="inner", lane="tool")))
    reading.take(native(Fact(data=TurnCompleted(outcome="interrupted"))))
    reading.take(native(Fact(data=SessionUpdated(title="after"))))
    started, _, _, closed, completed, after = paper.events
    assert (started.data, started.cause) == (TurnStarted(number=1), "cmd")
    assert (closed.data, closed.item) == (ToolCompleted(status="cancelled", reason="the turn ended"), "tool")
    assert {event.turn for event in paper.events[:5]} == {started.turn}
    assert {event.source for event in paper.events[:5]} == {asked}
    assert completed.origin == (4, 1, 1)
    assert (after.turn, after.source) == (None, None)


@pytest.mark.parametrize(
    ("keep", "kept"), [("all", [True, True, True]), ("lossy", [False, True, True]), ("none", [False, False, True])]
)
def test_what_is_kept_of_native_messages(keep: str, kept: list[bool]) -> None:
    paper = Paper()
    reading = intake(paper, keep=keep)
    reading.take(native(Fact(data=MessageAssistant(content=[]), item="m")))  # lossless, says the demo's manifest
    reading.take(native(Fact(data=SessionUpdated(model="m"))))
    reading.take(native(Fact(data=NativeMessage(known=False, kind="k"))))
    assert [event.has_native for event in paper.events] == kept


def test_a_dead_agent_leaves_nothing_open() -> None:
    memory = Memory(SESSION)
    pen = Pen(Paper(), memory)
    pen.write(TurnStarted(number=1), turn="tur")
    pen.write(ToolStarted(name="run"), turn="tur", item="tool")
    pen.write(TaskUpdated(task="t", status="running"), turn="tur")
    pen.write(PermissionRequested(ask="ask", name="run", incarnation=INCARNATION), turn="tur", item="tool")
    pen.write(MessageUser(content=[], delivery="queued", command="q"), item="queued")
    state = memory.session
    endings = leftovers(state, asks=state.open_asks, queued=memory.queued)
    assert [(ending.data, ending.item) for ending in endings] == [
        (ToolCompleted(status="cancelled", reason="the agent ended"), "tool"),
        (TaskUpdated(task="t", status="stopped"), None),
        (AskWithdrawn(ask="ask", why="agent_died"), None),
        (TurnCompleted(outcome="aborted"), None),
        (MessageUser(content=[], delivery="cancelled", command="q"), "queued"),
    ]
    for ending in endings:
        pen.end(ending)
    assert leftovers(memory.session, asks=memory.session.open_asks, queued=memory.queued) == []


def test_starts_are_counted_until_the_agent_is_ready() -> None:
    memory = Memory(SESSION)
    pen = Pen(Paper(), memory)
    counts: list[int] = []
    for data in (
        SessionStatus(status="starting"),
        SessionStatus(status="starting"),
        ErrorRaised(code="agent_not_found", message=""),  # nothing was started
        ErrorRaised(code="agent_failed", message=""),
        SessionStatus(status="starting"),
        SessionInitialized(capabilities=load("demo").capabilities),
        SessionStatus(status="starting"),
        SessionResumed(how="reopened"),
    ):
        pen.write(data)
        counts.append(memory.starts)
    assert counts == [1, 2, 1, 1, 2, 0, 1, 0]


def test_what_was_chosen_by_command_is_an_option_of_the_next_start() -> None:
    memory = Memory(SESSION)
    pen = Pen(Paper(), memory)
    pen.write(CommandAccepted(command="c", verb="set_model", cmd_seq=1), cause="c")
    pen.write(SessionUpdated(model="chosen"), cause="c")
    pen.write(SessionUpdated(model="resolved-by-the-agent"))
    assert memory.options.model == "chosen"


def test_a_prompt_is_named_by_its_item_or_its_command() -> None:
    memory = Memory(SESSION)
    Pen(Paper(), memory).write(MessageUser(content=[TextBlock(text="x")], command="c"), item="i")
    assert [memory.prompt_of(name) for name in ("i", "c", "other")] == ["c", "c", None]


def test_a_recording_is_replayed_the_same_each_time_and_says_what_it_did_not_understand(tmp_path: Path) -> None:
    path = tmp_path / "native.jsonl"
    recorder = Recorder(path)
    recorder.note("host", {"type": "prompt", "id": "c", "text": "x"})
    for message in (
        {"type": "turn_started", "prompt": "c"},
        {"type": "text", "message": "m", "text": "grü"},
        {"type": "text", "message": "m", "text": "n"},
        {"type": "message", "message": "m", "text": "grün"},
        {"type": "tool_done"},
        {"type": "novelty"},
        {"type": "turn_done", "outcome": "success"},
    ):
        recorder.note("agent", message)
    recorder.line("agent", b"*** banner ***")
    recorder.close()

    events, problems = translate(load("demo"), path, deltas=True)
    assert [event.type for event in events] == [
        "turn.started",
        "message.delta",
        "message.delta",
        "message.assistant",
        "native.message",
        "native.message",
        "turn.completed",
        "native.message",
    ]
    assert [event.data.at for event in events[1:3]] == [0, 3]  # pyright: ignore[reportAttributeAccessIssue]  # deltas
    assert [(problem.line, problem.what) for problem in problems] == [
        (6, "untranslated"),
        (7, "untranslated"),
        (9, "unreadable"),
    ]
    assert list(Replay(load("demo"), path, deltas=True)) == events
