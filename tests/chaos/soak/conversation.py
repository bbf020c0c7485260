"""One session under way: authors who prompt and interrupt, deciders who race for its asks, all over lines that drop."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.chaos.soak.ground import Gateway
from tests.chaos.soak.line import DROPPED, Bell, Line
from tests.chaos.soak.load import stretch

from trunkline_testkit.chaos.evidence import Told
from trunkline_testkit.product import Client, Frame
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_command_id, new_session_id

STUCK_S: Final = 45.0
"""Seconds after which an action counts as stuck, whatever was killed meanwhile; more where the machine is overloaded."""

AGAIN: Final = frozenset(
    {"log_unavailable", "timeout", "not_ready", "no_worker", "internal", "unknown_ask", "unknown_session"}
)
"""Codes after which a client asks again with the same id."""

SCRIPTS: Final = (
    (6, "say {words}"),
    (5, "slow 15"),
    (6, "say {words}; ask do {n}; say done {n}"),
    (2, "ask first {n}; ask second {n}"),
    (2, "question Go on with {n}?"),
    (2, "say {words}; background 0.2"),
    (1, "big 20000"),
    (0.3, "big 600000"),
    (1, "novelty; noise; say on"),
    (1, "fail on purpose"),
    (1, "crash"),
    (1, "slow 60"),
)


class StuckError(AssertionError):
    """Something did not come to its end in time."""


class Conversation:
    """Made with `open`. `told` and `acked` are what clients were told; `stuck` what did not end in time, or was refused."""

    def __init__(
        self,
        gateways: Sequence[Gateway],
        home: Path,
        chance: random.Random,
        *,
        drop_every: float,
        pythonpath: str,
        pause: float = 0.3,
        host: str | None = None,
    ) -> None:
        """Authors wait up to `pause` seconds between two prompts. `host` is where it runs, `any` or that of the gateway."""
        self.session = new_session_id()
        self.journal = home / "journal" / f"{self.session}.jsonl"
        self.directory = home / "work" / self.session[-8:]
        self.told: list[Told] = []
        self.acked: set[str] = set()
        self.stuck: list[str] = []
        self.prompts = self.repeated = 0
        self.pausing = asyncio.Event()
        self._chance = chance
        self._pause = pause
        self._place = {"host": host} if host is not None else {}
        self._bell = Bell()
        self._pythonpath = pythonpath
        self.lines = [
            Line(gateway.name, gateway, self.session, self._bell, random.Random(chance.random()), drop_every=drop_every)
            for gateway in gateways
        ]
        self._deciding: set[asyncio.Task[None]] = set()
        self._following: list[asyncio.Task[None]] = []
        self._authors: list[asyncio.Task[None]] = []

    async def open(self, authors: int) -> None:
        """Creates the session, follows it, and lets the authors begin."""
        self.journal.parent.mkdir(exist_ok=True)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._following = [asyncio.create_task(line.run()) for line in self.lines]
        for line in self.lines:
            line.on_ask = self._decider(line)
        options = {"environment": {"CHAOS_JOURNAL": str(self.journal), "PYTHONPATH": self._pythonpath}}
        await self._create(adapter="chaos", cwd=str(self.directory), options=options, **self._place)
        self._authors = [asyncio.create_task(self._author()) for _ in range(authors)]

    @property
    def in_turn(self) -> bool:
        return any(line.turn is not None for line in self.lines)

    @property
    def asking(self) -> bool:
        return any(line.asks for line in self.lines)

    def failed(self) -> None:
        """Raises what ended a task that should not end."""
        for task in (*self._following, *self._authors):
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def prompt(self, text: str, *, on_all: bool = False) -> Frame:
        """Sends a prompt and waits for its outcome, and for the end of the turn that it begins if there is one, on any line or
        on all; the outcome. Raises StuckError.
        """
        command = new_command_id()
        await self.call("session.prompt", id=command, session=self.session, text=text)
        self.prompts += 1
        self.acked.add(command)
        if self._chance.random() < 0.25:
            self.repeated += 1
            await self.call("session.prompt", id=command, session=self.session, text=text)
        outcome = await self.seen(command, on_all=on_all)
        if on_all and outcome["type"] == "command.finished":
            await self.seen(f"turn {command}", on_all=True)
        return outcome

    async def seen(self, end: str, *, on_all: bool = False) -> Frame:
        """The end of a command or turn once a line, or all, have seen it. Raises StuckError."""
        quorum = all if on_all else any
        try:
            await self._bell.until(lambda: quorum(end in line.ends for line in self.lines), STUCK_S * stretch())
        except TimeoutError:
            who = [line.transcript.client for line in self.lines if end not in line.ends]
            raise StuckError(f"{self.session}: {end} was not seen by {who} within {STUCK_S:g} s") from None
        return next(line.ends[end] for line in self.lines if end in line.ends)

    async def call(self, method: str, first: Line | None = None, **params: Any) -> Any:
        """Calls over some line, again over another while gateways are away or can't reach the log. Raises StuckError, and
        TrunklineError for an answer that is final.
        """
        line = first
        last: object = "no gateway"
        try:
            async with asyncio.timeout(STUCK_S * stretch()):
                while True:
                    line = line if line is not None and line.connected else self._connected()
                    if line is not None:
                        try:
                            return await line.call(method, **params)
                        except ConnectionError as error:
                            last = error
                        except TrunklineError as error:
                            if error.code not in AGAIN:
                                raise
                            last = error
                        line = None
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise StuckError(f"{self.session}: {method} got no answer within {STUCK_S:g} s: {last}") from None

    async def close(self) -> None:
        """Lets the authors finish what they do, closes the session and waits until every line has seen it."""
        self.pausing.set()
        await asyncio.gather(*self._authors)
        while self._deciding:
            await asyncio.gather(*self._deciding)
        # A command to a session that is on its way to another host may expire before that reads it.
        while (outcome := await self._close())["type"] == "command.rejected":
            if outcome["data"]["error"]["code"] != "expired":
                raise StuckError(f"{self.session}: close was rejected: {outcome['data']}")
        try:
            await self._bell.until(lambda: all(line.closed for line in self.lines), STUCK_S * stretch())
        except TimeoutError:
            who = [line.transcript.client for line in self.lines if not line.closed]
            raise StuckError(f"{self.session}: {who} did not see it closed") from None

    async def _close(self) -> Frame:
        command = new_command_id()
        await self.call("session.close", id=command, session=self.session)
        self.acked.add(command)
        return await self.seen(command, on_all=True)

    async def quiet(self) -> None:
        """Ends what acts, at once; the lines go on."""
        tasks = [*self._authors, *self._deciding]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def leave(self) -> None:
        """Ends all tasks."""
        await self.quiet()
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)

    async def _create(self, **params: Any) -> None:
        # A session that is there is followed by the lines; until then only bare connections can call.
        deadline = asyncio.get_running_loop().time() + STUCK_S * stretch()
        while asyncio.get_running_loop().time() < deadline:
            gateway = self._chance.choice(self.lines).gateway
            try:
                async with await Client.connect("http://localhost", socket=gateway.socket) as client:
                    await client.call("session.create", session=self.session, within=35, **params)
            except DROPPED:
                await asyncio.sleep(0.05)
            except TrunklineError as error:
                if error.code not in AGAIN:
                    raise
            else:
                return
        raise StuckError(f"{self.session} was not created within {STUCK_S:g} s")

    def _connected(self) -> Line | None:
        lines = [line for line in self.lines if line.connected]
        return self._chance.choice(lines) if lines else None

    async def _author(self) -> None:
        scripts, weights = [script for _, script in SCRIPTS], [weight for weight, _ in SCRIPTS]
        while not self.pausing.is_set():
            number = self._chance.randrange(10_000)
            words = " ".join(self._chance.choices(("alpha", "beta", "gamma", "delta", "😀"), k=8))
            (script,) = self._chance.choices(scripts, weights)
            interrupting = asyncio.create_task(self._interrupt()) if self._chance.random() < 0.15 else None
            try:
                await self.prompt(script.format(n=number, words=words))
                await asyncio.sleep(self._chance.uniform(0, self._pause))
            except (StuckError, TrunklineError) as stuck:
                self.stuck.append(f"{self.session}: {script} ended with {stuck}")
                return
            finally:
                if interrupting is not None:
                    interrupting.cancel()
                    await asyncio.gather(interrupting, return_exceptions=True)

    async def _interrupt(self) -> None:
        await asyncio.sleep(self._chance.uniform(0.1, 0.8))
        try:
            sent = await self.call("session.interrupt", id=new_command_id(), session=self.session)
            self.acked.add(sent["command"])
        except (TrunklineError, StuckError):
            return

    def _decider(self, line: Line) -> Any:
        def on_ask(ask: Frame) -> None:
            task = asyncio.create_task(self._decide(line, ask))
            self._deciding.add(task)
            task.add_done_callback(self._deciding.discard)

        return on_ask

    async def _decide(self, line: Line, ask: Frame) -> None:
        await asyncio.sleep(self._chance.uniform(0, 0.08))
        data = ask["data"]
        answer: dict[str, Any] = {"id": new_command_id(), "ask": data["ask"], "session": self.session}
        if ask["type"] == "question.asked":
            answer |= {
                "behaviour": "answered",
                "answers": {data["questions"][0]["id"]: self._chance.choice(["yes", "no"])},
            }
        else:
            choice = self._chance.random()
            answer |= {"behaviour": "deny" if choice < 0.3 else "allow"}
            if choice > 0.8:
                answer |= {"updated_input": {"command": f"changed by {line.transcript.client}"}}
        try:
            outcome = (await self.call("ask.answer", line, **answer))["outcome"]
        except TrunklineError as error:
            outcome = error.code
        except StuckError as stuck:
            self.stuck.append(str(stuck))
            return
        self.told.append(Told(answer["id"], data["ask"], outcome))
