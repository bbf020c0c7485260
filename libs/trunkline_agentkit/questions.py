"""Questions to a host, on `trunk.host.<host>.<method>`: what only somebody on that machine can tell. They hold no truth.

`directories {path}` lists the directories in one; `histories {path}` the sessions that agents ran there without Trunkline.
Run as a program, `python -m trunkline_agentkit.questions DIRECTORY` prints the latter: reading many large files is no work
for a process that owns live sessions.
"""

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import nats.errors
from nats.aio.msg import Msg

from trunkline_agentkit.history import KeepsHistories, summarise
from trunkline_agentkit.registry import load_all
from trunkline_bus.connection import Bus
from trunkline_wire import ErrorInfo, TrunklineError, encode, subjects

log = logging.getLogger(__name__)

MAX_DIRECTORIES: Final = 500
MAX_HISTORIES: Final = 200
HISTORIES_S: Final = 20.0
MAX_PARALLEL: Final = 4
_QUEUE: Final = "hosts"


class Question(msgspec.Struct, frozen=True):
    path: str


class HostQuestions:
    """Answers for one host; of several workers of a host one is asked."""

    def __init__(self, bus: Bus, host: str) -> None:
        self._bus = bus
        self._host = host
        self._parallel = asyncio.Semaphore(MAX_PARALLEL)

    async def run(self) -> None:
        """Answer until cancelled."""
        answers: Mapping[str, Callable[[str], Awaitable[Any]]] = {
            "directories": _directories,
            "histories": _histories,
        }
        async with asyncio.TaskGroup() as group:

            def taking(answer: Callable[[str], Awaitable[Any]]) -> Callable[[Msg], Awaitable[None]]:
                async def take(message: Msg) -> None:
                    group.create_task(self._answer(message, answer))

                return take

            for method, answer in answers.items():
                subject = subjects.host(self._host, method)
                await self._bus.commands.subscribe(subject, queue=_QUEUE, cb=taking(answer))
            await asyncio.Event().wait()

    async def _answer(self, message: Msg, answer: Callable[[str], Awaitable[Any]]) -> None:
        async with self._parallel:
            question = Question("")
            try:
                question = msgspec.json.decode(message.data, type=Question)
                told = {"result": await answer(question.path)}
            except msgspec.MsgspecError as error:
                told = {"error": ErrorInfo(code="bad_params", message=f"not a question: {error}")}
            except TrunklineError as error:
                told = {"error": ErrorInfo.of(error)}
            except (OSError, ValueError) as error:
                told = {"error": ErrorInfo(code="bad_directory", message=f"{question.path!r}: {error}")}
            except Exception:
                # A question must never end the worker.
                log.exception("question_failed", extra={"subject": message.subject})
                told = {"error": ErrorInfo(code="internal", message="the worker's log has the details")}
            with contextlib.suppress(nats.errors.Error):
                await message.respond(encode(told))


async def _directories(path: str) -> dict[str, Any]:
    return await asyncio.to_thread(list_directories, path)


def list_directories(path: str) -> dict[str, Any]:
    """The directories in `path` (`~` is the home), by name, hidden ones last. Blocking. Raises `bad_directory`, OSError."""
    directory = Path(path).expanduser()
    if not directory.is_absolute() or not directory.is_dir():
        raise TrunklineError("bad_directory", f"{path!r} is no directory of this host")
    with os.scandir(directory) as entries:
        names = sorted((entry.name for entry in entries if entry.is_dir()), key=lambda name: (name[0] == ".", name))
    real = directory.resolve()
    return {
        "path": str(real),
        "parent": str(real.parent) if real.parent != real else None,
        "directories": names[:MAX_DIRECTORIES],
        "has_more": len(names) > MAX_DIRECTORIES,
    }


async def _histories(path: str) -> dict[str, Any]:
    command = (sys.executable, "-m", "trunkline_agentkit.questions", path)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(HISTORIES_S):
            out, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise TrunklineError("timeout", f"reading the histories took more than {HISTORIES_S:g} s") from None
    if process.returncode != 0:
        raise TrunklineError("internal", "the histories could not be read; the worker's log has the details")
    return msgspec.json.decode(out)


def _broken(error: TrunklineError) -> None:
    log.warning("adapter_not_loaded", extra={"error": error.message})


def list_histories(path: str) -> dict[str, Any]:
    """What agents ran in `path` without Trunkline, the latest first. Blocking."""
    real = Path(path).expanduser().resolve()
    found: list[dict[str, Any]] = []
    for name, adapter in load_all(_broken).items():
        if not isinstance(adapter, KeepsHistories):
            continue
        try:
            files = adapter.histories()
        except TrunklineError as error:
            log.warning("histories_not_read", extra={"adapter": name, "code": error.code})
            continue
        for file in files:
            try:
                summary = summarise(adapter, file)
            except (OSError, TrunklineError):
                continue
            if summary.turns and summary.cwd is not None and Path(summary.cwd).resolve() == real:
                fields = ("native", "title", "model", "began", "ended", "turns", "messages")
                found.append({field: getattr(summary, field) for field in fields} | {"agent": summary.agent or name})
    found.sort(key=lambda one: one["ended"], reverse=True)
    return {"histories": found[:MAX_HISTORIES], "has_more": len(found) > MAX_HISTORIES}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(list_histories(sys.argv[1])))
