"""The process transport over real pipes and real processes."""

import asyncio
import json
import os
import signal
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from trunkline_agentkit.environment import INCARNATION_MARK, SESSION_MARK
from trunkline_agentkit.place import Place, Record
from trunkline_agentkit.process import STDERR_TAIL, AgentProcess, Registration, start_process
from trunkline_agentkit.recorder import Recorder, read_recording
from trunkline_agentkit.sweep import end_family, end_group, holders, is_running, marked, start_time
from trunkline_agentkit.workers import WorkerMark
from trunkline_testkit import eventually
from trunkline_testkit.processes import snapshot
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_session_id, uuid7_hex

Run = Callable[..., Any]
ECHO = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.buffer.flush()"


@pytest_asyncio.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    """Runs a Python program as an agent: `process = await run("print(1)")`."""
    processes: list[AgentProcess] = []

    async def start(program: str, **options: Any) -> AgentProcess:
        environment = {
            "PATH": os.environ["PATH"],
            SESSION_MARK: new_session_id(),
            INCARNATION_MARK: uuid7_hex(),
            **options.pop("environment", {}),
        }
        process = await start_process(
            [sys.executable, "-c", textwrap.dedent(program)], cwd=str(tmp_path), environment=environment, **options
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        await process.close(grace=0)


async def lines_of(process: AgentProcess) -> list[bytes]:
    async with asyncio.timeout(60):
        return [line async for line in process.lines()]


@pytest.mark.parametrize("size", [70_000, 300_000, 1_200_000, 16_000_000, 64_000_000])
async def test_a_line_of_any_length_and_the_one_behind_it(run: Run, size: int) -> None:
    process = await run(f"print('x' * {size}); print('after')")
    big, after = await lines_of(process)
    assert len(big) == size
    assert after == b"after"


async def test_a_last_line_without_an_end_counts(run: Run) -> None:
    process = await run("import sys; sys.stdout.write('one\\r\\n\\n\\ntwo'); sys.stdout.flush()")
    assert await lines_of(process) == [b"one", b"two"]


async def test_messages_of_many_writers_stay_whole_even_if_some_are_cancelled(run: Run) -> None:
    process = await run("import time; time.sleep(0.3)\n" + ECHO)  # slow to read: the writers fill the pipe
    big = "y" * 200_000

    async def write(number: int) -> None:
        await process.write_line({"n": number, "big": big})

    writers = [asyncio.create_task(write(number)) for number in range(40)]
    await asyncio.sleep(0)
    for writer in writers[::2]:
        writer.cancel()
    reading = asyncio.create_task(lines_of(process))
    await asyncio.gather(*writers, return_exceptions=True)
    process.close_input()
    messages = [json.loads(line) for line in await reading]
    assert {message["n"] for message in messages} >= set(range(1, 40, 2))
    assert all(message["big"] == big for message in messages)


async def test_the_environment_is_what_was_given(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_WORKER", "x")
    process = await run("import json, os; print(json.dumps(dict(os.environ)))", environment={"GIVEN": "1"})
    (line,) = await lines_of(process)
    names = set(json.loads(line))
    assert {"PATH", SESSION_MARK, INCARNATION_MARK, "GIVEN"} <= names
    assert "A_SECRET_OF_THE_WORKER" not in names


async def test_a_missing_program_and_a_missing_directory_are_named(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"]}
    with pytest.raises(TrunklineError, match="no-such-program") as refused:
        await start_process(["no-such-program"], cwd=str(tmp_path), environment=environment)
    assert refused.value.code == "agent_not_found"
    with pytest.raises(TrunklineError, match="/no/such/place") as refused:
        await start_process(["cat"], cwd="/no/such/place", environment=environment)
    assert refused.value.code == "bad_directory"


async def test_an_agent_that_exits_at_once_says_so_to_writers(run: Run) -> None:
    process = await run("import sys; sys.stderr.write('no\\n'); sys.exit(9)")
    assert await lines_of(process) == []
    assert await process.wait() == 9
    with pytest.raises(TrunklineError) as refused:
        await process.write_line({"a": 1})
    assert refused.value.code == "agent_failed"
    exit = await process.close()
    assert (exit.code, exit.signal, exit.stderr_tail) == (9, None, "no\n")


async def test_of_much_error_output_the_end_is_kept(run: Run) -> None:
    process = await run("import sys; sys.stderr.write('z' * 1_000_000 + 'THE END')")
    await lines_of(process)
    exit = await process.close()
    assert len(exit.stderr_tail) == STDERR_TAIL
    assert exit.stderr_tail.endswith("zTHE END")


async def test_output_ends_with_the_program_though_a_descendant_holds_the_pipe(run: Run) -> None:
    process = await run(
        """
        import subprocess, sys
        print('said', flush=True)
        subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
        """
    )
    begin = time.monotonic()
    assert await lines_of(process) == [b"said"]
    assert time.monotonic() - begin < 5


async def test_the_rest_of_the_output_is_read_after_the_end(run: Run) -> None:
    process = await run("print('\\n'.join(str(n) for n in range(20000)))")
    await process.wait()
    assert len(await lines_of(process)) == 20000


FAMILY = """
    import os, signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleeper = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)'
    child = subprocess.Popen([sys.executable, '-c', sleeper])
    daemon = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True).pid)"
    grandchild = subprocess.run([sys.executable, '-c', daemon, sleeper], capture_output=True, text=True, check=False, stdin=0).stdout
    print(os.getpid(), child.pid, int(grandchild), flush=True)
    time.sleep(600)
"""


async def test_closing_ends_children_and_daemons_that_ignore_every_plea(run: Run, monkeypatch: Any) -> None:
    monkeypatch.setattr("trunkline_agentkit.process._TERM_GRACE", 0.2)
    process = await run(FAMILY.replace("capture_output=True", "stdout=subprocess.PIPE, stderr=subprocess.DEVNULL"))
    # The daemon keeps the pipe of its parent open, so its number is read from the marks instead.
    marks = {INCARNATION_MARK: process._marks[INCARNATION_MARK]}
    family = await eventually(lambda: _family(marks, 3), 20)
    exit = await process.close(grace=0.1)
    assert exit.signal == signal.SIGKILL
    assert [identity for identity in family if is_running(identity)] == []


def _family(marks: dict[str, str], count: int) -> Any:
    found = marked(marks)
    return found if len(found) == count else None


async def test_a_program_that_could_not_be_registered_never_ran(run: Run, tmp_path: Path) -> None:
    seen: list[Registration] = []

    async def register(registration: Registration) -> None:
        seen.append(registration)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        await run("open('ran', 'w')", register=register)
    assert seen[0].pid == seen[0].pgid
    assert not (tmp_path / "ran").exists()
    await eventually(lambda: snapshot(seen[0].pid) is None, 5)


OWNER = """
    import asyncio, os, sys
    from trunkline_agentkit.process import start_process
    from trunkline_agentkit.place import Place
    from pathlib import Path

    async def register(registration):
        print(registration.pid, flush=True)
        if {die_early}:
            os.kill(os.getpid(), 9)

    async def main():
        place = Place(Path({home!r}), {session!r})
        assert place.lock()
        process = await start_process(
            [sys.executable, '-c', {program!r}],
            cwd={home!r},
            environment={{'PATH': os.environ['PATH'], 'TRUNKLINE_SESSION': {session!r}, 'TRUNKLINE_INCARNATION': 'i'}},
            inherit=(place.lock_descriptor,),
            register=register,
        )
        async for line in process.lines():
            if {kill_holder}:
                os.kill(process.registration.holder[0], 9)
            print(line.decode(), flush=True)

    asyncio.run(main())
"""


async def start_owner(tmp_path: Path, program: str, **how: Any) -> tuple[asyncio.subprocess.Process, str, int]:
    """A process that owns an agent, its session and the agent's pid."""
    session = new_session_id()
    how = {"die_early": False, "kill_holder": False, **how}
    text = textwrap.dedent(OWNER).format(home=str(tmp_path), session=session, program=textwrap.dedent(program), **how)
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", text, stdout=asyncio.subprocess.PIPE, env={"PATH": os.environ["PATH"]}
    )
    assert owner.stdout is not None
    return owner, session, int(await owner.stdout.readline())


async def end_owner(owner: asyncio.subprocess.Process) -> None:
    assert owner.stdout is not None
    assert await owner.stdout.readline() == b"up\n"
    owner.kill()
    await owner.wait()


UP = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); print('up', flush=True); time.sleep(600)"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal is Linux's")
async def test_the_kernel_kills_an_agent_whose_holder_was_killed(tmp_path: Path) -> None:
    owner, session, agent = await start_owner(tmp_path, UP, kill_holder=True)
    await end_owner(owner)
    await eventually(lambda: snapshot(agent) is None, 5)
    # The kernel knows only the agent itself: what it left is found by its marks.
    assert await end_family({SESSION_MARK: session}) == 1


