"""Where the real Codex runs in tests: its home, its configuration, a project and a scripted model API."""

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.contract.running import Running

from trunkline_adapters.codex.adapter import CodexAdapter
from trunkline_agentkit import local_start
from trunkline_testkit import eventually, processes
from trunkline_testkit.agents import agent_env
from trunkline_testkit.model_api import ScriptedApi
from trunkline_wire.asks import AskDecided
from trunkline_wire.session import SessionOptions
from trunkline_wire.work import NativeMessage

ESCALATED = 'INPUT={"sandbox_permissions":"require_escalated","justification":"please"}'
"""Makes the scripted model ask for a command outside of the sandbox."""
CONFIG = """
model = "{model}"
model_provider = "scripted"
check_for_update_on_startup = false
approval_policy = "on-request"
sandbox_mode = "workspace-write"
[model_providers.scripted]
name = "Scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
requires_openai_auth = {auth}
request_max_retries = 1
stream_max_retries = 1
[analytics]
enabled = false
[feedback]
enabled = false
[features]
default_mode_request_user_input = true
"""


def codex_source(
    home: Path, api_url: str, program: Path, *, model: str = "scripted", auth: str = "false"
) -> dict[str, str]:
    """The environment of a Codex whose only model is the scripted one; its home is below `home`."""
    own = home / ".codex"
    own.mkdir(parents=True, exist_ok=True)
    (own / "config.toml").write_text(CONFIG.format(model=model, url=api_url, auth=auth))
    return agent_env(
        home, api_url, CODEX_HOME=str(own), OPENAI_API_KEY="scripted", TRUNKLINE_PROGRAM_CODEX=str(program)
    )


@asynccontextmanager
async def app_server(program: Path, source: dict[str, str], cwd: Path, *arguments: str) -> AsyncGenerator[Process]:
    """A `codex app-server` that runs by itself, until the block ends; it answers when the block begins."""
    address = arguments[arguments.index("--listen") + 1]
    own = {name: value for name, value in source.items() if not name.startswith("TRUNKLINE_")}
    process = await asyncio.create_subprocess_exec(
        program,
        "app-server",
        *arguments,
        env=own,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await eventually(partial(_listens, address), 30)
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            # With a turn that runs it waits for its end, a minute at most.
            await asyncio.wait_for(process.wait(), 5)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _listens(address: str) -> bool:
    parts = urlsplit(address)
    try:
        if parts.scheme == "unix":
            _, writer = await asyncio.open_unix_connection(parts.path)
        else:
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except OSError:
        return False
    writer.close()
    return True


class Bench:
    """A home, a project and a scripted API, in which sessions of the real CLI run. `made` gives one, and looks what is left."""

    def __init__(self, home: Path, project: Path, api: ScriptedApi, program: Path) -> None:
        self.home = home
        self.project = project
        self.api = api
        self.program = program
        self.source = codex_source(home, api.url, program)
        self.adapter = CodexAdapter(self.source)

    @classmethod
    @asynccontextmanager
    async def made(cls, tmp_path: Path, api: ScriptedApi, program: Path) -> AsyncGenerator["Bench"]:
        """A bench below `tmp_path`. Nothing may be left at its end that was started with its home: no server, no run."""
        project = tmp_path / "project"
        project.mkdir()
        bench = cls(tmp_path / "home", project, api, program)
        yield bench
        await processes.assert_no_orphans("CODEX_HOME", bench.source["CODEX_HOME"])

    @asynccontextmanager
    async def session(
        self, thread: str | None = None, *, fork: bool = False, **options: Any
    ) -> AsyncGenerator[Running[Any]]:
        start = local_start(
            self.adapter,
            self.project,
            source=self.source,
            options=SessionOptions(**options),
            native_session=thread,
            fork=fork,
        )
        begin = self.adapter.create if thread is None else self.adapter.resume
        agent = Running(await begin(start))
        reading = asyncio.create_task(agent.read())
        try:
            yield agent
        finally:
            await agent.session.close(grace=3)
            await reading
            drifted = [data.kind for data in agent.all(NativeMessage) if not data.known]
            assert drifted == [], "the translator knows every message that Codex sends"


def allow(ask: str, **fields: Any) -> AskDecided:
    return AskDecided(ask=ask, behaviour="allow", by="someone", **fields)
