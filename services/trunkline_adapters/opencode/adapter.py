"""The OpenCode adapter: finds the program of an agent's profile, or a server that runs already, and starts sessions of it."""

import asyncio
import os
from collections.abc import Mapping
from typing import Final

from trunkline_adapters.opencode import launch
from trunkline_adapters.opencode.profiles import DEFAULT, DIRECTORY_VARIABLE, Profile, profile, profiles
from trunkline_adapters.opencode.server import OwnServer, Server, SharedServer, new_password
from trunkline_adapters.opencode.session import OpenCodeSession
from trunkline_adapters.opencode.translate import OpenCodeTranslator
from trunkline_agentkit import Context, Installed, Start, load_manifest, refuse_options
from trunkline_agentkit.agents import Agent, profiled_agents
from trunkline_wire import TrunklineError
from trunkline_wire.session import Capabilities

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
_DEADLINE: Final = 30.0


class OpenCodeAdapter:
    """`source` is the environment in which programs and variables are looked up (the worker's by default)."""

    name = "opencode"
    capabilities = CAPABILITIES

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self.manifest = load_manifest("trunkline_adapters.opencode")
        self._given = source

    @property
    def _source(self) -> Mapping[str, str]:
        return os.environ if self._given is None else self._given

    def translator(self, context: Context) -> OpenCodeTranslator:
        return OpenCodeTranslator(context, CAPABILITIES)

    async def create(self, start: Start) -> OpenCodeSession:
        return await self._start(start)

    async def resume(self, start: Start) -> OpenCodeSession:
        return await self._start(start)

    async def probe(self) -> Installed:
        """The default agent's program, or the first of another that is installed."""
        missing: TrunklineError | None = None
        known = profiles(self._source.get(DIRECTORY_VARIABLE))
        for name in sorted(known, key=lambda one: one != DEFAULT):
            try:
                path = launch.program(name, known[name], self.manifest, self._source)
            except TrunklineError as error:
                missing = missing or error
                continue
            return Installed(path=path, version=await _version(path, self._source))
        raise missing or TrunklineError("agent_not_found", "there is no profile of an agent", adapter=self.name)

    async def agents(self) -> list[Agent]:
        """One a profile."""
        source = self._source
        return profiled_agents(
            profiles(source.get(DIRECTORY_VARIABLE)),
            lambda name, profile: launch.program(name, profile, self.manifest, source),
            source,
        )

    async def close(self) -> None:
        pass

    async def _start(self, start: Start) -> OpenCodeSession:
        refuse_options(self, start.options)
        launch.check(start.options)
        chosen = profile(start.agent, self._source)
        attempts = start.options.native.get("attempts", launch.ATTEMPTS)
        translator = OpenCodeTranslator(start.context, CAPABILITIES, chosen, attempts)
        session = OpenCodeSession(start, await self._server(start, chosen), translator, chosen)
        await session.open()
        return session

    async def _server(self, start: Start, chosen: Profile) -> Server:
        native = start.options.native
        address = native.get("server")
        if address is None:
            path = launch.program(start.agent, chosen, self.manifest, self._source)
            password = new_password()
            environment = launch.environment(start, chosen, password, self._source)
            return OwnServer(start, path, chosen, password, environment)
        file = native.get("password_file")
        launch.check_address(address, secret=file is not None)
        password = None if file is None else await asyncio.to_thread(launch.read_password, file)
        return SharedServer(start, chosen, address, native.get("user"), password)


async def _version(path: str, source: Mapping[str, str]) -> str | None:
    """What `--version` prints; None where it fails or takes too long."""
    process = await asyncio.create_subprocess_exec(
        path,
        "--version",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: source[name] for name in ("PATH", "HOME", "TMPDIR") if name in source},
    )
    try:
        async with asyncio.timeout(_DEADLINE):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return None
    words = output.decode(errors="replace").split()
    return words[-1] if words and process.returncode == 0 else None
