"""The adapter for Claude's Agent SDK: the SDK's client in this process, with the CLI that it brings."""

import asyncio
import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from trunkline_adapters.claude import hooks, launch
from trunkline_adapters.claude.adapter import CAPABILITIES as OF_THE_CLI
from trunkline_adapters.claude.team_mail import TeamMail
from trunkline_adapters.claude.translate import ClaudeTranslator
from trunkline_adapters.claude_sdk import sdk as sdk_module
from trunkline_adapters.claude_sdk.sdk import SdkLink
from trunkline_adapters.claude_sdk.session import ClaudeSdkSession, Decisions
from trunkline_agentkit import Context, Installed, Start, load_manifest, refuse_options, unsupported
from trunkline_wire import TrunklineError

CAPABILITIES: Final = msgspec.structs.replace(OF_THE_CLI, terminal=False)
CLI_VARIABLE: Final = "TRUNKLINE_CLAUDE_SDK_CLI"
"""A CLI to run instead of the SDK's own."""
_SAID_BY_SDK: Final = {"CLAUDE_CODE_ENTRYPOINT": "sdk-py"}


class ClaudeSdkAdapter:
    """`source` is the environment in which the SDK is looked up; `hooks` are the SDK's own, for sessions in your process.

    `hooks` maps a hook event to the SDK's `HookMatcher`s.
    """

    name = "claude-sdk"
    capabilities = CAPABILITIES

    def __init__(self, source: Mapping[str, str] | None = None, hooks: Mapping[str, Any] | None = None) -> None:
        self.manifest = load_manifest("trunkline_adapters.claude_sdk")
        self._source = source
        self._hooks = hooks

    def translator(self, context: Context) -> ClaudeTranslator:
        return ClaudeTranslator(context, CAPABILITIES)

    async def create(self, start: Start) -> ClaudeSdkSession:
        return await self._start(start)

    async def resume(self, start: Start) -> ClaudeSdkSession:
        if start.fork_at is not None:
            raise TrunklineError(
                "unsupported", "Claude Code forks a session only at its end: leave `at` out", capability="fork"
            )
        return await self._start(start)

    async def probe(self) -> Installed:
        sdk = await asyncio.to_thread(self._sdk)
        return Installed(path=self.program(sdk), version=sdk.__version__)

    async def close(self) -> None:
        pass

    def program(self, sdk: Any) -> str:
        """The CLI's path. Raises TrunklineError `agent_not_found`."""
        path = self._environment().get(CLI_VARIABLE) or str(sdk_module.bundled(sdk))
        if not os.access(path, os.X_OK):
            raise TrunklineError(
                "agent_not_found",
                f"there is no CLI at {path!r}: install a wheel of claude-agent-sdk for this platform, or name one in {CLI_VARIABLE}",
            )
        return path

    def _environment(self) -> Mapping[str, str]:
        return os.environ if self._source is None else self._source

    def _sdk(self) -> Any:
        return sdk_module.load(self._environment(), self.manifest.install)

    async def _start(self, start: Start) -> ClaudeSdkSession:
        refuse_options(self, start.options)
        launch.check(start.options)
        if "transport" in start.options.native:
            raise unsupported(
                "options", "native option 'transport' is the Claude adapter's: the SDK has a way of its own"
            )
        sdk = await asyncio.to_thread(self._sdk)
        path = self.program(sdk)
        start = msgspec.structs.replace(start, environment=_SAID_BY_SDK | launch.environment(start))
        files = await asyncio.to_thread(launch.write_files, start)
        named = [word for name, file in files.items() for word in (name, str(file))]
        try:
            process = await start.launch([path, *launch.arguments(start), *named], environment=start.environment)
        except BaseException:
            launch.remove_files(files.values())
            raise
        resumed = (start.native_session or start.options.resume_native) is not None
        translator = ClaudeTranslator(start.context, CAPABILITIES, resumed=resumed)
        decisions = Decisions(sdk)
        # The process is ours: its arguments and environment are, too.
        options = sdk.ClaudeAgentOptions(can_use_tool=decisions.can_use_tool, hooks=self._hooks)
        introduction = launch.initialize(start)
        link = SdkLink(sdk, options, process, introduction, translator.sent)
        mail = TeamMail(hooks.configuration(start.environment), link.pid)
        session = ClaudeSdkSession(link, translator, introduction, decisions, list(files.values()), mail=mail)
        await session.open(start.options.thinking)
        return session
