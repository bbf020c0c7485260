"""The detached holder over real processes: workers come and go, the agent and what it said stay."""

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from trunkline_agentkit import held as held_module
from trunkline_agentkit.agent_process import Said
from trunkline_agentkit.held import Held, HeldProcess, end_held, start_held, take_up
from trunkline_agentkit.sweep import is_running, marked
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_session_id

ECHO = """
import sys
for line in sys.stdin:
    print("heard", line.strip(), flush=True)
"""
COUNTS = """
import sys
for line in sys.stdin:
    for number in range(int(line)):
        print(number, flush=True)
"""


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(session=new_session_id(), directory=tmp_path / "hold", epoch=1)


class Run:
    """Starts a Python program behind a holder, and takes it up again as another worker."""

    def __init__(self, held: Held, cwd: Path) -> None:
        self.held = held
        self.cwd = cwd
        self.processes: list[HeldProcess] = []

    async def __call__(self, program: str, **options: Any) -> HeldProcess:
        argv = [sys.executable, "-c", textwrap.dedent(program)]
        held = replace(self.held, patience=options.pop("patience", self.held.patience))
        environment = {"PATH": os.environ["PATH"]}
        process = await start_held(argv, held, cwd=str(self.cwd), environment=environment, **options)
        self.processes.append(process)
        return process

    async def again(self, epoch: int = 2) -> HeldProcess:
        process = await take_up(replace(self.held, epoch=epoch), self.processes[0].registration)
        self.processes.append(process)
        return process


@pytest_asyncio.fixture
async def run(tmp_path: Path, held: Held) -> AsyncIterator[Run]:
    run = Run(held, tmp_path)
    yield run
    for process in run.processes:
        await process.abandon()
    await end_held(replace(held, epoch=1_000))
    assert marked(held.mark) == []


async def some(process: HeldProcess, count: int) -> list[bytes]:
    found: list[bytes] = []
    async with asyncio.timeout(30):
        async for line in process.lines():
            process.taken()
            found.append(line)
            if len(found) == count:
                break
    return found


async def test_another_worker_goes_on_where_the_first_one_was_lost(held: Held, run: Run) -> None:
    first = await run(ECHO)
    await first.write_line({"n": 1})
    assert await some(first, 1) == [b'heard {"n":1}']
    await first.write_line({"n": 2})
    await first.abandon()
    second = await run.again()
    said = await second.said()
    assert said[:3] == [Said(True, b'{"n":1}'), Said(False, b'heard {"n":1}'), Said(True, b'{"n":2}')]
    await second.write_line({"n": 3})
    heard = [one.line for one in said[3:]]
    heard += await some(second, 2 - len(heard))
    assert heard == [b'heard {"n":2}', b'heard {"n":3}']
    assert is_running((first.pid, first.registration.started))
    end = await second.close(grace=5)
    assert (end.code, end.signal) == (0, None)
    assert first.registration.holder is not None
    holder = first.registration.holder
    await eventually(lambda: not is_running(holder), 5)
    assert not (held.directory / "spool").exists()


async def test_what_was_taken_in_before_a_line_of_ours_stands_before_it(run: Run) -> None:
    first = await run(COUNTS)
    await first.write_line(b"3")
    lines = first.lines()
    async with asyncio.timeout(30):
        assert await anext(lines) == b"0"
        first.taken()
        assert await anext(lines) == b"1"  # given, but not taken in yet when this is said
        first.put_line(b"0")
        first.taken()
        first.note({"type": "tick"})
        assert await anext(lines) == b"2"
    await first.abandon()
    second = await run.again()
    assert await second.said() == [
        Said(True, b"3"),
        Said(False, b"0"),
        Said(True, b"0"),
        Said(False, b"1"),
        Said(True, b'{"type":"tick"}'),
        Said(False, b"2"),
    ]


async def test_what_is_said_while_nobody_listens_is_kept_with_the_agents_end(run: Run) -> None:
    first = await run("import sys; input(); print('one'); print('two'); sys.stderr.write('why'); sys.exit(3)")
    await first.write_line(b"1")
    await first.abandon()
    second = await run.again()
    await asyncio.wait_for(second.wait(), 10)
    assert [said.line for said in await second.said() if not said.ours] + [one async for one in second.lines()] == [
        b"one",
        b"two",
    ]
    end = await second.close()
    assert (end.code, end.stderr_tail) == (3, "why")


async def test_a_line_that_was_half_said_at_the_moment_of_death_is_whole(run: Run) -> None:
    first = await run(
        "import sys; sys.stdout.write('{\"a\":'); sys.stdout.flush(); input(); print('1}', flush=True); input()"
    )
    await first.abandon()
    second = await run.again()
    await second.write_line(b"go")
    assert await some(second, 1) == [b'{"a":1}']


