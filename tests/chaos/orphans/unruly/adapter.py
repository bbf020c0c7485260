"""The demo adapter with the unruly agent. Found by entry point, as an adapter outside the tree is."""

from pathlib import Path

from trunkline_adapters.demo.adapter import DemoAdapter


class UnrulyAdapter(DemoAdapter):
    """The session's option `environment` must name a directory for its creatures: `{"UNRULY_DIR": path}`."""

    name = "unruly"
    program: tuple[str, ...] = (str(Path(__file__).with_name("agent.py")),)
