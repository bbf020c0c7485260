"""The pty adapter: finds a program by the profile of its name, or takes any command, and runs it in a terminal."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from trunkline_adapters.pty import cast, launch
from trunkline_adapters.pty.profiles import PROFILES
from trunkline_adapters.pty.session import PtySession
from trunkline_adapters.pty.translate import PtyTranslator
from trunkline_agentkit import Context, Installed, Start, load_manifest, refuse_options
from trunkline_agentkit.agents import Agent
from trunkline_agentkit.profiles import profiled_program
from trunkline_agentkit.recorder import Recorded, read_recording
from trunkline_wire.session import Capabilities

CAPABILITIES: Final = Capabilities(
    interrupt=True,
    permissions=True,
    heuristic=("turns", "interrupt", "permissions"),
    options=("model", "native"),
)
"""What terminal programs can do at best; each session says in `session.initialized` what its profile knows of."""


class PtyAdapter:
    """`source` is the environment in which programs and variables are looked up (the worker's by default)."""

    name = "pty"
    capabilities = CAPABILITIES

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self.manifest = load_manifest("trunkline_adapters.pty")
        self._given = source

    @property
    def _source(self) -> Mapping[str, str]:
        return os.environ if self._given is None else self._given

    def translator(self, context: Context) -> PtyTranslator:
        return PtyTranslator(context, source=self._source)

    def recorded(self, path: Path) -> list[Recorded]:
        """An asciinema recording, or one of the kit's."""
        with path.open("rb") as file:
            if cast.is_cast(file.readline()):
                file.seek(0)
                return list(cast.recorded(file))
        return read_recording(path)

    async def create(self, start: Start) -> PtySession:
        refuse_options(self, start.options)
        source = self._source
        chosen = launch.choose(start, source)
        path = profiled_program(self.manifest, start.agent, chosen, source)
        columns, rows = launch.size(start.options.native)
        argv = launch.arguments(path, chosen, start.options.model)
        process = await start.launch(
            launch.bridged(argv, columns, rows), environment=launch.environment(start, chosen, source)
        )
        return PtySession(start, chosen, process, PtyTranslator(start.context, chosen, source))

    async def resume(self, start: Start) -> PtySession:
        """Begins anew: a terminal's program keeps nothing that could be taken up."""
        return await self.create(msgspec.structs.replace(start, native_session=None))

    async def probe(self) -> Installed:
        """The first program that is installed, of those with a profile."""
        return PROFILES.probe(self.manifest, self._source)

    async def agents(self) -> list[Agent]:
        """One a profile."""
        return PROFILES.agents(self.manifest, self._source)

    async def close(self) -> None:
        pass
