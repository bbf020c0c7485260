"""The demo adapter: starts `python -m trunkline_adapters.demo.agent`."""

import sys

from trunkline_adapters.demo.agent import VERSION
from trunkline_adapters.demo.session import DemoSession
from trunkline_adapters.demo.translate import CAPABILITIES, DemoTranslator
from trunkline_agentkit import Context, Installed, Start, load_manifest, refuse_options
from trunkline_wire.session import SessionOptions


class DemoAdapter:
    """Options: `model`, `mode`, and `native` {exit_at_start: code, new_id_on_resume: bool} for trying out failures."""

    name = "demo"
    capabilities = CAPABILITIES
    program: tuple[str, ...] = ("-m", "trunkline_adapters.demo.agent")
    """What this Python runs as the agent."""

    def __init__(self) -> None:
        self.manifest = load_manifest("trunkline_adapters.demo")

    def translator(self, context: Context) -> DemoTranslator:
        return DemoTranslator(context)

    def outlives(self, options: SessionOptions) -> bool:
        return options.hold == "detached"

    async def create(self, start: Start) -> DemoSession:
        return await self._start(start, [])

    async def resume(self, start: Start) -> DemoSession:
        arguments = ["--session", start.native_session or ""]
        if start.fork:
            arguments.append("--fork")
        elif start.options.native.get("new_id_on_resume"):
            arguments.append("--new-id")
        return await self._start(start, arguments)

    async def probe(self) -> Installed:
        return Installed(path=sys.executable, version=VERSION)

    async def close(self) -> None:
        pass

    async def _start(self, start: Start, arguments: list[str]) -> DemoSession:
        refuse_options(self, start.options)
        if (code := start.options.native.get("exit_at_start")) is not None:
            arguments = [*arguments, "--exit-at-start", str(int(code))]
        process = await start.launch([sys.executable, *self.program, *arguments])
        if start.survivor is not None:
            return DemoSession(process, self.translator(start.context), await process.said(), start.survivor)
        await process.write_line({"type": "hello"})
        if start.options.model is not None:
            await process.write_line({"type": "set", "model": start.options.model})
        if start.options.mode is not None:
            await process.write_line({"type": "set", "mode": start.options.mode})
        return DemoSession(process, self.translator(start.context))