async def test_the_holder_ends_all_of_an_agent_whose_owner_was_killed(tmp_path: Path) -> None:
    owner, session, agent = await start_owner(tmp_path, UP)
    await end_owner(owner)
    await eventually(lambda: snapshot(agent) is None, 5)
    await eventually(lambda: marked({SESSION_MARK: session}) == [], 5)


async def test_an_owner_killed_while_it_registers_leaves_an_agent_that_never_began(tmp_path: Path) -> None:
    owner, session, agent = await start_owner(tmp_path, "open('ran', 'w')", die_early=True)
    await owner.wait()
    await eventually(lambda: snapshot(agent) is None, 5)
    assert marked({SESSION_MARK: session}) == []
    assert not (tmp_path / "ran").exists()


async def test_an_agent_holds_the_lock_of_its_session_and_what_hides_from_the_marks_is_found_by_it(
    tmp_path: Path,
) -> None:
    hiding = """
        import os, subprocess, sys, time
        subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], env={}, start_new_session=True, close_fds=False)
        print('up', flush=True)
        time.sleep(600)
    """
    owner, session, agent = await start_owner(tmp_path, hiding, kill_holder=True)
    await end_owner(owner)
    await eventually(lambda: snapshot(agent) is None, 5)
    place = Place(tmp_path, session)
    place.write(
        Record(session=session, adapter="demo", cwd="/", worker=WorkerMark(worker="w", pid=owner.pid, started=1))
    )
    assert not place.lock(), "a descendant of the agent still holds it"
    (holder,) = holders(place.lock_path)
    assert await place.seize()
    assert not is_running(holder)
    place.unlock()


