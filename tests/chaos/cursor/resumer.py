"""A client that leaves at random moments and comes back by cursor, held against the model and, at each visit, against itself."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from tests.chaos.cursor.line import Line
from tests.chaos.soak.ground import Gateway
from tests.chaos.soak.line import DROPPED
from tests.chaos.soak.load import stretch

from trunkline_testkit.model_client import DELTAS, ModelClient
from trunkline_testkit.product import Client, Frame
from trunkline_wire import TrunklineError

AGAIN: Final = frozenset({"log_unavailable", "timeout", "not_ready", "unknown_session", "internal"})
OLD: Final = 200
"""Cursors remembered, to come back with an old one."""
VISIT_S: Final = 0.7
"""Seconds that a visit lasts at most, on an idle machine."""


class Resumer:
    """`run` makes visits; `faults` is what was wrong with them. `wants` are the parameters of its subscription."""

    def __init__(
        self, name: str, gateways: Sequence[Gateway], line: Line, chance: random.Random, *, pace: int = 0, **wants: Any
    ) -> None:
        self.name = name
        self.model = ModelClient(gapless="patterns" not in wants)
        self.resumes = 0
        self.faults: list[str] = []
        self._gateways = gateways
        self._line = line
        self._chance = chance
        self._pace = pace
        self._wants = wants
        self._order: list[str] = []
        self._cursors: list[tuple[str, int]] = []
        """Cursors, and how many facts were known where they stand."""

    async def run(self, resumes: int) -> None:
        """Comes back until it has resumed so often."""
        while self.resumes < resumes:
            await self._visit(self._cursor(), self._length())

    async def stay(self, done: Callable[[ModelClient], bool], within: float) -> None:
        """A last visit, from the newest cursor, until it has everything. Raises TimeoutError."""
        async with asyncio.timeout(within * stretch()):
            while not done(self.model):
                newest = max(self._cursors, key=lambda known: known[1]) if self._cursors else None
                await self._visit(newest, None, done)

    def _cursor(self) -> tuple[str, int] | None:
        if not self._cursors:
            return None
        dice = self._chance.random()
        if dice < 0.1:
            return self._chance.choice(self._cursors)
        # Twice the same, as a client whose answer got lost.
        return self._cursors[-2] if dice < 0.2 and len(self._cursors) > 1 else self._cursors[-1]

    def _length(self) -> int:
        """Frames until it leaves; 0 before the first."""
        return self._chance.choice((0, 1, 2, 5, 20, 100))

    async def _visit(
        self,
        known: tuple[str, int] | None,
        frames: int | None,
        done: Callable[[ModelClient], bool] | None = None,
    ) -> None:
        gateway = self._chance.choice(self._gateways)
        self._line.target = gateway.socket
        self._line.pace = self._pace if done is None else 0
        # Some visits end in the middle of a frame, wherever that is.
        torn = frames is not None and self._chance.random() < 0.4
        self._line.budget = self._chance.randrange(1_000, 60_000) if torn else None
        try:
            await self._watch(_Visit(self, known, None if torn else frames, done))
        except DROPPED:
            await asyncio.sleep(0.02)
        except TrunklineError as error:
            if error.code not in AGAIN:
                raise
            await asyncio.sleep(0.05)

    async def _watch(self, visit: "_Visit") -> None:
        client = await Client.connect("http://localhost", socket=str(self._line.path), on_frame=visit.take)
        try:
            where: dict[str, Any] = {"from": "start"} if visit.cursor is None else {"cursor": visit.cursor}
            opened = await client.call("subscribe", **self._wants, **where)
            self.resumes += visit.cursor is not None
            visit.begin(opened)
            left = asyncio.create_task(visit.left.wait())
            ended = asyncio.create_task(client.ended())
            limit = None if visit.stays else VISIT_S * stretch()
            await asyncio.wait((left, ended), timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            left.cancel()
            ended.cancel()
        finally:
            visit.leave()
            client.drop()
            await client.close()

    def note(self, cursor: str, place: int) -> None:
        """A cursor that may be resumed with."""
        self._cursors.append((cursor, place))
        del self._cursors[:-OLD]

    def expect(self, place: int, event: Frame) -> None:
        """The event at that place: the one that was there before, or a new one."""
        if place > len(self._order) or (place < len(self._order) and self._order[place] != event["id"]):
            wanted = self._order[place : place + 1]
            self.faults.append(
                f"{self.name}, visit {self.resumes}: at {place} {event['type']} {event['id']}, not {wanted}"
            )
        elif place == len(self._order):
            self._order.append(event["id"])

    def started_over(self) -> None:
        """A gap: what comes has no place yet."""
        self._order.clear()
        self._cursors.clear()


class _Visit:
    """The frames of one connection, from the answer to `subscribe` on."""

    def __init__(
        self,
        resumer: Resumer,
        known: tuple[str, int] | None,
        frames: int | None,
        done: Callable[[ModelClient], bool] | None,
    ) -> None:
        self.cursor, self._place = known or (None, 0)
        self.left = asyncio.Event()
        self.stays = done is not None
        self._resumer = resumer
        self._frames = frames
        self._done = done
        self._early: list[Frame] | None = []
        """Frames that came with the answer, until that is taken."""

    def begin(self, opened: Frame) -> None:
        early, self._early = self._early or [], None
        self._feed({"type": "opened", "payload": opened, "cursor": opened["cursor"]})
        self._look()
        for frame in early:
            self.take(frame)

    def take(self, frame: Frame) -> None:
        if self._early is not None:
            self._early.append(frame)
        elif not self.left.is_set():
            self._feed(frame)
            if self._frames is not None and frame["type"] == "event":
                self._frames -= 1
            self._look()

    def leave(self) -> None:
        self.left.set()

    def _look(self) -> None:
        if (self._frames is not None and self._frames <= 0) or (self._done and self._done(self._resumer.model)):
            self.leave()

    def _feed(self, frame: Frame) -> None:
        model = self._resumer.model
        gaps = len(model.gaps)
        model.feed(frame)
        if len(model.gaps) > gaps:
            self._place = 0
            self._resumer.started_over()
        elif frame["type"] == "event" and frame["event"] not in DELTAS | {"gap"}:
            self._resumer.expect(self._place, frame["payload"])
            self._place += 1
        if frame.get("cursor"):
            self._resumer.note(frame["cursor"], self._place)
