"""The real Codex as a server that runs by itself: over a WebSocket that is cut, and over a unix socket."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.live.codex_bench import Bench, allow

from trunkline_testkit import eventually
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.ports import free_port
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskWithdrawn, PermissionRequested
from trunkline_wire.turn import TurnCompleted, TurnStarted

pytestmark = pytest.mark.live


@pytest.fixture
def bench(tmp_path: Path, scripted_api: ScriptedApi, codex_program: Path) -> Bench:
    project = tmp_path / "project"
    project.mkdir()
    return Bench(tmp_path / "home", project, scripted_api, codex_program)


class Server:
    """A `codex app-server` that listens on a WebSocket, behind a relay that can cut its connections."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
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
        self.process.terminate()
        await self.process.wait()

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
    own = {name: value for name, value in bench.source.items() if not name.startswith("TRUNKLINE_")}
    listen = ["--listen", f"ws://127.0.0.1:{port}", "--ws-auth", "capability-token", "--ws-token-file", str(token)]
    process = await asyncio.create_subprocess_exec(
        bench.program,
        "app-server",
        *listen,
        env=own,
        cwd=bench.project,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )

    async def listening() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    await eventually(listening, 30)
    started = Server(process, port)
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
    path = tmp_path / "s"
    own = {name: value for name, value in bench.source.items() if not name.startswith("TRUNKLINE_")}
    process = await asyncio.create_subprocess_exec(
        bench.program,
        "app-server",
        "--listen",
        f"unix://{path}",
        env=own,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await eventually(path.exists, 30)
        async with bench.session(native={"server": f"unix://{path}"}) as agent:
            assert (await agent.turn("SAY=Over a socket.")).result == "Over a socket."
    finally:
        process.terminate()
        await process.wait()
