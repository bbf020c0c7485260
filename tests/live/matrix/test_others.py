"""All other agents: `just matrix gemini`."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
from tests.live.matrix.rows import CRASH, NO_CHANGE, PLANNING, PROMPTS, AcpRow, Row, SilentAcpRow

from trunkline_agentkit.contract import More

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(400)]

ESCALATE = 'INPUT={"sandbox_permissions": "require_escalated", "justification": "to see whether it is asked"}'


class TestCodex(Row):
    adapter_name = "codex"
    agent = "codex"
    smoke = True
    modes: ClassVar[Mapping[Any, str]] = {"question": "plan", "plan": "plan"}  # only there the model may ask
    unknown: ClassVar[Mapping[str, Any]] = {"method": "thread/of/next/year", "params": {}}
    prompts: ClassVar[Mapping[Any, str]] = {
        **PROMPTS,
        "ask": f"SCENARIO=bash CMD=touch asked {ESCALATE}",
        "plan": r'SAY="<proposed_plan>\n1. do A\n</proposed_plan>"',
    }
    exempt: ClassVar[Mapping[Any, str]] = {
        "crash": CRASH,
        "change": "an approval is answered with a decision alone (item/commandExecution/requestApproval)",
    }


class TestGemini(SilentAcpRow):
    agent = profile = "gemini"
    smoke = True
    mode = "default"
    tool_output = None  # it does not show what a command printed


class TestOpencode(SilentAcpRow):
    agent = profile = "opencode"
    smoke = True


class TestClaudeSdkUrl(Row):
    """An older Claude Code, which connects to its host by WebSocket."""

    adapter_name = "claude"
    agent = "claude-2.1.101"
    trouble_patience = 5.0
    prompts: ClassVar[Mapping[Any, str]] = PLANNING
    modes: ClassVar[Mapping[Any, str]] = {"plan": "plan"}
    changed_input: ClassVar[Mapping[str, Any]] = {"command": "touch changed"}


class TestClaudeSdk(Row):
    adapter_name = "claude-sdk"
    agent = "claude-sdk"
    litter: ClassVar[Sequence[str]] = ("cc-socks*", "cc-socks*/*")
    trouble_patience = 5.0
    prompts: ClassVar[Mapping[Any, str]] = PLANNING
    modes: ClassVar[Mapping[Any, str]] = {"plan": "plan"}
    changed_input: ClassVar[Mapping[str, Any]] = {"command": "touch changed"}


class TestClaudeAgentAcp(AcpRow):
    agent = "claude-agent-acp"
    profile = "claude"
    litter: ClassVar[Sequence[str]] = ("cc-socks*", "cc-socks*/*")
    prompts: ClassVar[Mapping[Any, str]] = PLANNING
    modes: ClassVar[Mapping[Any, str]] = {"plan": "plan"}
    exempt: ClassVar[Mapping[Any, str]] = {"crash": CRASH, "change": NO_CHANGE}


class TestCodexAcp(AcpRow):
    agent = "codex-acp"
    profile = "codex"
    litter: ClassVar[Sequence[str]] = ("codex-daemon-*", "codex-daemon-*/*")
    modes: ClassVar[Mapping[Any, str]] = {"ask": "workspace-write"}  # in `agent` a model of its own decides
    prompts: ClassVar[Mapping[Any, str]] = {**PROMPTS, "ask": f"SCENARIO=bash CMD=touch asked {ESCALATE}"}
    exempt: ClassVar[Mapping[Any, str]] = {
        **AcpRow.exempt,
        "question": "its tool to ask the user answers `unavailable in Default mode`, and it offers no other through the protocol",
    }


class TestQwen(AcpRow):
    agent = profile = "qwen"
    litter: ClassVar[Sequence[str]] = ("qwen-socks-*",)
    recovers: ClassVar[Sequence[More]] = ("drop",)


class TestCopilot(SilentAcpRow):
    agent = profile = "copilot"
    smoke = True


class TestFastAgent(SilentAcpRow):
    agent = profile = "fast-agent"


class TestVibe(SilentAcpRow):
    agent = profile = "vibe"


class TestOpenhands(SilentAcpRow):
    agent = profile = "openhands"
    litter: ClassVar[Sequence[str]] = ("tmux-*/*",)
    exempt: ClassVar[Mapping[Any, str]] = {
        **SilentAcpRow.exempt,
        "streaming": "its answers come whole: it calls its model without streaming",
    }