async def test_half_a_line_of_a_dying_worker_never_reaches_the_agent(held: Held, run: Run) -> None:
    first = await run(ECHO)
    await first.abandon()
    _, writer = await introduced(held, epoch=2)
    writer.write(b'h 0 0 12\n{"n":')
    await writer.drain()
    writer.close()
    third = await run.again(3)
    await third.write_line({"n": 2})
    assert await some(third, 1) == [b'heard {"n":2}']


async def introduced(held: Held, *, epoch: int, secret: bytes | None = None, more: bytes = b"") -> Any:
    """A connection that has introduced itself, and said `more` in the same breath."""
    opened = os.open(held.directory, os.O_RDONLY)
    reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{opened}/socket")
    os.close(opened)
    key = (held.directory / "key").read_bytes() if secret is None else secret
    writer.write(b"w %d 0 %d\n" % (epoch, len(key)) + key + more)
    return reader, writer


async def test_a_wrong_secret_is_refused_and_the_agent_does_not_hear_it(held: Held, run: Run) -> None:
    first = await run(ECHO)
    reader, writer = await introduced(held, epoch=9, secret=b"guessed", more=b"h 0 0 1\n7")
    async with asyncio.timeout(10):
        assert (await reader.read()).split()[0] == b"r"
    writer.close()
    await first.write_line({"n": 1})
    assert await some(first, 1) == [b'heard {"n":1}']
    assert first.registration.holder is not None
    line = await asyncio.to_thread(Path(f"/proc/{first.registration.holder[0]}/cmdline").read_bytes)
    assert (held.directory / "key").read_bytes() not in line
    assert (held.directory / "key").stat().st_mode & 0o777 == 0o600
    assert (held.directory / "socket").stat().st_mode & 0o077 == 0


async def test_of_two_workers_the_newer_one_is_heard(run: Run) -> None:
    first = await run(ECHO)
    first.put_line({"n": 1})  # sent before it is fenced: it counts
    second = await run.again()
    with pytest.raises(TrunklineError) as refused:
        await run.again(1)
    assert refused.value.code == "fenced"
    await asyncio.wait_for(first.wait(), 10)
    with pytest.raises(TrunklineError):
        await first.write_line({"n": "fenced"})
    await second.write_line({"n": 2})
    heard = [said.line for said in await second.said() if not said.ours]
    heard += await some(second, 2 - len(heard))
    assert heard == [b'heard {"n":1}', b'heard {"n":2}']


async def test_an_agent_whose_worker_dies_before_the_gate_is_open_never_runs(held: Held, run: Run) -> None:
    class DiedError(Exception):
        pass

    async def die(_: object) -> None:
        raise DiedError

    with pytest.raises(DiedError):
        await run("open('ran', 'w')", register=die)
    assert marked(held.mark) == []
    assert not (run.cwd / "ran").exists()


async def test_an_agent_that_nobody_hears_waits_and_nothing_is_lost(
    held: Held, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_module, "_FULL", 20_000)
    first = await run(COUNTS)
    await first.write_line(b"20000")
    await first.abandon()
    spool = held.directory / "spool"
    await eventually(lambda: spool.stat().st_size >= 20_000, 20)
    stands = spool.stat().st_size
    assert stands < 200_000
    monkeypatch.setattr(held_module, "SPOOL_LIMIT", 5_000)
    second = await run.again()
    numbers = [int(said.line) for said in await second.said() if not said.ours]
    numbers += [int(line) for line in await some(second, 20_000 - len(numbers))]
    assert numbers == list(range(20_000))
    # It has said more than is kept: that is told, and it is not taken up with a hole.
    await second.abandon()
    with pytest.raises(TrunklineError) as refused:
        await run.again(3)
    assert refused.value.code == "agent_failed"


async def test_an_agent_without_a_worker_ends_after_a_while(held: Held, run: Run) -> None:
    first = await run(ECHO, patience=0.5)
    await first.abandon()
    await eventually(lambda: marked(held.mark) == [], 20)
    with pytest.raises(TrunklineError) as refused:
        await run.again()
    assert refused.value.code == "agent_failed"


async def test_the_holders_death_is_the_agents(held: Held, run: Run) -> None:
    first = await run("import time\nwhile True: time.sleep(1)")
    assert first.registration.holder is not None
    os.kill(first.registration.holder[0], signal.SIGKILL)
    assert await asyncio.wait_for(first.wait(), 10) == -signal.SIGKILL
    await eventually(lambda: marked(held.mark) == [], 10)
