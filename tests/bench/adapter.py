"""The demo adapter with the agent that tells the time. Found by entry point, as an adapter outside the tree is."""

import sys

from trunkline_adapters.demo.adapter import DemoAdapter
from trunkline_adapters.demo.session import DemoSession
from trunkline_agentkit import Start


class BenchAdapter(DemoAdapter):
    name = "bench"

    async def create(self, start: Start) -> DemoSession:
        process = await start.launch([sys.executable, "-m", "tests.bench.agent"])
        await process.write_line({"type": "hello"})
        return DemoSession(process, self.translator(start.context))
