"""Claude Code: `just matrix claude`."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
from tests.live.matrix.rows import PLANNING, Row

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(300)]


class TestClaude(Row):
    adapter_name = "claude"
    agent = "claude"
    smoke = True
    litter: ClassVar[Sequence[str]] = ("cc-socks*", "cc-socks*/*")
    trouble_patience = 5.0
    prompts: ClassVar[Mapping[Any, str]] = PLANNING
    modes: ClassVar[Mapping[Any, str]] = {"plan": "plan"}
    changed_input: ClassVar[Mapping[str, Any]] = {"command": "touch changed"}

    @pytest.fixture(autouse=True)
    def _installed(self, claude_program: object) -> None:
        """Skips or fails where the program is missing, as all live tests do."""
