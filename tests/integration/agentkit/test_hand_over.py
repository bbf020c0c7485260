"""A session goes into its agent's terminal and back: what is refused, what a worker's end leaves, what comes into the log."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.integration.agentkit.conftest import Host
from tests.integration.agentkit.hand import Hand, those
from tests.integration.agentkit.test_recovery import DEAD

from trunkline_adapters.app import for_test
from trunkline_adapters.demo import translate
from trunkline_adapters.demo.adapter import DemoAdapter
from trunkline_adapters.demo.translate import CAPABILITIES
from trunkline_adapters.pty.adapter import PtyAdapter
from trunkline_agentkit.death import HELD
from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.fields import Obj
from trunkline_agentkit.history import About, Dated, HistoryFile, Line, lines_of
from trunkline_agentkit.own_terminal import OwnTerminal
from trunkline_agentkit.place import Place
from trunkline_agentkit.protocol import Context, Fact, Start
from trunkline_agentkit.settings import OwnerSettings
from trunkline_agentkit.sweep import marked
from trunkline_fold.session import fold_session, initial
from trunkline_wire import Event, timestamp
from trunkline_wire.blocks import TextBlock, join_text
from trunkline_wire.commands import Close, HandOver, Reset
from trunkline_wire.ids import item_id
from trunkline_wire.turn import MessageAssistant, MessageUser, TurnCompleted, TurnStarted

STAND_IN = Path(__file__).parents[2] / "contract" / "pty_stand_in.py"
PROFILES = Path(__file__).parents[2] / "contract" / "pty_profiles"


class History:
    """Lines {role, text, time}: a prompt begins a turn, an answer ends it."""

    about = About()

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lines = 0

    def feed(self, line: Obj) -> list[Dated]:
        self._lines += 1
        item = item_id(self._context.session, self._context.incarnation, f"line {self._lines}")
        content: Any = [TextBlock(text=line["text"])]
        said = [Fact(data=MessageUser(content=content), item=item), Fact(data=TurnStarted(number=0))]
        if line["role"] == "assistant":
            said = [
                Fact(data=MessageAssistant(content=content), item=item),
                Fact(data=TurnCompleted(outcome="success")),
            ]
        return [Dated(fact, line["time"]) for fact in said]

    def end(self) -> list[Dated]:
        return []


class TwoFaced(DemoAdapter):
    """The demo agent with a terminal of its own, and a history that the test writes."""

    capabilities = CAPABILITIES
    history_agents = ("demo",)

    def __init__(self, directory: Path, *, program: str = str(STAND_IN)) -> None:
        super().__init__()
        self.program_of_terminal = program
        self.history = directory / "history.jsonl"
        self.native = ""

    async def terminal(self, start: Start) -> OwnTerminal:
        self.native = start.native_session or ""
        return OwnTerminal(profile="stand-in", command=(sys.executable, self.program_of_terminal))

    def says(self, role: str, text: str, time: str | None = None) -> None:
        with self.history.open("a") as file:
            file.write(json.dumps({"role": role, "text": text, "time": time or timestamp()}) + "\n")

    def histories(self, agent: str | None = None) -> list[HistoryFile]:
        del agent
        return [HistoryFile(native=self.native, path=self.history)] if self.history.exists() else []

    def history_lines(self, file: HistoryFile) -> Iterator[Line]:
        return lines_of(file.path)

    def history_translator(self, context: Context) -> History:
        return History(context)


@pytest.fixture
def two_faced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TwoFaced:
    able = msgspec.structs.replace(CAPABILITIES, terminal=True)
    monkeypatch.setattr(translate, "CAPABILITIES", able)
    monkeypatch.setattr(TwoFaced, "capabilities", able)
    return TwoFaced(tmp_path)


def adapters(demo: TwoFaced) -> dict[str, Any]:
    return {"demo": demo, "pty": PtyAdapter({"PATH": os.environ["PATH"], "TRUNKLINE_PTY_PROFILES": str(PROFILES)})}


def state_of(events: list[Event]) -> Any:
    state = initial(events[0].session)
    for sequence, event in enumerate(events, 1):
        state = fold_session(state, event, sequence)
    return state


def said(events: list[Event], type: str) -> list[str]:
    return [text for event in those(events, type) if (text := join_text(event.data.content))]


async def test_there_and_back_again(hand: Hand, run_host: Host, two_faced: TwoFaced, home: Path) -> None:
    """A worker that stops in between leaves the terminal; what is told afterwards stands in the log once."""
    session = await there(hand, two_faced, home)
    await run_host(adapters(two_faced))
    await hand.has(session, "session.resumed", how="adopted")
    two_faced.says("user", "typed by hand")
    two_faced.says("assistant", "heard")

    # The terminal has the conversation: nobody can take it out of there.
    reset = await hand.command(session, Reset())
    events = await hand.has(session, "command.failed", command=reset)
    assert those(events, "command.failed", command=reset)[0].data.error.code == "unsupported"

    back = await hand.command(session, HandOver(to="structured"))
    await hand.has(session, "command.finished", command=back)
    assert not marked({SESSION_MARK: f"{HELD}{session}"})
    await hand.prompt(session, "history")
    events = await hand.has(session, "turn.completed", 3)
    assert said(events, "message.user") == ["say before", "sent by command", "typed by hand", "history"]
    assert said(events, "message.assistant") == ["before", "You said: sent by command", "heard", "prompts:2"]
    told = [event for event in events if event.source is not None and event.source.via == "terminal"]
    assert [event.type for event in told] == ["message.assistant", "message.user", "message.assistant"]
    assert state_of(events).status == "idle"
    assert state_of(events).interface == "structured"
    await hand.verify(session)


async def there(hand: Hand, two_faced: TwoFaced, home: Path) -> str:
    """A session in its terminal, whose worker has stopped."""
    async with working(hand, home, two_faced):
        session = await hand.create()
        await hand.prompt(session, "say before")
        await hand.has(session, "turn.completed")
        await go(hand, two_faced, session)
    assert marked({SESSION_MARK: f"{HELD}{session}"}), "tmux holds the program"
    place = Place(home, session)
    assert place.record is not None
    place.write(msgspec.structs.replace(place.record, worker=DEAD))  # this process lives on
    return session


@asynccontextmanager
async def working(hand: Hand, home: Path, two_faced: TwoFaced) -> AsyncGenerator[None]:
    host = for_test(hand.bus, home, adapters(two_faced), OwnerSettings(close_grace=2.0, tick=0.05))
    stopping, ready = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(host.run(stopping, ready))
    try:
        await ready.wait()
        yield
    finally:
        stopping.set()
        await running


async def go(hand: Hand, two_faced: TwoFaced, session: str) -> None:
    two_faced.says("user", "say before", "2026-01-01T00:00:00Z")
    two_faced.says("assistant", "before", "2026-01-01T00:00:01Z")

    over = await hand.command(session, HandOver(to="terminal"))
    events = await hand.has(session, "command.finished", command=over)
    (finished,) = those(events, "command.finished", command=over)
    state = state_of(events)
    assert finished.data.result == {"interface": "terminal", "attach": state.attach}
    assert state.attach.startswith("tmux -S ")
    assert state.attach.endswith("attach-session -t agent")
    assert state.native_session == two_faced.native
    await hand.prompt(session, "sent by command")
    await hand.has(session, "turn.completed", 2)
    two_faced.says("user", "sent  by command")
    two_faced.says("assistant", "You said: sent by command")


async def test_a_busy_session_is_refused_unless_it_is_to_be_interrupted(
    hand: Hand, run_host: Host, two_faced: TwoFaced
) -> None:
    await run_host(adapters(two_faced))
    session = await hand.create()
    early = await hand.command(session, HandOver(to="terminal"))
    (failed,) = those(await hand.has(session, "command.failed", command=early), "command.failed")
    assert failed.data.error.code == "history_lost"
    await hand.prompt(session, "slow 100")
    await hand.has(session, "turn.started")
    refused = await hand.command(session, HandOver(to="terminal"))
    (failed,) = those(await hand.has(session, "command.failed", command=refused), "command.failed", command=refused)
    assert failed.data.error.code == "busy"
    forced = await hand.command(session, HandOver(to="terminal", interrupt=True))
    events = await hand.has(session, "command.finished", command=forced)
    assert [event.data.outcome for event in those(events, "turn.completed")] == ["interrupted"]
    assert state_of(events).interface == "terminal"
    await hand.command(session, Close())
    await hand.has(session, "session.closed")
    await hand.verify(session)


async def test_a_terminal_that_does_not_start_is_taken_back(hand: Hand, run_host: Host, two_faced: TwoFaced) -> None:
    two_faced.program_of_terminal = "/nowhere/program.py"
    await run_host(adapters(two_faced))
    session = await hand.create()
    await hand.prompt(session, "say before")
    await hand.has(session, "turn.completed")
    over = await hand.command(session, HandOver(to="terminal"))
    events = await hand.until(
        session,
        lambda events: those(events, "command.failed", command=over) or those(events, "command.finished", command=over),
    )
    await hand.prompt(session, "history")
    events = await hand.until(session, lambda events: those(events, "turn.completed"))
    assert [event.data.to for event in those(events, "session.handed_over")] == ["terminal", "structured"]
    await hand.verify(session)
