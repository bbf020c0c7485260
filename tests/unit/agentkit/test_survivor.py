"""What the log tells of an agent that outlived its worker."""

from msgspec.structs import replace

from trunkline_agentkit.memory import Memory
from trunkline_agentkit.survivor import incarnation_of, survivor_of
from trunkline_fold.asks import AsksState, fold_asks
from trunkline_fold.session import initial
from trunkline_wire import Data, Event, Source, make_event
from trunkline_wire.asks import AskDecided, PermissionRequested
from trunkline_wire.blocks import TextBlock
from trunkline_wire.session import Capabilities, SessionClaimed, SessionInitialized
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted, TurnStarted

SESSION = "ses_" + "0" * 32
TIME = "2026-01-01T00:00:00.000000Z"


def asked(name: str, incarnation: str) -> PermissionRequested:
    return PermissionRequested(ask=name, incarnation=incarnation, name="run")


def test_it_is_the_incarnation_that_ran_when_the_log_broke_off() -> None:
    running = replace(initial(SESSION), initialized=True, incarnation="inc")
    assert incarnation_of(running) == "inc"
    for condition in ("starting", "stopped"):
        assert incarnation_of(replace(running, condition=condition)) is None
    assert incarnation_of(replace(running, initialized=False)) is None
    assert incarnation_of(replace(running, condition="interrupting")) == "inc"


def test_what_is_open_and_what_was_told() -> None:
    source = Source(actor="me", via="cli")
    written: list[tuple[Data, str | None, str | None]] = [
        (SessionInitialized(capabilities=Capabilities(), native_session="n", incarnation="inc"), None, None),
        (MessageUser(content=[TextBlock(text="hi")], command="cmd_1"), "itm_user", "cmd_1"),
        (TurnStarted(number=1), None, "cmd_1"),
        (ToolStarted(name="one", native_id="1"), "itm_1", None),
        (ToolStarted(name="two", native_id="2"), "itm_2", None),
        (ToolCompleted(status="completed"), "itm_1", None),
        (MessageAssistant(content=[TextBlock(text="yes")]), "itm_said", None),
        (asked("ask_old", "before"), None, None),
        (asked("ask_open", "inc"), None, None),
        (asked("ask_decided", "inc"), None, None),
        (AskDecided(ask="ask_decided", behaviour="allow", by="me"), None, None),
        (SessionClaimed(worker="wrk", host="hst", incarnation="inc"), None, None),
    ]
    events: list[Event] = []
    memory, asks = Memory(SESSION), AsksState()
    for number, (data, item, cause) in enumerate(written, 1):
        event = make_event(
            data, session=SESSION, time=TIME, seq=number, epoch=1, item=item, cause=cause, turn="tur_1", source=source
        )
        events.append(event)
        memory.fold(event, number)
        asks = fold_asks(asks, event, number)
    survivor = survivor_of(memory, asks, events)
    assert survivor.session.turn is not None
    assert survivor.session.turn.cause == "cmd_1"
    assert {item: call.started.name for item, call in survivor.calls.items()} == {"itm_2": "two"}
    assert survivor.told == {"itm_user", "itm_1", "itm_said"}
    assert {name: ask.status for name, ask in survivor.asks.items()} == {"ask_open": "open", "ask_decided": "decided"}
    assert survivor.prompts == ("cmd_1",)
    assert survivor.source == source
