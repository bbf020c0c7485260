"""An agent in this process, without a log: what a test, a script or a notebook needs."""

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from trunkline_agentkit.environment import build_environment, temporary_directory
from trunkline_agentkit.process import AgentProcess, start_process
from trunkline_agentkit.protocol import BackendAdapter, Start
from trunkline_agentkit.recorder import Recorder
from trunkline_wire.ids import new_session_id, uuid7_hex
from trunkline_wire.session import SessionOptions


def local_start(
    adapter: BackendAdapter,
    cwd: str | Path = ".",
    *,
    session: str | None = None,
    options: SessionOptions | None = None,
    agent: str | None = None,
    native_session: str | None = None,
    fork: bool = False,
    source: Mapping[str, str] | None = None,
    recording: Path | None = None,
    temporary: Path | None = None,
) -> Start:
    """A Start for `adapter.create` or `adapter.resume`. `source` is the environment to take from; `recording` a file to write.

    `temporary` is where the session's directory for temporary files is made, the system's own place by default.
    """
    session = session or new_session_id()
    options = options or SessionOptions()
    incarnation = uuid7_hex()
    directory = str(Path(cwd).resolve())
    environment = build_environment(
        adapter.manifest,
        options.environment,
        session=session,
        incarnation=incarnation,
        temporary=temporary_directory(session, temporary),
        source=source,
    )
    return Start(
        session=session,
        cwd=directory,
        incarnation=incarnation,
        environment=environment,
        launch=partial(_launch, directory, environment, recording),
        recorder=partial(_open_recorder, recording),
        options=options,
        agent=agent,
        native_session=native_session,
        fork=fork,
    )


async def _open_recorder(recording: Path | None) -> Recorder | None:
    return None if recording is None else Recorder(recording)


async def _launch(
    directory: str,
    complete: Mapping[str, str],
    recording: Path | None,
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> AgentProcess:
    with contextlib.ExitStack() as undo:
        recorder = await _open_recorder(recording)
        if recorder is not None:
            undo.callback(recorder.close)
        process = await start_process(
            argv, cwd=cwd or directory, environment=environment or complete, recorder=recorder
        )
        undo.pop_all()
    return process
