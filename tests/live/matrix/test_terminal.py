"""Programs that have only a terminal: `just matrix aider`."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
from tests.live.matrix.rows import CRASH, PROMPTS, Row

from trunkline_agentkit.contract import More

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(400)]


class TestAider(Row):
    adapter_name = "pty"
    agent = profile = "aider"
    tool_output = None
    huge_size = 200_000
    recovers: ClassVar[Sequence[More]] = ("drop",)
    prompts: ClassVar[Mapping[Any, str]] = {**PROMPTS, "huge": "SCENARIO=huge BYTES=300000"}
    exempt: ClassVar[Mapping[Any, str]] = {
        "crash": CRASH,
        "ask": "it offers its model no tools; what it asks itself is tested apart",
        "question": "a dialog with text to type is told as no question",
        "tool": "a screen shows what a program does, and not where a tool begins and ends",
        "change": "a dialog takes keys, no other input",
        "plan": "a screen shows no plan as such",
        "streaming": "a terminal writes over what it has written: its screen is streamed, not a text",
        "second": "prompts wait in Trunkline while it works",
        "resume": "it begins anew with each start",
    }
