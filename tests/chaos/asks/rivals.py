"""One seed: asks, and everything that can end them, at moments that the seed names."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any, Final

import nats.errors
from tests.chaos.asks.session import Session

from trunkline_bus.connection import Bus
from trunkline_wire import Answer, Source, TrunklineError, encode, subjects, timestamp
from trunkline_wire.ids import new_command_id

SPAN_S: Final = 0.4
EXPIRY_S: Final = 0.25
POLICY: Final = f"""
[[rule]]
name = "yes"
action = "allow"
command = "yes*"

[[rule]]
name = "no"
action = "deny"
command = "no*"

[[rule]]
name = "short"
action = "ask"
command = "short*"
expires_after = {EXPIRY_S}

[[rule]]
name = "two"
action = "ask"
command = "two*"
quorum = 2

[[rule]]
name = "short two"
action = "ask"
command = "both*"
quorum = 2
expires_after = {EXPIRY_S}
on_expiry = "allow"
"""
COMMANDS: Final = ("ls", "ls", "ls", "short", "short", "two", "both", "yes", "no")
SHARED: Final = ("two", "both")
DECIDERS: Final = ("ann", "bob", "eve")
GOOD: Final[tuple[dict[str, Any], ...]] = (
    {"behaviour": "allow"},
    {"behaviour": "allow", "option": "once"},
    {"behaviour": "allow", "updated_input": {"command": "ls -l"}},
    {"behaviour": "deny", "message": "no"},
    {"behaviour": "deny", "option": "never"},
)
BAD: Final[tuple[dict[str, Any], ...]] = (
    {"behaviour": "allow", "option": "never"},
    {"behaviour": "allow", "option": "nowhere"},
    {"behaviour": "allow", "updated_input": "ls"},
)


@dataclass(slots=True)
class Play:
    """`answers` are the ids of all answers that are in the log of commands, `bad` those that fit no ask."""

    bus: Bus
    session: Session
    chance: random.Random
    asks: list[str] = field(default_factory=list[str])
    answers: set[str] = field(default_factory=set[str])
    bad: set[str] = field(default_factory=set[str])

    async def run(self) -> None:
        """Play the seed; then everything still open is denied, so that it has an end."""
        async with asyncio.TaskGroup() as group:
            if self.chance.random() < 0.35:
                group.create_task(self._take_over(self.chance.random() * SPAN_S))
            for number in range(self.chance.randint(3, 5)):
                group.create_task(
                    self._dispute(number, self.chance.choice(COMMANDS), random.Random(self.chance.random()))
                )
        for ask in self.asks:
            await self._answer(ask, "end", behaviour="deny")

    async def _take_over(self, when: float) -> None:
        await asyncio.sleep(when)
        await self.session.take_over()

    async def _dispute(self, number: int, command: str, chance: random.Random) -> None:
        await asyncio.sleep(chance.random() * 0.1)
        ask = await self.session.ask(number, command)
        if ask is None:
            return
        self.asks.append(ask)
        # Half of the disputes happen at the very moment of the expiry, or at any other one.
        instant = EXPIRY_S if chance.random() < 0.5 else chance.random() * SPAN_S
        async with asyncio.TaskGroup() as group:
            for decider in chance.sample(DECIDERS, chance.randint(1, 3)):
                moment = instant + chance.gauss(0, 0.01)
                group.create_task(self._decide(ask, decider, moment, chance, shared=command in SHARED))
            if chance.random() < 0.25:
                group.create_task(self._withdraw(ask, instant + chance.gauss(0, 0.01)))

    async def _withdraw(self, ask: str, when: float) -> None:
        await asyncio.sleep(max(0.0, when))
        self.session.withdraw(ask)

    async def _decide(self, ask: str, decider: str, when: float, chance: random.Random, *, shared: bool) -> None:
        """`shared`: several people have to allow it, so none of them may change it."""
        bad = chance.random() < 0.3
        what = chance.choice(BAD if bad else GOOD)
        bad = bad or (shared and "updated_input" in what)
        repeats = chance.choice([0, 0, 1, 2])
        await asyncio.sleep(max(0.0, when))
        id_ = new_command_id()
        if bad:
            self.bad.add(id_)
        for _ in range(1 + repeats):
            await self._answer(ask, decider, id_=id_, **what)

    async def _answer(self, ask: str, decider: str, *, id_: str | None = None, **what: Any) -> None:
        """Answer as the gateway would for `decider`, again and again with the same id until it is in the log."""
        given = Answer(
            id=id_ or new_command_id(),
            session=self.session.id,
            ask=ask,
            time=timestamp(),
            source=Source(actor=decider, via="web"),
            **what,
        )
        while True:
            try:
                await self.bus.js_cmd.publish(subjects.answer(self.session.id, "gateway"), encode(given))
            except (nats.errors.Error, TrunklineError, TimeoutError, OSError):
                await asyncio.sleep(0.05)
            else:
                break
        self.answers.add(given.id)
