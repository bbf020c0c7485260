"""Programs that have only a terminal, and agents in theirs: `just matrix aider`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from tests.live.matrix.rows import CRASH, PROMPTS, Row

from trunkline_agentkit.contract import More
from trunkline_testkit.offline import KEY
from trunkline_wire.session import SessionOptions

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(400)]

SCREEN: Mapping[Any, str] = {
    "crash": CRASH,
    "question": "a dialog with text to type is told as no question",
    "tool": "a screen shows what a program does, and not where a tool begins and ends",
    "change": "a dialog takes keys, no other input",
    "plan": "a screen shows no plan as such",
    "streaming": "a terminal writes over what it has written: its screen is streamed, not a text",
    "second": "prompts wait in Trunkline while it works",
    "resume": "it begins anew with each start",
}
"""What no program can do through its screen."""
LARGE: Mapping[Any, str] = {**PROMPTS, "huge": "SCENARIO=huge BYTES=300000"}
"""They draw each character of it, some several times."""


class TerminalRow(Row):
    """`hold`: what keeps the program."""

    adapter_name = "pty"
    hold: ClassVar[Literal["child", "tmux"]] = "child"
    tool_output = None
    huge_size = 200_000
    trouble_patience = 60.0  # they take long to start
    prompts: ClassVar[Mapping[Any, str]] = LARGE
    exempt: ClassVar[Mapping[Any, str]] = SCREEN

    def options(self) -> SessionOptions:
        return SessionOptions(mode=self.mode, native=self.native_options, hold=self.hold)


class TestAider(TerminalRow):
    agent = profile = "aider"
    recovers: ClassVar[Sequence[More]] = ("drop",)
    # A file, as it takes them from what its model says.
    prompts: ClassVar[Mapping[Any, str]] = {
        **LARGE,
        "ask": r'SAY="Here it is.\n\nasked\n```\nmade\n```\n"',
    }


class TestAiderInTmux(TestAider):
    row = "aider-tmux"
    hold = "tmux"


class TestGeminiTerminal(TerminalRow):
    row = "gemini-terminal"
    agent = profile = "gemini"
    huge_size = 50_000  # it draws the whole answer anew with each piece of it
    prompts: ClassVar[Mapping[Any, str]] = {**PROMPTS, "huge": "SCENARIO=huge BYTES=60000"}


class TestClaudeTerminal(TerminalRow):
    row = "claude-terminal"
    agent = profile = "claude"
    native_options: ClassVar[dict[str, Any]] = {"command": ["claude", "--permission-mode", "default"]}

    @pytest.fixture(autouse=True)
    def _begun_before(self, _bench: None, tmp_path: Path) -> None:
        """What it asks at its first start is tested apart."""
        answered = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [KEY], "rejected": []},
            "projects": {str(tmp_path): {"hasTrustDialogAccepted": True}},
        }
        (self.home / ".claude.json").write_text(json.dumps(answered))


class TestCodexTerminal(TerminalRow):
    row = "codex-terminal"
    agent = profile = "codex"
    trouble_patience = 90.0
    litter: ClassVar[Sequence[str]] = ("codex-daemon-*",)
    # Unasked it runs what changes nothing but the project.
    prompts: ClassVar[Mapping[Any, str]] = {**LARGE, "ask": "SCENARIO=bash CMD=rm -rf nothing; touch asked"}
