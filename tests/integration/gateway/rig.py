"""A gateway under test with everything around it: real NATS, a fake worker made of SessionWriter, fake decisions."""

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from trunkline_bus import direct, kv, topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.derived import DerivedWriter
from trunkline_bus.reader import Reader
from trunkline_bus.writer import SessionWriter
from trunkline_gateway.app import Running, serving
from trunkline_gateway.settings import GatewaySettings
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.product import Client
from trunkline_wire import AgentRef, decode_answer, decode_command, decode_spawn, encode, subjects
from trunkline_wire.asks import AskDecided, AskOption, PermissionRequested
from trunkline_wire.blocks import TextBlock
from trunkline_wire.commands import Answer, Command, Spawn
from trunkline_wire.ids import ask_id, new_session_id
from trunkline_wire.session import SessionCreated
from trunkline_wire.turn import MessageAssistant, MessageUser, TurnCompleted, TurnStarted

AGENT = AgentRef(adapter="fake", agent="fake", version="1")


class Rig:
    """`open`, then clients by `client()`; `restart_gateway` is what a new process would be."""

    def __init__(self, home: Path, server: NatsServer) -> None:
        self.home = home
        self.server = server
        self.bus: Bus
        self.running: Running
        self._stack = AsyncExitStack()
        self._gateway = AsyncExitStack()
        self._decider: asyncio.Task[None] | None = None
        self.answers: list[Answer] = []

    async def open(self) -> None:
        self.bus = await self._stack.enter_async_context(Bus.open(BusSettings(url=self.server.url)))
        await topology.apply(self.bus.js, max_bytes=256 * 1024 * 1024)
        await self.bus.read_log_id()
        await self.start_gateway()

    async def close(self) -> None:
        if self._decider is not None:
            self._decider.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._decider
        await self._gateway.aclose()
        await self._stack.aclose()

    async def start_gateway(self, **settings: Any) -> None:
        self._gateway = AsyncExitStack()
        bus = await self._gateway.enter_async_context(Bus.open(BusSettings(url=self.server.url, name="gateway")))
        wanted = GatewaySettings(home=self.home, port=0, **settings)
        self.running = await self._gateway.enter_async_context(serving(bus, wanted))

    @asynccontextmanager
    async def another(self) -> AsyncGenerator[Running]:
        """A second gateway of the same log."""
        async with Bus.open(BusSettings(url=self.server.url, name="gateway")) as bus:
            (self.home / "second").mkdir(exist_ok=True)
            wanted = GatewaySettings(home=self.home / "second", port=0)
            async with serving(bus, wanted) as running:
                yield running

    async def stop_gateway(self) -> None:
        await self._gateway.aclose()

    async def restart_gateway(self, **settings: Any) -> None:
        await self.stop_gateway()
        await self.start_gateway(**settings)

    @property
    def token(self) -> str:
        return (self.home / "token").read_text().strip()

    async def client(self, *, token: str | None = None) -> Client:
        """A client on the unix socket, or with `token` over TCP."""
        if token is None:
            return await Client.connect("http://localhost", socket=str(self.running.socket))
        return await Client.connect(self.running.url, headers={"Authorization": f"Bearer {token}"})

    async def post(
        self, method: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """A method over HTTP and TCP: the status and the body."""
        content = json.dumps({} if body is None else body).encode()
        headers["Content-Type"] = "application/json"
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{self.running.url}/api/v1/{method}", data=io.BytesIO(content), headers=headers) as answer,
        ):
            return answer.status, json.loads(await answer.read())

    async def settled(self, *writers: SessionWriter) -> None:
        """Wait until the gateway has what the writers have appended."""
        sequences = [await writer.flush() for writer in writers]
        await eventually(lambda: self.running.gateway.directory.position >= max(sequences))

    async def session(self, session: str | None = None, *, workspace: str = "ws_x") -> SessionWriter:
        """A session as a worker makes it."""
        created = SessionCreated(adapter="fake", cwd="/", host="hst_x", workspace=workspace)
        return await SessionWriter.create(
            self.bus, created, session=session or new_session_id(), worker="wrk_x", agent=AGENT
        )

    async def decide_asks(self) -> None:
        """From now on the first answer to each ask decides it."""
        started = asyncio.Event()
        self._decider = asyncio.create_task(self._decide(started))
        await started.wait()

    async def _decide(self, started: asyncio.Event) -> None:
        writer = DerivedWriter(self.bus, "permissions")
        last: dict[str, int] = {}
        decided: set[str] = set()
        async with Reader(self.bus, subjects.COMMANDS, [subjects.ALL_ANSWERS]) as reader:
            started.set()
            async for stored in reader:
                answer = decode_answer(stored.raw)
                self.answers.append(answer)
                if answer.ask in decided:
                    continue
                decided.add(answer.ask)
                data = AskDecided(
                    ask=answer.ask,
                    behaviour=answer.behaviour,
                    by=answer.source.actor if answer.source else "nobody",
                    answer=answer.id,
                    option=answer.option,
                )
                sequence = await writer.append(
                    answer.session,
                    "permission",
                    data,
                    expected=last.get(answer.session, 0),
                    src=(stored.stream, stored.sequence, 0),
                )
                assert sequence is not None
                last[answer.session] = sequence

    async def next_spawn(self) -> Spawn:
        """The last spawn request, as soon as there is one."""
        stored = await eventually(lambda: direct.last(self.bus, subjects.SPAWN, "trunk.spawn.>"))
        return decode_spawn(stored.raw)

    async def commands(self, session: str) -> list[tuple[str, Command]]:
        """The commands to a session so far: (subject, command)."""
        found: list[tuple[str, Command]] = []
        async with Reader(self.bus, subjects.COMMANDS, [subjects.session_commands(session)]) as reader:
            async for batch in reader.batches():
                if not batch:
                    break
                found += [(stored.subject, decode_command(stored.raw)) for stored in batch]
        return found

    async def answers_stored(self) -> int:
        """How many answers have reached the log."""
        return (await direct.info(self.bus, subjects.COMMANDS)).last

    async def announce_worker(self, host: str, pid: int, started: float, *adapters: str) -> None:
        record = {
            "worker": "wrk_announced",
            "host": host,
            "pid": pid,
            "started": started,
            "hostname": "here",
            "sessions": 0,
            "adapters": [{"name": name, "title": name.title(), "version": "1.0"} for name in adapters],
        }
        await kv.put(self.bus, subjects.KV_WORKERS, "wrk_announced", encode(record))


