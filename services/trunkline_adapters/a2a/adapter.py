"""The A2A adapter: finds an agent by the address of its server, and makes sessions with it. It starts no server."""

from typing import Final

import msgspec

from trunkline_adapters.a2a.link import Link
from trunkline_adapters.a2a.session import A2aSession
from trunkline_adapters.a2a.translate import A2aTranslator
from trunkline_agentkit import Context, Installed, Start, load_manifest, refuse_options
from trunkline_agentkit.agents import Agent
from trunkline_agentkit.fields import as_obj, obj, truth
from trunkline_wire import TrunklineError, decode_json
from trunkline_wire.session import Capabilities

CAPABILITIES: Final = Capabilities(
    streaming=True,
    interrupt=True,
    resume=True,
    permissions=True,
    options=("resume_native",),
)
"""What A2A agents can do at best; the card says whether one streams."""


class A2aAdapter:
    name = "a2a"
    capabilities = CAPABILITIES

    def __init__(self, source: object = None) -> None:
        del source  # it starts no program
        self.manifest = load_manifest("trunkline_adapters.a2a")

    def translator(self, context: Context) -> A2aTranslator:
        return A2aTranslator(context, CAPABILITIES)

    async def create(self, start: Start) -> A2aSession:
        return await self._open(start)

    async def resume(self, start: Start) -> A2aSession:
        return await self._open(start)

    async def probe(self) -> Installed:
        raise TrunklineError(
            "agent_not_found", f"an A2A agent is no program that could be found: {self.manifest.install}"
        )

    async def agents(self) -> list[Agent]:
        """None is known by a name."""
        return []

    async def close(self) -> None:
        pass

    async def _open(self, start: Start) -> A2aSession:
        refuse_options(self, start.options)
        if start.fork:
            raise TrunklineError("unsupported", "A2A has no word for a copy of a task", capability="fork")
        if start.agent is None:
            raise TrunklineError("bad_params", "which A2A agent? name the address of its server with `--agent`")
        link = Link(start.agent)
        try:
            await link.record(start.recorder)
            card = await link.card()
            streaming = truth(obj(as_obj(decode_json(card)), "capabilities"), "streaming")
            able = msgspec.structs.replace(CAPABILITIES, streaming=streaming)
            session = A2aSession(link, A2aTranslator(start.context, able), start, streaming=streaming)
            await session.open(card)
        except BaseException:
            await link.close()
            raise
        return session
