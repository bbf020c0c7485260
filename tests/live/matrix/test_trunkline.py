"""Trunkline through Trunkline: `trunkline acp` is the agent, an instance of its own that runs Claude Code: `just matrix trunkline`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.live.matrix.rows import CRASH, NO_CHANGE, AcpRow

from trunkline_testkit.agents import require

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(400)]

LAUNCHER = """\
#!/bin/sh
export TRUNKLINE_PROGRAM_CLAUDE='{claude}'
exec '{python}' -m trunkline_cli acp --up --home '{home}' --agent claude
"""


class TestTrunkline(AcpRow):
    """The inner instance ends with the session that it was started in, and its log is there for the next."""

    agent = "claude"
    row = "trunkline"
    profile = "trunkline"
    tool_output: ClassVar[str | None] = "it-ran"
    trouble_patience = 30.0
    exempt: ClassVar[Mapping[Any, str]] = {
        "crash": CRASH,
        "change": NO_CHANGE,
        "plan": "an agent's modes are known, and can be set, once it has started: with its first prompt",
    }

    @pytest.fixture(autouse=True)
    def _launched(self, _bench: None) -> None:
        launcher, inner = self.home / "trunkline-acp", self.home / "inner"
        launcher.write_text(LAUNCHER.format(claude=require("claude"), python=sys.executable, home=inner))
        launcher.chmod(0o755)
        profiles = str(Path(__file__).with_name("profiles"))
        self.environment |= {"TRUNKLINE_ACP_PROFILES": profiles, "TRUNKLINE_PROGRAM_ACP_TRUNKLINE": str(launcher)}
