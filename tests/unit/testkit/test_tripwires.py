"""The wires are tested from outside: a small suite that leaks one thing a test, and what pytest says of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
from trunkline_testkit import tripwires
from trunkline_testkit.tripwires import trip_wires as trip_wires
from trunkline_testkit.tripwires import trip_wires_of_loop as trip_wires_of_loop
tripwires.GRACE = 0.3
"""

SUITE = """
import asyncio, socket, subprocess, threading, time
import pytest
kept = []

async def test_leaves_a_task():
    kept.append(asyncio.create_task(asyncio.sleep(600)))

async def test_leaves_a_process():
    kept.append(await asyncio.create_subprocess_exec("/bin/sleep", "601"))

def test_leaves_a_process_too():
    kept.append(subprocess.Popen(["/bin/sleep", "602"]))

def test_leaves_a_socket():
    server = socket.create_server(("127.0.0.1", 0))
    kept.append(server)

async def test_leaves_a_server():
    kept.append(await asyncio.start_server(print, "127.0.0.1", 0))

def test_leaves_a_thread():
    thread = threading.Thread(target=release.wait)
    thread.start()
    kept.append(thread)
release = threading.Event()

def test_calls_home():
    with pytest.raises(OSError):
        socket.create_connection(("192.0.2.1", 80), 0.1)

async def test_asks_a_name_server():
    with pytest.raises(OSError):
        await asyncio.open_connection("example.invalid", 80)

async def test_sleeps_on_the_loop():
    with pytest.raises(RuntimeError):
        time.sleep(0.01)

async def test_waits_for_a_process_on_the_loop():
    try:
        subprocess.run(["/bin/sleep", "0.1"])
    except RuntimeError:
        pass

async def test_connects_on_the_loop():
    server = await asyncio.start_server(print, "127.0.0.1", 0)
    with socket.socket() as connection, pytest.raises(RuntimeError):
        connection.connect(server.sockets[0].getsockname())
    server.close()

@pytest.fixture
async def ticking():
    task = asyncio.create_task(asyncio.sleep(600))
    server = await asyncio.start_server(print, "127.0.0.1", 0)
    yield server
    server.close()
    await server.wait_closed()
    task.cancel()

async def test_is_clean(ticking):
    host, port = ticking.sockets[0].getsockname()
    _, writer = await asyncio.open_connection("localhost", port)
    child = await asyncio.create_subprocess_exec("/bin/true")
    await child.wait()
    await asyncio.to_thread(time.sleep, 0.01)
    writer.close()

def test_is_clean_too():
    subprocess.run(["/bin/true"], check=True)
    time.sleep(0.01)
    release.set()
"""

EXPECTED = {
    "test_leaves_a_task": "asyncio tasks that nobody awaited",
    "test_leaves_a_process": "/bin/sleep 601",
    "test_leaves_a_process_too": "/bin/sleep 602",
    "test_leaves_a_socket": 'open sockets: ["127.0.0.1:',
    "test_leaves_a_server": 'open sockets: ["127.0.0.1:',
    "test_leaves_a_thread": "threads: [<Thread(",
    "test_calls_home": "it reached for '192.0.2.1', outside of this machine",
    "test_asks_a_name_server": "it reached for 'example.invalid', outside of this machine",
    "test_sleeps_on_the_loop": "it blocked its event loop by time.sleep(0.01) at ",
    "test_waits_for_a_process_on_the_loop": "it blocked its event loop by waiting for the process ['/bin/sleep', '0.1'] at /",
    "test_connects_on_the_loop": "it blocked its event loop by a blocking connect at ",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("leaky")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_leaky.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    return run_suite(folder)


def run_suite(folder: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=line", "-p", "no:cacheprovider", str(folder)]
    environment = {"PATH": os.defpath, "COLUMNS": "1000"}
    outcome = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=90, check=False
    )
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    return outcome.stdout


@pytest.mark.parametrize(("name", "complaint"), EXPECTED.items())
def test_a_leak_fails_its_test(report: str, name: str, complaint: str) -> None:
    (line,) = [
        line for line in report.splitlines() if line.startswith("ERROR") and line.split()[1].endswith("::" + name)
    ]
    assert complaint in line


def test_clean_tests_pass(report: str) -> None:
    failed = {line.split()[1].rpartition("::")[2] for line in report.splitlines() if line.startswith("ERROR ")}
    assert failed == set(EXPECTED)
    assert "PASSED test_leaky.py::test_is_clean\n" in report
    assert "PASSED test_leaky.py::test_is_clean_too\n" in report
