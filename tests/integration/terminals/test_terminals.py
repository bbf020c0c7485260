"""Terminal programs through the whole product: run, held by tmux over the death of their worker, and the user's own tmux."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from trunkline_agentkit.death import HELD
from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.sweep import marked
from trunkline_testkit import eventually
from trunkline_testkit.product import Client, Product, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CONTRACT = Path(__file__).parents[2] / "contract"


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A short path, for tmux's sockets."""
    made = Path(tempfile.mkdtemp(prefix="tl-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


@pytest.fixture
async def product(tmp_path: Path, temporary: Path) -> AsyncGenerator[Product]:
    environment = {
        "PATH": f"{CONTRACT}{os.pathsep}{Path(shutil.which('trunkline') or '').parent}{os.pathsep}{os.environ['PATH']}",
        "TRUNKLINE_PTY_PROFILES": str(CONTRACT / "pty_profiles"),
        "TMPDIR": str(temporary),
        "TMUX_TMPDIR": str(temporary),
    }
    async with running(tmp_path / "home", environment) as product:
        yield product


async def begin(client: Client, project: Path, **options: Any) -> str:
    created = await client.call("session.create", adapter="pty", cwd=str(project), **options)
    session: str = created["session"]
    await client.subscribe(session, start="start")
    return session


def said(event: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in event["data"]["content"])


def held(temporary: Path) -> list[int]:
    """The tmux servers with a socket there, and what they run."""
    found: list[int] = []
    for process in psutil.process_iter():
        try:
            if str(temporary) in " ".join(process.cmdline()):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


async def test_the_command_line_runs_any_program(product: Product, project: Path) -> None:
    code, out, err = await product.cli("run", "pty", "--agent", "stand-in", "--cwd", str(project), "say")
    assert (code, out.strip()) == (0, "Hello from the stand-in, which says this in several pieces."), err
    code, out, err = await product.cli("run", "pty", "--command", "sh", "--cwd", str(project), "echo it-is-$((40+2))")
    assert code == 0, err
    assert "it-is-42" in out


async def test_a_program_in_tmux_goes_on_without_its_worker(product: Product, project: Path, temporary: Path) -> None:
    async with await product.client() as client:
        session = await begin(client, project, agent="stand-in", options={"hold": "tmux"})
        await client.call("session.prompt", session=session, text="say")
        await client.wait("turn.completed")
        shown = await client.call("session.get", session=session)
        assert "attach-session -t agent" in str(shown)
        opened = (await client.wait("terminal.opened"))["data"]
        assert (opened["columns"], opened["rows"]) == (200, 50)

        # An ask that is open over the death of the worker is the same ask.
        await client.call("session.prompt", session=session, text="ask")
        asked = (await client.wait("permission.requested"))["data"]
        old = product.kill("adapters")
        await product.restarted("adapters", old)
        await client.wait("session.resumed", lambda event: event["data"]["how"] == "adopted")
        await client.call("ask.answer", session=session, ask=asked["ask"], behaviour="allow")
        ended = await client.wait("turn.completed", count=2)
        assert ended["data"]["outcome"] == "success"
        assert (project / "asked").exists()
        assert client.events("ask.withdrawn") == []

        # What was printed while nobody looked is in the log.
        await client.call("session.prompt", session=session, text="slow")
        await client.wait("turn.started", count=3)
        old = product.kill("adapters")
        await product.restarted("adapters", old)
        await client.wait("session.resumed", lambda event: event["data"]["how"] == "adopted", count=2)
        ended = await client.wait("turn.completed", count=3)
        assert ended["data"]["outcome"] == "success"
        assert "one two three" in said(client.events("message.assistant")[-1])

        # A worker that stops in order leaves it running, too, though it does nothing.
        program = held(temporary)
        worker = product.find("adapters")
        assert worker is not None
        worker.terminate()
        await product.restarted("adapters", worker.pid)
        await client.call("session.prompt", session=session, text="say")
        await client.wait("session.resumed", lambda event: event["data"]["how"] == "adopted", count=3)
        await client.wait("turn.completed", count=4)
        assert set(program) & set(held(temporary))
        await client.call("session.close", session=session)
        await client.wait("session.closed")
        await eventually(lambda: held(temporary) == [], 10)
    code, out, err = await product.cli("verify", session)
    assert code == 0, f"{out}\n{err}"


async def test_a_kill_ends_what_tmux_holds_though_the_worker_hangs(
    product: Product, project: Path, temporary: Path
) -> None:
    async with await product.client() as client:
        session = await begin(client, project, agent="stand-in", options={"hold": "tmux"})
        await client.call("session.prompt", session=session, text="long")
        await client.wait("turn.started")
        assert held(temporary)
        worker = product.find("adapters")
        assert worker is not None
        worker.suspend()
        try:
            await client.call("session.command", session=session, verb="kill", args={"reason": "enough"})
            await client.wait("session.closed")
            await eventually(lambda: held(temporary) == [], 10)
        finally:
            worker.resume()


async def test_a_tmux_session_of_the_users_own_is_looked_at_and_left_alone(
    product: Product, project: Path, temporary: Path
) -> None:
    folder = temporary / f"tmux-{os.getuid()}"
    folder.mkdir(mode=0o700)
    tmux = ["tmux", "-u", "-S", str(folder / "default"), "-f", os.devnull]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(project)}
    begun = [
        *tmux,
        "new-session",
        "-d",
        "-s",
        "mine",
        "-x",
        "90",
        "-y",
        "20",
        "--",
        "sh",
        "-c",
        "echo my own work; cat",
    ]
    await asyncio.to_thread(subprocess.run, begun, env=environment, check=True)
    try:
        async with await product.client() as client:
            session = await begin(client, project, agent="tmux:mine", options={"prompt": None})
            await client.call("session.prompt", session=session, text="ls")
            failed = await client.wait("command.failed")
            assert failed["data"]["error"]["code"] == "unsupported"
            opened = await client.wait("terminal.opened")
            assert (opened["data"]["columns"], opened["data"]["rows"]) == (90, 20)
            screen = await client.wait("terminal.screen")
            assert "my own work" in screen["data"]["text"]
            shown = await client.call("session.get", session=session)
            assert f"tmux -S {folder / 'default'} attach-session -t mine" in str(shown)

            async def is_listed() -> bool:
                return "tmux:mine" in str(await client.call("agent.list"))

            await eventually(is_listed, 30)  # it was opened after the worker was
            await client.call("session.command", session=session, verb="kill", args={})
            await client.wait("session.closed")
        alive = await asyncio.to_thread(
            subprocess.run, [*tmux, "has-session", "-t", "=mine"], env=environment, check=False
        )
        assert alive.returncode == 0
    finally:
        await asyncio.to_thread(subprocess.run, [*tmux, "kill-server"], env=environment, check=False)


async def test_a_detached_terminal_goes_on_and_its_gap_is_told_once(product: Product, project: Path) -> None:
    async with await product.client() as client:
        session = await begin(client, project, agent="stand-in", options={"hold": "detached"})
        mark = {SESSION_MARK: f"{HELD}{session}"}
        await client.call("session.prompt", session=session, text="slow")
        await client.wait("turn.started")
        running = set(marked(mark))
        assert len(running) == 3  # the holder, the bridge, the program
        await product.restarted("adapters", product.kill("adapters"))
        await client.wait("session.resumed", lambda event: event["data"]["how"] == "adopted")
        ended = await client.wait("turn.completed")
        assert ended["data"]["outcome"] == "success"
        assert [said(event) for event in client.events("message.assistant")] == ["one two three"]

        # An ask is decided while there is no worker.
        await client.call("session.prompt", session=session, text="ask")
        asked = (await client.wait("permission.requested"))["data"]
        old = product.kill("adapters")
        await client.call("ask.answer", session=session, ask=asked["ask"], behaviour="allow")
        await product.restarted("adapters", old)
        ended = await client.wait("turn.completed", count=2)
        assert ended["data"]["outcome"] == "success"
        assert (project / "asked").exists()
        assert client.events("ask.withdrawn") == []
        assert len(client.events("ask.delivered")) == 1
        assert len(client.events("turn.started")) == 2
        assert client.events("command.failed") == []
        assert set(marked(mark)) == running

        # What is held on purpose is named when all is stopped, and ended when that is wanted.
        code, out, err = await product.cli("verify", session)
        assert code == 0, f"{out}\n{err}"
    await product.stop(spare=[pid for pid, _ in running])
    assert session in product.output()
    assert set(marked(mark)) == running
    code, out, err = await product.cli("daemon", "stop", "--all")
    assert code == 0, f"{out}\n{err}"
    assert marked(mark) == []


@pytest.mark.parametrize("hold", [pytest.param("detached", marks=pytest.mark.long), "tmux"])
async def test_a_terminal_in_a_turn_goes_on_whatever_is_killed(product: Product, project: Path, hold: str) -> None:
    """Worker, gateway, nats-server and supervisor in turn; what was printed meanwhile is on the screen that the log has."""
    client = await product.client()
    session = await begin(client, project, agent="stand-in", options={"hold": hold})
    mark = {SESSION_MARK: f"{HELD}{session}"}
    await client.call("session.prompt", session=session, text="until released")
    await client.wait("turn.started")
    program = set(marked(mark))
    for part in ("adapters", "gateway", "nats-server", "supervisor"):
        if part == "supervisor":
            assert product.process is not None
            product.process.kill()
            await product.process.wait()
            await product.start()
        else:
            await product.restarted(part, product.kill(part))
        assert program <= set(marked(mark)), part
    await client.close()
    client = await product.client_when_up()
    try:
        await client.subscribe(session, start="start")
        await client.wait("session.resumed", lambda event: event["data"]["how"] == "adopted", within=60)
        (project / "released").touch()
        ended = await client.wait("turn.completed", within=60)
        assert ended["data"]["outcome"] == "success"
        assert said(client.events("message.assistant")[-1]).endswith("Released.")
        assert len(client.events("turn.started")) == 1
        assert program <= set(marked(mark))
        # Stopped in order: what is held on purpose is all that goes on.
        await client.close()
        await product.stop(spare={pid for pid, _ in marked(mark)})
        assert program <= set(marked(mark))
        await product.start()
        client = await product.client_when_up()
        await client.subscribe(session, start="start")
        await client.call("session.close", session=session)
        await client.wait("session.closed")
        await eventually(lambda: not marked(mark), 20)
    finally:
        await client.close()
    code, out, err = await product.cli("verify", session)
    assert code == 0, f"{out}\n{err}"
