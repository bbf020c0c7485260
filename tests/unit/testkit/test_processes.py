import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest

from trunkline_testkit import eventually_sync, processes

SLEEP = ["/bin/sleep", "600"]


def test_a_tree_holds_grandchildren_and_no_dead() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "sleep 600 & sleep 600 & wait"], start_new_session=True) as shell:
        found = eventually_sync(lambda: found if len(found := processes.tree(shell.pid)) == 2 else None)
        assert {info.ppid for info in found} == {shell.pid}
        assert {info.pgid for info in found} == {shell.pid}
        assert shell.pid in {info.pid for info in processes.tree()}
        os.killpg(shell.pid, signal.SIGKILL)
    processes.wait_gone_sync(found)


def test_a_reused_pid_is_another_process() -> None:
    with subprocess.Popen(SLEEP) as child:
        info = processes.snapshot(child.pid)
        assert info is not None
        assert info.alive()
        other = processes.ProcessInfo(info.pid, info.started - 60, info.ppid, info.pgid, info.command)
        assert not other.alive()
        assert other != info
        child.kill()
    assert not info.alive()


async def test_orphans_are_found_by_their_mark_named_and_killed() -> None:
    mark = uuid.uuid4().hex
    environment = {"PATH": os.defpath, "TRUNKLINE_MARK": mark}
    parent = await asyncio.create_subprocess_exec("/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 &", env=environment)
    await parent.wait()
    (orphan,) = eventually_sync(lambda: processes.marked("TRUNKLINE_MARK", mark))
    assert orphan.ppid != os.getpid()
    with pytest.raises(AssertionError, match=f"{orphan.pid} .*sleep 600"):
        await processes.assert_no_orphans("TRUNKLINE_MARK", mark, timeout=0.1)
    await processes.wait_gone([orphan])
    await processes.assert_no_orphans("TRUNKLINE_MARK", mark)


@pytest.mark.parametrize("by", ["directory", "environment"])
def test_a_process_that_has_left_everything_is_found_by_where_it_lives(tmp_path: Path, by: str) -> None:
    home, other = tmp_path / "home", tmp_path / "home-of-another"
    (home / "deep").mkdir(parents=True)
    other.mkdir()
    environment = {"PATH": os.defpath} | ({"SOCKET": f"{home}/s"} if by == "environment" else {})
    directory = home / "deep" if by == "directory" else other
    with subprocess.Popen(SLEEP, cwd=directory, env=environment, start_new_session=True) as child:
        assert [info.pid for info in eventually_sync(lambda: processes.within(home))] == [child.pid]
        assert processes.within(tmp_path / "hom") == []
        child.kill()
    assert processes.within(home) == []


def test_stop_and_continue() -> None:
    with subprocess.Popen(SLEEP) as child:
        processes.stop(child.pid)
        eventually_sync(lambda: psutil.Process(child.pid).status() == psutil.STATUS_STOPPED)
        processes.cont(child.pid)
        eventually_sync(lambda: psutil.Process(child.pid).status() != psutil.STATUS_STOPPED)
        processes.kill(child.pid)
        assert child.wait() == -signal.SIGKILL
    processes.kill(child.pid)


def test_what_still_runs_at_the_deadline_is_named() -> None:
    with subprocess.Popen(SLEEP) as child:
        info = processes.snapshot(child.pid)
        assert info is not None
        with contextlib.ExitStack() as at_end:
            at_end.callback(child.kill)
            # The kernel shows the arguments a moment after the start: the pid is what is certain.
            with pytest.raises(AssertionError, match=f"still running: {child.pid} "):
                processes.wait_gone_sync([info], 0.05)


def test_a_guard_outlives_a_killed_owner_and_ends_its_group() -> None:
    program = (
        "import subprocess, sys; from trunkline_testkit.processes import Guard\n"
        "child = subprocess.Popen(['/bin/sleep', '600'], start_new_session=True)\n"
        "guard = Guard(child.pid); print(child.pid, flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        info = processes.snapshot(int(owner.stdout.readline()))
        assert info is not None
        assert info.alive()
        owner.kill()
    processes.wait_gone_sync([info])
