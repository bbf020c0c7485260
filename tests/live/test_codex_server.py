"""The real Codex as a server that runs by itself: over a WebSocket that is cut, and over a unix socket."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.live.codex_bench import Bench, allow, app_server

from trunkline_testkit import eventually
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.ports import free_port
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskWithdrawn, PermissionRequested
from trunkline_wire.turn import TurnCompleted, TurnStarted
from trunkline_wire.work import TaskUpdated

pytestmark = pytest.mark.live


@pytest.fixture
async def bench(tmp_path: Path, scripted_api: ScriptedApi, codex_program: Path) -> AsyncGenerator[Bench]:
    async with Bench.made(tmp_path, scripted_api, codex_program) as bench:
        yield bench


class Server:
    """A `codex app-server` that listens on a WebSocket, behind a relay that can cut its connections."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._relay: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        assert self._relay is not None
        return f"ws://127.0.0.1:{self._relay.sockets[0].getsockname()[1]}"

    async def relay(self) -> None:
        self._relay = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def cut(self) -> None:
        """Resets every connection."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def stop(self) -> None:
        await self.cut()
        if self._relay is not None:
            self._relay.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, back}

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            try:
                while chunk := await source.read(65536):
                    target.write(chunk)
                    await target.drain()
            except ConnectionError:
                pass
            finally:
                target.close()

        await asyncio.gather(copy(reader, back), copy(there, writer))
        self._writers -= {writer, back}


@pytest.fixture
async def server(bench: Bench, tmp_path: Path) -> AsyncGenerator[Server]:
    token = tmp_path / "token"
    token.write_text("a-token-for-this-test\n")
    port = free_port()
    listen = ["--listen", f"ws://127.0.0.1:{port}", "--ws-auth", "capability-token", "--ws-token-file", str(token)]
    async with app_server(bench.program, bench.source, bench.project, *listen):
        started = Server(port)
        await started.relay()
        yield started
        await started.stop()


async def test_an_ask_is_taken_up_over_a_new_connection(bench: Bench, server: Server, tmp_path: Path) -> None:
    native = {"server": server.url, "token_file": str(tmp_path / "token")}
    async with bench.session(native=native, mode="untrusted") as agent:
        await agent.say("SCENARIO=bash CMD=touch pending")
        asked = await agent.wait(PermissionRequested)
        seen = len(agent.natives)
        await server.cut()

        def asked_again() -> bool:
            return [native.kind for native in agent.natives[seen:]].count("item/commandExecution/requestApproval") == 1

        await eventually(asked_again, 30)
        assert len(agent.all(PermissionRequested)) == 1
        assert await agent.session.pending() == {asked.ask}
        await agent.session.decide(asked.ask, allow(asked.ask))
        assert (await agent.wait(TurnCompleted)).outcome == "success"
        assert agent.all(AskWithdrawn) == []
        assert (bench.project / "pending").exists()


async def test_the_ask_of_a_sub_agent_is_taken_up_too(bench: Bench, server: Server, tmp_path: Path) -> None:
    native = {"server": server.url, "token_file": str(tmp_path / "token")}
    async with bench.session(native=native, mode="untrusted") as agent:
        await agent.say("SCENARIO=sub CHILD=SCENARIO=bash")
        asked = await agent.wait(PermissionRequested)
        await agent.wait(TurnCompleted)
        seen = len(agent.natives)
        await server.cut()

        def asked_again() -> bool:
            return "item/commandExecution/requestApproval" in [native.kind for native in agent.natives[seen:]]

        await eventually(asked_again, 30)
        await agent.session.decide(asked.ask, allow(asked.ask))
        await eventually(lambda: any(task.status == "completed" for task in agent.all(TaskUpdated)), 30)
        assert (bench.project / "made-by-the-model").exists()
        assert (len(agent.all(PermissionRequested)), agent.all(AskWithdrawn)) == (1, [])


async def test_a_turn_that_ended_unheard_gets_its_end(bench: Bench, server: Server, tmp_path: Path) -> None:
    native = {"server": server.url, "token_file": str(tmp_path / "token")}
    async with bench.session(native=native) as agent:
        await agent.say("SCENARIO=hold")
        await bench.api.wait_holding()
        await agent.wait(TurnStarted)
        await server.cut()
        bench.api.release()
        assert (await agent.wait(TurnCompleted)).result == "Holding. Released."
        assert len(agent.all(TurnStarted)) == 1


async def test_a_server_wants_its_token(bench: Bench, server: Server, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("not-this-one")
    with pytest.raises(TrunklineError) as error:
        async with bench.session(native={"server": server.url, "token_file": str(wrong)}):
            pass
    assert error.value.code == "agent_auth"
    assert "not-this-one" not in str(error.value)


async def test_a_unix_socket_serves_too(bench: Bench, tmp_path: Path) -> None:
    address = f"unix://{tmp_path / 's'}"
    async with (
        app_server(bench.program, bench.source, bench.project, "--listen", address),
        bench.session(native={"server": address}) as agent,
    ):
        assert (await agent.turn("SAY=Over a socket.")).result == "Over a socket."
