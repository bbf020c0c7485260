"""All other agents: `just matrix gemini`."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from tests.live.matrix.rows import CRASH, NO_CHANGE, PROMPTS, AcpRow, Row

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(400)]

ESCALATE = 'INPUT={"sandbox_permissions": "require_escalated", "justification": "to see whether it is asked"}'


class TestCodex(Row):
    adapter_name = "codex"
    agent = "codex"
    modes: ClassVar[Mapping[Any, str]] = {"question": "plan"}  # only there the model may ask
    unknown: ClassVar[Mapping[str, Any]] = {"method": "thread/of/next/year", "params": {}}
    prompts: ClassVar[Mapping[Any, str]] = {**PROMPTS, "ask": f"SCENARIO=bash CMD=touch asked {ESCALATE}"}
    exempt: ClassVar[Mapping[Any, str]] = {
        "crash": CRASH,
        "change": "an approval is answered with a decision alone (item/commandExecution/requestApproval)",
    }


class TestGemini(AcpRow):
    agent = profile = "gemini"
    mode = "default"
    tool_output = None  # it shows no output of commands: tests/recordings/acp
    exempt: ClassVar[Mapping[Any, str]] = {
        "crash": CRASH,
        "change": NO_CHANGE,
        "question": "it has no tool to ask its user through ACP: none is on offer to the model",
    }


class TestOpencode(AcpRow):
    agent = profile = "opencode"


class TestClaudeAgentAcp(AcpRow):
    agent = "claude-agent-acp"
    profile = "claude"


class TestCodexAcp(AcpRow):
    agent = "codex-acp"
    profile = "codex"
    prompts: ClassVar[Mapping[Any, str]] = {**PROMPTS, "ask": f"SCENARIO=bash CMD=touch asked {ESCALATE}"}


class TestQwen(AcpRow):
    agent = profile = "qwen"


class TestCopilot(AcpRow):
    agent = profile = "copilot"


class TestFastAgent(AcpRow):
    agent = profile = "fast-agent"


class TestVibe(AcpRow):
    agent = profile = "vibe"


class TestOpenhands(AcpRow):
    agent = profile = "openhands"
