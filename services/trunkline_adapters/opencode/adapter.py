"""The OpenCode adapter: finds the program of an agent's profile, or a server that runs already, and starts sessions of it."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from trunkline_adapters.opencode import launch, store
from trunkline_adapters.opencode.history import OpenCodeHistory
from trunkline_adapters.opencode.profiles import DEFAULT, PROFILES, Profile
from trunkline_adapters.opencode.server import OwnServer, Server, SharedServer, new_password
from trunkline_adapters.opencode.session import OpenCodeSession
from trunkline_adapters.opencode.translate import OpenCodeTranslator
from trunkline_agentkit import Context, Installed, Start, load_manifest, refuse_options
from trunkline_agentkit.agents import Agent
from trunkline_agentkit.environment import ALWAYS, named_variables
from trunkline_agentkit.history import HistoryFile, Line
from trunkline_agentkit.own_terminal import OwnTerminal
from trunkline_agentkit.profiles import profiled_program
from trunkline_wire.session import Capabilities, SessionOptions

CAPABILITIES: Final = Capabilities(
    streaming=True,
    interrupt=True,
    resume=True,
    fork=True,
    rewind=True,
    model_switching=True,
    mode_switching=True,
    thinking=True,
    slash_commands=True,
    mcp=True,
    structured_output=True,
    image_input=True,
    file_checkpointing=True,
    cost_tracking=True,
    permissions=True,
    questions=True,
    steering=True,
    compaction=True,
    terminal=True,
    native_protocol=True,
    options=(
        "model",
        "mode",
        "thinking",
        "append_system_prompt",
        "disallowed_tools",
        "mcp_servers",
        "output_schema",
        "resume_native",
        "native",
    ),
)


class OpenCodeAdapter:
    """`source` is the environment in which programs and variables are looked up (the worker's by default)."""

    name = "opencode"
    capabilities = CAPABILITIES

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self.manifest = load_manifest("trunkline_adapters.opencode")
        self._given = source
        self._stores: dict[str, store.Store] = {}

    @property
    def _source(self) -> Mapping[str, str]:
        return os.environ if self._given is None else self._given

    def translator(self, context: Context) -> OpenCodeTranslator:
        return OpenCodeTranslator(context, CAPABILITIES)

    async def create(self, start: Start) -> OpenCodeSession:
        return await self._start(start)

    async def resume(self, start: Start) -> OpenCodeSession:
        return await self._start(start)

    def outlives(self, options: SessionOptions) -> bool:
        """A server that is not ours runs on, and the turn on it."""
        return options.native.get("server") is not None

    async def terminal(self, start: Start) -> OwnTerminal:
        chosen = PROFILES.get(start.agent or DEFAULT, self._source)
        arguments = launch.terminal_arguments(start, chosen)
        path = profiled_program(self.manifest, start.agent or DEFAULT, chosen, self._source)
        environment = {**named_variables(chosen.variables, self._source), **chosen.environment}
        return OwnTerminal(profile=chosen.terminal, command=(path, *arguments), environment=environment)

    async def probe(self) -> Installed:
        """The first agent that is installed, of those with a profile."""
        return PROFILES.probe(self.manifest, self._source)

    async def agents(self) -> list[Agent]:
        """One a profile."""
        return PROFILES.agents(self.manifest, self._source)

    @property
    def history_agents(self) -> tuple[str, ...]:
        return tuple(sorted(PROFILES.all(self._source)))

    def histories(self, agent: str | None = None) -> list[HistoryFile]:
        """Of the programs that keep data here. Blocking. Raises TrunklineError."""
        known = PROFILES.all(self._source)
        return [
            file
            for name in self.history_agents
            if agent in (None, name) and store.directory(known[name], self._source).is_dir()
            for file in self._store(name).sessions(name)
        ]

    def history_lines(self, file: HistoryFile) -> Iterator[Line]:
        return self._store(file.agent or DEFAULT).lines(file.native)

    def history_translator(self, context: Context) -> OpenCodeHistory:
        return OpenCodeHistory(context)

    def _store(self, name: str) -> store.Store:
        if name not in self._stores:
            chosen = PROFILES.get(name, self._source)
            path = profiled_program(self.manifest, name, chosen, self._source)
            variables = named_variables((*ALWAYS, *self.manifest.variables, *chosen.variables), self._source)
            environment = {**variables, **chosen.environment}
            data = store.directory(chosen, self._source)
            self._stores[name] = store.Store(path, chosen, environment, data)
        return self._stores[name]

    async def close(self) -> None:
        while self._stores:
            await asyncio.to_thread(self._stores.popitem()[1].close)

    async def _start(self, start: Start) -> OpenCodeSession:
        refuse_options(self, start.options)
        launch.check(start.options)
        chosen = PROFILES.get(start.agent or DEFAULT, self._source)
        attempts = start.options.native.get("attempts", launch.ATTEMPTS)
        native = start.options.native
        address = native.get("server")
        join = None
        if address is not None:
            join = launch.join(chosen, address, start.cwd, native.get("user"), native.get("password_file"))
        able = msgspec.structs.replace(CAPABILITIES, terminal=bool(chosen.terminal) and address is None)
        translator = OpenCodeTranslator(start.context, able, chosen, attempts, join=join)
        session = OpenCodeSession(start, await self._server(start, chosen), translator, chosen)
        await session.open()
        return session

    async def _server(self, start: Start, chosen: Profile) -> Server:
        native = start.options.native
        address = native.get("server")
        if address is None:
            path = profiled_program(self.manifest, start.agent or DEFAULT, chosen, self._source)
            password = new_password()
            environment = launch.environment(start, chosen, password, self._source)
            return OwnServer(start, path, chosen, password, environment)
        file = native.get("password_file")
        launch.check_address(address, secret=file is not None)
        password = None if file is None else await asyncio.to_thread(launch.read_password, file)
        return SharedServer(start, chosen, address, native.get("user"), password)
