"""A client that reads slowly gets fewer deltas, every fact, and the same text: for any course of things."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline_bus.cursor import CursorCodec
from trunkline_bus.stored import Stored, make
from trunkline_fold.session import fold_session, initial
from trunkline_gateway import outbox as outboxes
from trunkline_gateway.channel import Channel
from trunkline_gateway.cursors import Cursors
from trunkline_gateway.outbox import Outbox
from trunkline_gateway.patterns import Patterns
from trunkline_gateway.ring import Rings, WsFrames
from trunkline_gateway.subscription import Subscription
from trunkline_testkit.model_client import DELTAS, ModelClient
from trunkline_wire import Data, Event, decode_json, encode, make_event, subjects
from trunkline_wire.asks import PermissionRequested
from trunkline_wire.blocks import TextBlock
from trunkline_wire.turn import MessageAssistant, MessageDelta, MessageSystem, ToolProgress, TurnStarted

SESSION = "ses_" + "0" * 32
TIME = "2026-01-01T00:00:00.000000Z"
TURN = "tur_" + "0" * 32


class FakeDirectory:
    """Folds what the agent below writes, as the gateway's directory does; no log is behind it."""

    def __init__(self) -> None:
        self.position = 0
        self.last_id: str | None = None
        self.states = {SESSION: initial(SESSION)}
        self.ready = asyncio.Event()
        self.ready.set()


class Slow:
    """A client's end of the connection: it takes one write whenever `read` is called."""

    def __init__(self) -> None:
        self.model = ModelClient()
        self.deltas = 0
        self._reads = asyncio.Semaphore(0)
        self._taken = asyncio.Event()

    def open(self) -> None:
        """Read everything from now on."""
        for _ in range(100_000):
            self._reads.release()

    def read(self) -> None:
        self._reads.release()

    async def write(self, frames: list[bytes]) -> None:
        await self._reads.acquire()
        for frame in frames:
            message: Any = decode_json(frame)
            self.deltas += message["event"] in DELTAS
            self.model.feed(message)


def _no_snapshot(channel: Channel) -> dict[str, Any]:
    raise AssertionError(f"the log of {channel.session} does not go back")


class Course:
    """An agent that writes, with a subscription of a slow client to it: the real channel, outbox and subscription."""

    def __init__(self) -> None:
        bus = cast("Any", SimpleNamespace(log_id="log"))
        cursors = Cursors(bus, CursorCodec(b"0" * 16))
        self.directory = FakeDirectory()
        self.channel = Channel(bus, cast("Any", self.directory), cursors, Rings(), SESSION)
        self.channel._ready.set()  # pyright: ignore[reportPrivateUsage]  # what its `run` does once it has read the deltas so far
        self.client = Slow()
        self.outbox = Outbox(self.client.write)
        self.subscription = Subscription(
            bus,
            self.channel,
            cursors,
            self.outbox,
            WsFrames("sub_1"),
            _no_snapshot,
            patterns=Patterns(("*",)),
            deltas=True,
            seen=0,
            deltas_seen=0,
        )
        self.texts: dict[str, str] = {}
        self.finished: dict[str, str] = {}
        self.facts: list[str] = []
        self._numbers = itertools.count(1)
        self.client.model.feed({"type": "opened", "payload": {"cursor": "start"}})

    def fact(self, data: Data, item: str | None = None) -> None:
        number = next(self._numbers)
        event = self._event(data, item, seq=number)
        self.facts.append(event.id)
        stored = self._stored(event, number)
        self.directory.position, self.directory.last_id = number, event.id
        self.channel.on_stored(SESSION, stored)
        self.directory.states[SESSION] = fold_session(self.directory.states[SESSION], event, number)
        self.channel.on_folded(event)

    def piece(self, item: str, text: str) -> None:
        known = self.texts.setdefault(item, "")
        self._delta(MessageDelta(block=0, kind="text", at=len(known), text=text), item)
        self.texts[item] += text

    def progress(self, item: str, output: str) -> None:
        self._delta(ToolProgress(output=output), item)

    def finish(self, item: str) -> None:
        text = self.finished[item] = self.texts.pop(item)
        self.fact(MessageAssistant(content=[TextBlock(text=text)], block=0), item)

    def _delta(self, data: Data, item: str) -> None:
        event = self._event(data, item)
        self.channel._take(self._stored(event, 0))  # pyright: ignore[reportPrivateUsage]  # how its Reader hands them over

    def _event(self, data: Data, item: str | None, seq: int | None = None) -> Event:
        return make_event(data, session=SESSION, time=TIME, seq=seq, epoch=1, turn=TURN, item=item)

    def _stored(self, event: Event, sequence: int) -> Stored:
        headers = {subjects.HEADER_ID: event.id, subjects.HEADER_TYPE: event.type}
        subject = subjects.event(SESSION, "agent.fact")
        return make(subjects.EVENTS, sequence, subject, headers, encode(event), 0)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        tasks = [asyncio.create_task(self.outbox.run()), asyncio.create_task(self.subscription.run())]
        await asyncio.sleep(0)
        try:
            yield
            self.client.open()
            async with asyncio.timeout(10):
                while len(self.client.model.facts) < len(self.facts) or self.behind():
                    assert not any(task.done() for task in tasks)
                    await asyncio.sleep(0.001)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def behind(self) -> bool:
        """Whether the client does not know all of an open block yet."""
        known = {key[1]: block.text for key, block in self.client.model.blocks.items()}
        return known != self.texts

    def check(self) -> None:
        model = self.client.model
        assert list(model.facts) == self.facts
        assert {key[1]: text for key, text in model.texts.items()} == self.finished
        assert (model.wrong, model.missing, model.repeated, model.gaps) == ([], [], 0, [])


