"""`terminal/*`: runs commands for the agent, in the session's directory and environment. They end with the session."""

import asyncio
import itertools
import signal
from collections.abc import Callable, Mapping
from typing import Any, Final

from trunkline_adapters.acp.files import inside
from trunkline_agentkit.fields import Obj, as_obj, items, objects, text, whole
from trunkline_agentkit.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from trunkline_agentkit.peer import RequestRefusedError, Serve
from trunkline_agentkit.process import AgentProcess, start_process
from trunkline_wire import TrunklineError
from trunkline_wire.ids import uuid7_hex

MOST: Final = 32
"""Terminals that an agent may hold at a time."""

OUTPUT_LIMIT: Final = 1024 * 1024
"""Bytes of output that are kept of a terminal; the agent may ask for less."""

_MARK: Final = "TRUNKLINE_TERMINAL"
"""Set for each terminal's processes: those of one are ended with it, and the agent, whose marks they bear too, lives on."""

Told = Callable[[str, str, int | None], None]


class Terminal:
    """A command that runs or has run. Both of its outputs are one."""

    def __init__(self, name: str, process: AgentProcess, limit: int, told: Told) -> None:
        self._name = name
        self._process = process
        self._limit = limit
        self._told = told
        self._kept = bytearray()
        self.truncated = False
        self.code: int | None = None
        """Its exit code, negative for a signal, once it has ended."""
        self._running = asyncio.create_task(self._run(), name=f"terminal {name}")

    @property
    def output(self) -> str:
        return self._kept.decode(errors="ignore")

    @property
    def status(self) -> Obj | None:
        """How it ended, in the protocol's words; None while it runs."""
        if self.code is None:
            return None
        if self.code < 0:
            return {"exitCode": None, "signal": _signal_name(-self.code)}
        return {"exitCode": self.code, "signal": None}

    def tell(self) -> None:
        self._told(self._name, self.output, self.code)

    async def wait(self) -> None:
        """Until it has ended. The waiting may be cancelled, it runs on."""
        await asyncio.wait({self._running})

    async def kill(self) -> None:
        self._process.kill()
        await self.wait()

    async def _run(self) -> None:
        try:
            async for piece in self._process.chunks():
                self._kept += piece
                if len(self._kept) > self._limit:
                    self.truncated = True
                    # Cut at the start of a character.
                    excess = len(self._kept) - self._limit
                    while excess < len(self._kept) and self._kept[excess] & 0xC0 == 0x80:
                        excess += 1
                    del self._kept[:excess]
            code = await self._process.wait()
        finally:
            await self._process.close(grace=0)
        self.code = code
        self.tell()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


class Terminals:
    """The terminals of a session. `told` hears what each has printed, and its exit code, when that is known."""

    def __init__(self, directory: str, environment: Mapping[str, str], told: Told) -> None:
        self._directory = directory
        self._environment = environment
        self._told = told
        self._numbers = itertools.count(1)
        self._terminals: dict[str, Terminal] = {}
        self._starting = 0
        self._closed = False

    @property
    def served(self) -> dict[str, Serve]:
        return {
            "terminal/create": self.create,
            "terminal/output": self.output,
            "terminal/wait_for_exit": self.wait_for_exit,
            "terminal/kill": self.kill,
            "terminal/release": self.release,
        }

    async def create(self, params: Any) -> Obj:
        given = as_obj(params)
        command = text(given, "command")
        if command is None:
            raise RequestRefusedError(INVALID_PARAMS, "`command` must be a text")
        arguments = [str(one) for one in items(given, "args")]
        directory = str(inside(self._directory, text(given, "cwd") or self._directory))
        added = {text(one, "name") or "": str(one.get("value", "")) for one in objects(given, "env")}
        limit = whole(given, "outputByteLimit")
        limit = OUTPUT_LIMIT if limit is None else max(0, min(limit, OUTPUT_LIMIT))
        if self._closed or len(self._terminals) + self._starting >= MOST:
            raise RequestRefusedError(INTERNAL_ERROR, f"no more than {MOST} terminals at a time: release one first")
        self._starting += 1
        try:
            process = await start_process(
                _argv(command, arguments),
                cwd=directory,
                environment={
                    **self._environment,
                    **{name: value for name, value in added.items() if _is_free(name)},
                    _MARK: uuid7_hex(),
                },
                marks=(_MARK,),
            )
        except TrunklineError as error:
            raise RequestRefusedError(INTERNAL_ERROR, error.message) from error
        finally:
            self._starting -= 1
        process.close_input()
        name = f"term-{next(self._numbers)}"
        self._terminals[name] = Terminal(name, process, limit, self._told)
        if self._closed:
            await self.close()
        return {"terminalId": name}

    async def output(self, params: Any) -> Obj:
        terminal = self._find(params)
        terminal.tell()
        result: Obj = {"output": terminal.output, "truncated": terminal.truncated}
        return result | ({"exitStatus": terminal.status} if terminal.status is not None else {})

    async def wait_for_exit(self, params: Any) -> Obj:
        terminal = self._find(params)
        await terminal.wait()
        return terminal.status or {"exitCode": None, "signal": None}

    async def kill(self, params: Any) -> Obj:
        await self._find(params).kill()
        return {}

    async def release(self, params: Any) -> Obj:
        terminal = self._find(params)
        del self._terminals[text(as_obj(params), "terminalId") or ""]
        await terminal.kill()
        return {}

    async def close(self) -> None:
        """Ends all of them, and takes no more."""
        self._closed = True
        left = list(self._terminals.values())
        self._terminals.clear()
        await asyncio.gather(*(terminal.kill() for terminal in left), return_exceptions=True)

    def _find(self, params: Any) -> Terminal:
        name = text(as_obj(params), "terminalId") or ""
        if name not in self._terminals:
            raise RequestRefusedError(INVALID_PARAMS, f"there is no terminal {name!r}")
        return self._terminals[name]


def _argv(command: str, arguments: list[str]) -> list[str]:
    """A program with its arguments; a command that is a whole line goes to the shell, as some agents mean it."""
    if not arguments and any(character.isspace() for character in command):
        return ["/bin/sh", "-c", f"exec 2>&1\n{command}"]
    return ["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", command, *arguments]


def _is_free(name: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name and not name.startswith("TRUNKLINE_")
