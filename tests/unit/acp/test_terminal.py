"""How an agent's own terminal takes up a session of its protocol, as its profile says, and which sessions it can't."""

from pathlib import Path
from typing import Any

import pytest

from trunkline_adapters.acp.adapter import AcpAdapter
from trunkline_adapters.acp.launch import terminal_arguments
from trunkline_adapters.acp.profiles import PROFILES, Terminal
from trunkline_agentkit import AgentProcess, Start
from trunkline_wire import TrunklineError
from trunkline_wire.session import SessionOptions


async def _never(*args: Any, **fields: Any) -> AgentProcess:
    raise AssertionError(f"nothing is started here: {args}, {fields}")


def _start(agent: str, **options: Any) -> Start:
    return Start(
        session="ses_" + "0" * 32,
        cwd="/project",
        incarnation="first",
        environment={"TMPDIR": "/tmp/session"},
        launch=_never,
        options=SessionOptions(**options),
        agent=agent,
        native_session="s-1",
    )


def _gemini() -> Terminal:
    found = PROFILES.get("gemini", {}).terminal
    assert found is not None
    return found


def test_gemini_takes_up_the_session_with_the_model_and_the_mode_that_were_chosen() -> None:
    assert terminal_arguments(_start("gemini"), _gemini()) == ["--resume", "s-1"]
    words = terminal_arguments(_start("gemini", model="m", mode="autoEdit"), _gemini())
    assert words == ["--resume", "s-1", "--model", "m", "--approval-mode", "auto_edit"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"mcp_servers": {"db": {"command": "db"}}}, "'mcp_servers'"),
        ({"native": {"add_dirs": ["/other"]}}, "'add_dirs'"),
        ({"native": {"command": ["mine", "--acp"]}}, "'command'"),
    ],
)
def test_what_the_terminal_can_t_be_given_is_said(options: dict[str, Any], named: str) -> None:
    with pytest.raises(TrunklineError, match=named) as raised:
        terminal_arguments(_start("gemini", **options), _gemini())
    assert (raised.value.code, raised.value.details["capability"]) == ("unsupported", "terminal")


async def test_an_agent_whose_profile_has_no_terminal_is_not_handed_over() -> None:
    with pytest.raises(TrunklineError, match="Copilot") as raised:
        await AcpAdapter({}).terminal(_start("copilot"))
    assert (raised.value.code, raised.value.details["capability"]) == ("unsupported", "terminal")


def test_a_profile_with_a_terminal_and_without_a_history_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('command = ["mine"]\n[terminal]\nresume = ["{session}"]\n')
    with pytest.raises(TrunklineError, match="history") as raised:
        PROFILES.get("mine", {"TRUNKLINE_ACP_PROFILES": str(tmp_path)})
    assert raised.value.code == "bad_settings"