@contextmanager
def small_queues() -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outboxes, "THIN_FRAMES", 3)
        patch.setattr(outboxes, "MAX_FRAMES", 8)
        patch.setattr(outboxes, "PACE_S", 0.0)
        yield


ITEMS = [f"itm_{number:032x}" for number in range(3)]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("piece"), st.sampled_from(ITEMS), st.text("aé😀", min_size=1, max_size=4)),
        st.tuples(st.just("finish"), st.sampled_from(ITEMS)),
        st.tuples(st.just("fact")),
        st.tuples(st.just("ask")),
        st.tuples(st.just("progress"), st.sampled_from(ITEMS)),
        st.tuples(st.just("read")),
    ),
    max_size=120,
)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_facts_once_and_in_order_and_texts_complete(course: list[tuple[str, ...]]) -> None:
    with small_queues():
        asyncio.run(play(course))


async def play(steps: list[tuple[str, ...]]) -> None:
    course, rounds = Course(), itertools.count()
    async with course.running():
        course.fact(TurnStarted(number=1))
        current = dict(zip(ITEMS, ITEMS, strict=True))
        for step in steps:
            match step:
                case ("piece", item, text):
                    course.piece(current[item], text)
                case ("finish", item) if current[item] in course.texts:
                    course.finish(current[item])
                    # What is finished is not written on: the next piece is of another block.
                    current[item] = f"itm_{100 + next(rounds):032x}"
                case ("fact",):
                    course.fact(MessageSystem(text="x"))
                case ("ask",):
                    ask = f"ask_{next(rounds):032x}"
                    course.fact(PermissionRequested(ask=ask, name="Bash", incarnation="i"))
                case ("progress", item):
                    course.progress(current[item], "x")
                case ("read",):
                    course.client.read()
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                case _:
                    pass
            await asyncio.sleep(0)
    course.check()


async def test_a_thousand_pieces_become_a_few() -> None:
    with small_queues():
        course = Course()
        async with course.running():
            course.fact(TurnStarted(number=1))
            for number in range(1000):
                course.piece(ITEMS[0], f"{number} ")
                course.progress(ITEMS[1], str(number))
                await asyncio.sleep(0)
            # The asks stand behind a handful of frames, not behind two thousand.
            course.fact(PermissionRequested(ask="ask_" + "0" * 32, name="Bash", incarnation="i"))
        course.check()
        assert course.client.deltas < 20
        (block,) = course.client.model.blocks.values()
        assert block.text == "".join(f"{number} " for number in range(1000))


async def test_who_keeps_up_gets_each_one() -> None:
    course = Course()
    course.client.open()
    async with course.running():
        course.fact(TurnStarted(number=1))
        for number in range(100):
            course.piece(ITEMS[0], f"{number} ")
            await asyncio.sleep(0)
    course.check()
    assert course.client.deltas == 100


async def test_what_is_finished_meanwhile_is_told_whole_and_not_again() -> None:
    with small_queues():
        course = Course()
        async with course.running():
            course.fact(TurnStarted(number=1))
            for item in ITEMS[:2]:
                for number in range(50):
                    course.piece(item, f"{number} ")
                    await asyncio.sleep(0)
            course.finish(ITEMS[0])
        course.check()
        assert course.client.model.replayed == 0
        assert [key[1] for key in course.client.model.blocks] == [ITEMS[1]]
