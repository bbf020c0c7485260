"""Where the real OpenCode, or what is made of it, runs in tests: its home, a project and a scripted model API."""

import asyncio
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.contract.running import Running

from trunkline_adapters.opencode.adapter import OpenCodeAdapter
from trunkline_agentkit import local_start
from trunkline_testkit import processes
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.offline import offline_env
from trunkline_wire.asks import AskDecided
from trunkline_wire.session import SessionOptions
from trunkline_wire.work import NativeMessage

PATIENCE = 120.0
"""Seconds that one step may take: the program is slow to begin."""


class Bench:
    """A home, a project (a repository of git, so that files can be put back) and a scripted API."""

    def __init__(self, base: Path, api: ScriptedApi, agent: str = "opencode") -> None:
        self.agent = agent
        base = base.resolve()
        self.home = base / "home"
        self.project = base / "project"
        self.api = api
        self.project.mkdir(parents=True)
        self.source = offline_env(agent, self.home, api.url)
        self.adapter = OpenCodeAdapter(self.source)
        for words in (
            ["init", "-q"],
            ["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qm", "x", "--allow-empty"],
        ):
            subprocess.run(["git", *words], cwd=self.project, check=True, env={**self.source, "HOME": str(base)})

    @asynccontextmanager
    async def session(
        self, taken_up: str | None = None, *, fork: bool = False, recording: Path | None = None, **options: Any
    ) -> AsyncGenerator[Running[Any]]:
        start = local_start(
            self.adapter,
            self.project,
            source=self.source,
            options=SessionOptions(**options),
            agent=self.agent,
            native_session=taken_up,
            fork=fork,
            recording=recording,
        )
        begin = self.adapter.create if taken_up is None else self.adapter.resume
        agent = Running(await begin(start))
        reading = asyncio.create_task(agent.read())
        try:
            yield agent
        finally:
            await agent.session.close(grace=3)
            await reading
            drifted = [data.kind for data in agent.all(NativeMessage) if not data.known]
            assert drifted == [], "the translator knows every message that the server sends"

    def left(self) -> list[str]:
        """The command lines of all that still runs with this home; it is ended."""
        found = processes.marked("HOME", str(self.home))
        processes.kill_all(found)
        return [info.command[:120] for info in found]


def allow(ask: str, **fields: Any) -> AskDecided:
    return AskDecided(ask=ask, behaviour="allow", by="someone", **fields)