def begin_turn(writer: SessionWriter, number: int = 1, prompt: str = "hello") -> str:
    """A prompt and its turn; the turn's id."""
    turn = f"tur_{number:032x}"
    writer.append(MessageUser(content=[TextBlock(text=prompt)]), item=f"itm_{number:032x}")
    writer.append(TurnStarted(number=number), turn=turn)
    return turn


def say(writer: SessionWriter, item: str, text: str, *, turn: str, block: int = 0) -> None:
    """A finished block."""
    writer.end_item(item)
    writer.append(MessageAssistant(content=[TextBlock(text=text)], block=block), turn=turn, item=item)


def end_turn(writer: SessionWriter, turn: str) -> None:
    writer.append(TurnCompleted(outcome="success"), turn=turn)


def ask(writer: SessionWriter, native: str, turn: str | None = None) -> str:
    """A permission request; the ask's id."""
    id_ = ask_id(writer.session, "inc", native)
    writer.append(
        PermissionRequested(
            ask=id_,
            name="Bash",
            incarnation="inc",
            kind="execute",
            input={"command": "ls"},
            options=[
                AskOption(id="yes", name="Yes", kind="allow_once"),
                AskOption(id="no", name="No", kind="reject_once"),
            ],
        ),
        turn=turn,
    )
    return id_


def apply_texts(frames: list[dict[str, Any]]) -> dict[tuple[str, int], str]:
    """The texts a client has after these frames: finished blocks from messages, open ones from deltas."""
    texts: dict[tuple[str, int], str] = {}
    for frame in frames:
        event = frame["payload"]
        match frame["event"]:
            case "message.delta":
                key, data = (event["item"], event["data"]["block"]), event["data"]
                known = texts.get(key, "")
                assert data["at"] <= len(known), f"a hole before {data}"
                texts[key] = known[: data["at"]] + data["text"] + known[data["at"] + len(data["text"]) :]
            case "message.assistant":
                key = (event["item"], event["data"].get("block", 0))
                texts[key] = "".join(block["text"] for block in event["data"]["content"])
            case _:
                pass
    return texts
