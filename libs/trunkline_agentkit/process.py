"""The agent's process over pipes: own group, explicit environment, death with its owner, nothing left behind.

The program is started by a holder (`death`) and behind a gate: forked, with its process group written down, before it becomes
the program, so there is no moment in which an agent runs unknown. If the owner dies before it opens the gate, the
program never runs.
"""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, cast

from trunkline_agentkit.agent_process import AgentProcess, Exit, Register, Registration, gone
from trunkline_agentkit.death import Leash, end_strays, holder_environment
from trunkline_agentkit.environment import INCARNATION_MARK, SESSION_MARK
from trunkline_agentkit.framing import LineSplitter, frame
from trunkline_agentkit.output import AFTER_EXIT_S, Output
from trunkline_agentkit.recorder import Recorder, Speaker
from trunkline_agentkit.sweep import end_family, end_group, start_time
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

STDERR_TAIL: Final = 64 * 1024
_STDOUT: Final = 1
_CHUNK: Final = 256 * 1024
_LIMIT: Final = 1024 * 1024
_TERM_GRACE: Final = 5.0
_HOLDER_GRACE: Final = 12.0


class _Piped(AgentProcess):
    """An agent that ends with its worker. Made by `start_process`."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        transport: asyncio.SubprocessTransport,
        ended: asyncio.Future[None],
        output: Output,
        registration: Registration,
        leash: Leash,
        *,
        marks: Mapping[str, str],
        recorder: Recorder | None,
    ) -> None:
        self._process = process
        self._transport = transport
        self._output = output
        self.registration = registration
        self._leash = leash
        self._marks = marks
        self._recorder = recorder
        self._writing = asyncio.Lock()
        self._closing = asyncio.Lock()
        self._exit: Exit | None = None
        self._tail = bytearray()
        self._ended = ended
        self._stderr = asyncio.create_task(self._read_stderr(), name=f"stderr of {registration.pid}")

    @property
    def running(self) -> bool:
        return not self._ended.done()

    @property
    def stderr_tail(self) -> str:
        return self._tail.decode(errors="replace")

    async def lines(self) -> AsyncIterator[bytes]:
        splitter = LineSplitter()
        while chunk := await self._output.read():
            for line in splitter.feed(chunk):
                self.record("agent", line)
                yield line
        for line in splitter.end():
            self.record("agent", line)
            yield line

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self._output.read():
            yield chunk

    def read_ahead(self, limit: int) -> None:
        """Lets at most about `limit` bytes wait to be read here (2 MB without it): what waits comes late."""
        self._output.limit = limit

    def open_gate(self) -> None:
        """Lets the program run, once it is registered."""
        self._leash.open_gate()

    def taken(self) -> None:
        """It is never taken up by another worker."""

    def note(self, message: object) -> None:
        """Likewise."""

    def put_line(self, message: object) -> None:
        line = frame(message)
        stdin = self._process.stdin
        if stdin is None or stdin.is_closing() or not self.running:
            raise self._gone()
        stdin.write(line)
        self.record("host", line[:-1])

    async def drain(self) -> None:
        stdin = self._process.stdin
        if stdin is None:
            raise self._gone()
        try:
            async with self._writing:
                await stdin.drain()
        except OSError as error:
            raise self._gone() from error

    def close_input(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    def signal_group(self, number: signal.Signals) -> None:
        if self.running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.registration.pgid, number)

    def kill(self) -> None:
        self.signal_group(signal.SIGKILL)
        self._leash.let_go()

    async def wait(self) -> int:
        await asyncio.shield(self._ended)
        return self._process.returncode or 0

    async def close(self, grace: float = 5.0) -> Exit:
        ending = asyncio.ensure_future(self._close_once(grace))
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise

    async def _close_once(self, grace: float) -> Exit:
        async with self._closing:
            if self._exit is None:
                self._exit = await self._end(grace)
            return self._exit

    async def _end(self, grace: float) -> Exit:
        self.close_input()
        if self.running and not await self._ended_within(grace):
            self.signal_group(signal.SIGTERM)
            await self._ended_within(_TERM_GRACE)
        self._leash.let_go()
        if not await self._ended_within(_HOLDER_GRACE):
            with contextlib.suppress(ProcessLookupError):
                self._transport.kill()
            await self._ended_within(_TERM_GRACE)
        # Whoever else took its exit status would leave us waiting for ever.
        code = await self.wait() if self._ended.done() else -signal.SIGKILL
        # The holder has left nothing; these find what is there if the holder itself was killed.
        if code == -signal.SIGKILL:
            await end_strays()
        await end_group(self.registration.pgid, self.registration.started, self._marks)
        await end_family(self._marks)
        await self._end_stderr()
        self._transport.close()
        result = Exit(
            code=code if code >= 0 else None, signal=-code if code < 0 else None, stderr_tail=self.stderr_tail
        )
        if self._recorder is not None:
            self._recorder.note("exit", {"code": result.code, "signal": result.signal})
            self._recorder.close()
            self._recorder = None
        log.info("agent_ended", extra={"pid": self.pid, "exit_code": result.code, "signal": result.signal})
        return result

    async def _ended_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._ended)
        except TimeoutError:
            return False
        return True

    async def _read_stderr(self) -> None:
        stderr = self._process.stderr
        if stderr is None:
            return
        while chunk := await stderr.read(_CHUNK):
            self._tail += chunk
            del self._tail[:-STDERR_TAIL]
            self.record("stderr", chunk.rstrip(b"\n"))

    async def _end_stderr(self) -> None:
        # A descendant may hold this pipe too.
        await asyncio.wait({self._stderr}, timeout=AFTER_EXIT_S)
        self._stderr.cancel()
        await asyncio.gather(self._stderr, return_exceptions=True)

    def record(self, speaker: Speaker, line: bytes) -> None:
        if self._recorder is not None:
            self._recorder.line(speaker, line)

    def _gone(self) -> TrunklineError:
        return gone(self._process.returncode)


class _Protocol(asyncio.subprocess.SubprocessStreamProtocol):
    """Knows of the program's end when it ends; asyncio's own `wait` waits for its pipes too, which descendants may hold."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=_LIMIT, loop=loop)
        self.ended: asyncio.Future[None] = loop.create_future()
        self.output = Output()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # uvloop's transport is of no class of asyncio's.
        pipe = cast("asyncio.SubprocessTransport", transport).get_pipe_transport(_STDOUT)
        self.output.pipe = cast("asyncio.ReadTransport", pipe)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if fd == _STDOUT and isinstance(data, bytes):
            self.output.feed(data)
        else:
            super().pipe_data_received(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == _STDOUT:
            self.output.end()
        super().pipe_connection_lost(fd, exc)

    def process_exited(self) -> None:
        super().process_exited()
        self.output.exited()
        if not self.ended.done():
            self.ended.set_result(None)


async def find(program: str, cwd: str, environment: Mapping[str, str]) -> str:
    """The path of a program that is to run in `cwd`. Raises TrunklineError `agent_not_found` or `bad_directory`."""
    path = shutil.which(program, path=environment.get("PATH", os.defpath))
    if path is None:
        raise TrunklineError(
            "agent_not_found", f"program {program!r} is not on the PATH of the worker: install it there"
        )
    if not await asyncio.to_thread(os.access, cwd, os.X_OK):
        raise TrunklineError("bad_directory", f"directory {cwd!r} does not exist or can't be entered")
    return path


async def start_process(
    argv: Sequence[str],
    *,
    cwd: str,
    environment: Mapping[str, str],
    marks: Sequence[str] = (SESSION_MARK, INCARNATION_MARK),
    inherit: Sequence[int] = (),
    recorder: Recorder | None = None,
    register: Register | None = None,
) -> AgentProcess:
    """Starts a program in a group of its own, with just `environment` and the file descriptors `inherit`.

    `register` is awaited before the program runs: what it writes down then holds for any later moment. `marks` names the
    variables of `environment` by which descendants are found.
    Raises TrunklineError `agent_not_found` or `bad_directory`.
    """
    program = await find(argv[0], cwd, environment)
    loop = asyncio.get_running_loop()
    leash = Leash()
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(loop),
            *leash.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env=holder_environment(),
            start_new_session=True,
            pass_fds=(leash.descriptor, *inherit),
        )
    except BaseException:
        leash.let_go()
        raise
    process = asyncio.subprocess.Process(transport, protocol, loop)
    try:
        pid = await leash.give((program, *argv[1:]), environment)
    except BaseException:
        leash.let_go()
        await protocol.ended
        transport.close()
        raise
    registration = Registration(
        pid=pid,
        pgid=pid,
        started=start_time(pid) or time.time(),
        argv=(program, *argv[1:]),
        holder=(process.pid, start_time(process.pid) or time.time()),
    )
    agent = _Piped(
        process,
        transport,
        protocol.ended,
        protocol.output,
        registration,
        leash,
        marks={name: environment[name] for name in marks if name in environment},
        recorder=recorder,
    )
    try:
        if register is not None:
            await register(registration)
    except BaseException:
        await agent.close(grace=0)
        raise
    agent.open_gate()
    log.info("agent_started", extra={"pid": pid})
    return agent