async def test_a_group_whose_number_went_to_strangers_is_left_alone(run: Run) -> None:
    process = await run("import time; time.sleep(600)")
    started = start_time(process.pid)
    assert started is not None
    await end_group(process.pid, started - 60, {SESSION_MARK: "ses_of_another"})
    assert process.running
    await end_group(process.pid, started, {})
    await eventually(lambda: not process.running, 5)


async def test_traffic_is_recorded_verbatim_both_ways_and_rotated(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "native.jsonl"
    process = await run(ECHO, recorder=Recorder(path))
    await process.write_line(b'{"b": 1,  "a":2}')
    process.close_input()
    assert await lines_of(process) == [b'{"b": 1,  "a":2}']
    await process.close()
    recorded = read_recording(path)
    assert [(entry.speaker, entry.raw) for entry in recorded] == [
        ("host", b'{"b": 1,  "a":2}'),
        ("agent", b'{"b": 1,  "a":2}'),
        ("exit", b'{"code":0,"signal":null}'),
    ]
    assert path.stat().st_mode & 0o777 == 0o600

    path.unlink()
    recorder = Recorder(path)
    recorder.line("agent", b'{\n  "a": "one\\ntwo"\n}')
    recorder.close()
    assert [entry.raw for entry in read_recording(path)] == [b'{   "a": "one\\ntwo" }']

    recorder = Recorder(path, limit=1000)
    for number in range(30):
        recorder.note("meta", {"number": number, "text": "x" * 50})
    recorder.close()
    assert path.stat().st_size <= 1000
    assert json.loads(read_recording(path)[-1].raw)["number"] == 29
    assert path.with_name("native.jsonl.1").exists()
