"""The headless adapter: finds an agent's program by the profile of its name, and makes sessions of it."""

import asyncio
import os
from collections.abc import Mapping
from typing import Final

import msgspec

from trunkline_adapters.headless import launch
from trunkline_adapters.headless.profiles import PROFILES
from trunkline_adapters.headless.session import HeadlessSession
from trunkline_adapters.headless.translate import HeadlessTranslator
from trunkline_agentkit import Context, Installed, Start, load_manifest, refuse_options
from trunkline_agentkit.agents import Agent
from trunkline_agentkit.profiles import profiled_program
from trunkline_wire import TrunklineError
from trunkline_wire.session import Capabilities

CAPABILITIES: Final = Capabilities(
    streaming=True,
    interrupt=True,
    resume=True,
    model_switching=True,
    mode_switching=True,
    cost_tracking=True,
    options=("model", "mode", "resume_native", "native"),
)
"""What headless agents can do at best; each session says in `session.initialized` what its agent can. None of them asks."""


class HeadlessAdapter:
    """`source` is the environment in which programs and variables are looked up (the worker's by default)."""

    name = "headless"
    capabilities = CAPABILITIES

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self.manifest = load_manifest("trunkline_adapters.headless")
        self._given = source

    @property
    def _source(self) -> Mapping[str, str]:
        return os.environ if self._given is None else self._given

    def translator(self, context: Context) -> HeadlessTranslator:
        return HeadlessTranslator(context)

    async def create(self, start: Start) -> HeadlessSession:
        return await self._start(start)

    async def resume(self, start: Start) -> HeadlessSession:
        return await self._start(start)

    async def probe(self) -> Installed:
        """The first agent that is installed, of those with a profile."""
        return PROFILES.probe(self.manifest, self._source)

    async def agents(self) -> list[Agent]:
        """One a profile."""
        return PROFILES.agents(self.manifest, self._source)

    async def close(self) -> None:
        pass

    async def _start(self, start: Start) -> HeadlessSession:
        """Nothing runs before the first prompt: what can be known of its trouble is said here."""
        refuse_options(self, start.options)
        chosen = launch.choose(start, self._source)
        path = profiled_program(self.manifest, start.agent, chosen, self._source)
        if not await asyncio.to_thread(os.access, start.cwd, os.X_OK):
            raise TrunklineError("bad_directory", f"directory {start.cwd!r} does not exist or can't be entered")
        start = msgspec.structs.replace(start, environment=launch.environment(start, chosen, self._source))
        return HeadlessSession(start, chosen, path)
