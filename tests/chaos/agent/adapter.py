"""The demo adapter with the agent that keeps a journal. Found by entry point, as an adapter outside the tree is."""

from pathlib import Path

from trunkline_adapters.demo.adapter import DemoAdapter


class ChaosAdapter(DemoAdapter):
    """The session's option `environment` must name the journal: `{"CHAOS_JOURNAL": path}`."""

    name = "chaos"
    program: tuple[str, ...] = (str(Path(__file__).with_name("agent.py")),)
