"""One service kept alive: with real processes, and a clock that is not waited for longer than the back-off itself."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from trunkline_supervisor import processes
from trunkline_supervisor.child import Child, ChildSpec
from trunkline_supervisor.logs import rotate
from trunkline_supervisor.services import http_probe
from trunkline_testkit import eventually
from trunkline_testkit.processes import snapshot


async def yes() -> bool:
    return True


def spec(code: str, home: Path, probe: Callable[[], Awaitable[bool]] = yes) -> ChildSpec:
    return ChildSpec(name="x", argv=[sys.executable, "-c", code], environment={}, log=home / "x.log", probe=probe)


async def test_a_child_that_dies_again_and_again_is_looping_and_its_words_are_kept(home: Path) -> None:
    seen: list[int | None] = []
    child = Child(spec("import sys; print('no key'); sys.exit(3)", home), lambda one: seen.append(one.last_exit))
    running = asyncio.create_task(child.run())
    await eventually(lambda: child.restarts.looping, 20)
    await child.retire()
    await running
    assert child.last_exit == 3
    assert child.starts == 5
    assert child.log_tail().splitlines() == ["no key"] * 5


async def test_a_child_that_never_runs_is_given_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_supervisor.backoff.GIVE_UP", 3)
    seen: list[bool] = []
    child = Child(spec("raise SystemExit(3)", home), lambda one: seen.append(one.restarts.hopeless))
    running = asyncio.create_task(child.run())
    await eventually(lambda: child.restarts.hopeless, 20)
    done, _ = await asyncio.wait({running}, timeout=child.restarts.delay * 2)
    assert not done
    assert child.starts == 3
    assert seen[-1]
    await child.retire()
    await asyncio.wait_for(running, 5)


async def test_a_child_that_ignores_sigterm_is_killed_with_its_group(home: Path) -> None:
    code = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        "print(p.pid, flush=True); time.sleep(600)"
    )
    child = Child(spec(code, home), lambda _: None)
    running = asyncio.create_task(child.run())
    helper = await eventually(lambda: int(child.log_tail() or 0))
    await child.retire()
    process = child.process
    assert process is not None
    assert await processes.stop([process], 0.2) == [process.pid]
    await running
    await eventually(lambda: snapshot(helper) is None)
    assert child.starts == 1


async def test_a_retired_child_does_not_start_again(home: Path) -> None:
    child = Child(spec("import time; time.sleep(600)", home), lambda _: None)
    running = asyncio.create_task(child.run())
    await eventually(child.ready.is_set)
    await child.retire()
    assert child.process is not None
    child.process.kill()
    await running
    assert (child.starts, child.ready.is_set()) == (1, False)


async def test_a_program_that_is_not_there_is_tried_again(home: Path) -> None:
    missing = ChildSpec(name="x", argv=["/nowhere/x"], environment={}, log=home / "x.log", probe=yes)
    child = Child(missing, lambda _: None)
    running = asyncio.create_task(child.run())
    await eventually(lambda: child.restarts.deaths == 2)
    await child.retire()
    await running


async def test_only_the_service_itself_counts_as_ready() -> None:
    answers = {"body": b'{"service": "other", "status": "ok"}', "status": b"200 OK"}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 " + answers["status"] + b"\r\n\r\n" + answers["body"])
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        probe = http_probe("gateway", server.sockets[0].getsockname()[1])
        assert not await probe()
        answers["body"] = b'{"service": "gateway", "status": "ok"}'
        assert await probe()
        answers["status"] = b"503 Service Unavailable"
        assert not await probe()
        answers["body"] = b"not json"
        assert not await probe()
    assert not await probe()


def test_a_log_over_its_limit_is_moved_aside_and_goes_on_in_place(tmp_path: Path) -> None:
    path = tmp_path / "gateway.log"
    with path.open("ab") as service:
        service.write(b"old\n" * 10)
        service.flush()
        assert rotate(tmp_path, limit=39) == [path]
        service.write(b"new\n")
        service.flush()
    assert path.read_bytes() == b"new\n"
    assert (tmp_path / "gateway.log.1").read_bytes() == b"old\n" * 10
    assert rotate(tmp_path, limit=39) == []
