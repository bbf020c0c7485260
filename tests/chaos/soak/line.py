"""A client that comes back: one session through one gateway, resumed by cursor after every drop, with its transcript."""

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any, Final

import aiohttp
from tests.chaos.soak.ground import Gateway
from tests.chaos.soak.load import stretch

from trunkline_testkit.chaos.evidence import Transcript
from trunkline_testkit.product import Client, Frame
from trunkline_wire import TrunklineError

DELTAS: Final = frozenset({"message.delta", "tool.progress", "terminal.screen"})
ASKS: Final = frozenset({"permission.requested", "question.asked", "plan.proposed"})
ASK_ENDS: Final = frozenset({"ask.decided", "ask.expired", "ask.withdrawn"})
OUTCOMES: Final = frozenset({"command.finished", "command.failed", "command.rejected"})
DROPPED: Final = (OSError, ConnectionError, aiohttp.ClientError, TimeoutError)
CALL_S: Final = 15.0
"""Seconds after which a call counts as lost with its connection."""


class Bell:
    """Wakes who waits for something that a frame may bring."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def ring(self) -> None:
        waiting, self._waiting = self._waiting, []
        for arrived in waiting:
            if not arrived.done():
                arrived.set_result(None)

    async def until(self, check: Callable[[], object], within: float) -> None:
        """Returns as soon as `check` is true. Raises TimeoutError."""
        async with asyncio.timeout(within):
            while not check():
                arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append(arrived)
                await arrived


class Line:
    """`run` until cancelled. What it knows of the session is what frames told it; it rings the `bell` after each."""

    def __init__(
        self, name: str, gateway: Gateway, session: str, bell: Bell, chance: random.Random, *, drop_every: float
    ) -> None:
        self.gateway = gateway
        self.session = session
        self.transcript = Transcript(name)
        self.turn: str | None = None
        self.ends: dict[str, Frame] = {}
        """The end of each command, by its id; of each turn, by the id of the command that caused it."""
        self.asks: dict[str, Frame] = {}
        self.on_ask: Callable[[Frame], None] | None = None
        self.closed = False
        self._chance = chance
        self._drop_every = drop_every
        self._client: Client | None = None
        self._cursor: str | None = None
        self._causes: dict[str, str] = {}
        self._texts: dict[str, str | None] = {}
        self._bell = bell

    @property
    def connected(self) -> bool:
        return self._client is not None and not self._client.closed

    async def run(self) -> None:
        """Connect, follow, drop, resume."""
        while True:
            try:
                await self._follow()
            except DROPPED:
                pass
            except TrunklineError as error:
                # A gateway that has just started, or has lost NATS, says so and is asked again.
                if error.code not in {"not_ready", "log_unavailable", "unknown_session", "timeout"}:
                    raise
            finally:
                self._client = None
            await asyncio.sleep(0.05)

    async def call(self, method: str, **params: Any) -> Any:
        """Raises ConnectionError where the connection is gone or goes meanwhile, TrunklineError for an answer that is one."""
        client = self._client
        if client is None or client.closed:
            raise ConnectionError("not connected")
        try:
            return await client.call(method, within=CALL_S * stretch(), **params)
        except DROPPED as error:
            raise ConnectionError(str(error)) from error

    async def _follow(self) -> None:
        client = await Client.connect("http://localhost", socket=self.gateway.socket, on_frame=self._take)
        try:
            began = await client.subscribe(self.session, start=None if self._cursor else "start", cursor=self._cursor)
            if self._cursor is not None:
                self.transcript.resumes += 1
            self._cursor = self._cursor or began["cursor"]
            self._client = client
            lifetime = self._chance.expovariate(1 / self._drop_every)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(lifetime):
                    await client.ended()
        finally:
            self._client = None
            client.drop()
            await client.close()

    def _take(self, frame: Frame) -> None:
        if frame.get("cursor"):
            self._cursor = frame["cursor"]
        if frame["type"] == "event":
            if frame["event"] == "gap":
                self._gap(frame["payload"])
            elif frame["event"] in DELTAS:
                self._delta(frame["payload"])
            else:
                self._fact(frame["payload"])
        self._bell.ring()

    def _gap(self, payload: Frame) -> None:
        self.transcript.gaps.append(payload["reason"])
        self.transcript.facts.clear()
        self._texts.clear()
        self._cursor = payload["cursor"] or self._cursor
        turn = (payload["snapshot"].get("state") or {}).get("turn")
        self.turn = turn["id"] if turn else None
        for ask in payload["snapshot"].get("asks", []):
            if ask["status"] != "open":
                self.asks.pop(ask["ask"], None)

    def _delta(self, payload: Frame) -> None:
        data = payload["data"]
        if payload["type"] != "message.delta" or data.get("kind") != "text":
            return
        item, at, text = payload["item"], data["at"], data["text"]
        known = self._texts.get(item, "")
        if at == 0 and (known is None or len(text) >= len(known)):
            self._texts[item] = text
        elif known is None or at > len(known):
            self._texts[item] = None  # a hole: nothing is known until the whole block comes
        elif at + len(text) > len(known):
            self._texts[item] = known[:at] + text

    def _fact(self, payload: Frame) -> None:
        self.transcript.facts.append(payload["id"])
        data = payload["data"]
        match payload["type"]:
            case "turn.started":
                self.turn = payload["turn"]
                if payload.get("cause"):
                    self._causes[payload["turn"]] = payload["cause"]
            case "turn.completed":
                self.turn = None
                if cause := self._causes.pop(payload.get("turn", ""), None):
                    self.ends[f"turn {cause}"] = payload
            case "message.assistant":
                had = self._texts.pop(payload.get("item", ""), None)
                if had:
                    final = "".join(
                        block.get("text", "") for block in data["content"] if isinstance(block["text"], str)
                    )
                    self.transcript.texts.append((had, final))
            case kind if kind in ASKS:
                self.asks[data["ask"]] = payload
                if self.on_ask is not None:
                    self.on_ask(payload)
            case kind if kind in ASK_ENDS:
                self.asks.pop(data["ask"], None)
            case kind if kind in OUTCOMES:
                self.ends[data["command"]] = payload
            case "session.claimed":
                self.asks.clear()
            case "session.closed":
                self.closed = True
            case _:
                pass
