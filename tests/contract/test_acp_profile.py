"""A new agent is a file of a few lines: the one that the README shows, run against the fake agent."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.contract.acp_running import STAND_IN, running

import trunkline_adapters.acp
from trunkline_wire import TrunklineError
from trunkline_wire.session import SessionInitialized

README = Path(trunkline_adapters.acp.__file__).parent / "README.md"


@pytest.fixture
def source(tmp_path: Path) -> Mapping[str, str]:
    """The worker's environment with the README's profile, and with the fake as the program that it names."""
    (shown,) = re.findall(r"```toml\n(.*?)```", README.read_text(), re.DOTALL)
    profiles, programs = tmp_path / "profiles", tmp_path / "programs"
    profiles.mkdir()
    programs.mkdir()
    (profiles / "my-agent.toml").write_text(shown)
    (programs / "my-agent").symlink_to(STAND_IN)
    return {
        "TRUNKLINE_ACP_PROFILES": str(profiles),
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "MY_AGENT_KEY": "k-1",
        "OTHER_KEY": "k-2",
    }


async def test_the_agent_of_the_readme_runs(tmp_path: Path, source: Mapping[str, str]) -> None:
    async with running(tmp_path, agent="my-agent", source=source) as agent:
        assert await agent.said("hello") == "hello"
        environment = await agent.told("environment")
        assert environment["MY_AGENT_KEY"] == "k-1"
        assert "OTHER_KEY" not in environment
        assert (await agent.told("options"))["mode"] == "ask"
        claimed = agent.all(SessionInitialized)[-1].capabilities
        assert (claimed.questions, claimed.plans, claimed.compaction, claimed.fork) == (True, False, True, True)


async def test_its_profile_says_how_to_install_it_and_to_sign_in(tmp_path: Path, source: Mapping[str, str]) -> None:
    with pytest.raises(TrunklineError, match="run `my-agent login`") as refused:
        async with running(tmp_path, "signed_out", agent="my-agent", source=source):
            pass
    assert refused.value.code == "agent_auth"
    with pytest.raises(TrunklineError, match="npm install -g my-agent") as refused:
        async with running(tmp_path, agent="my-agent", source={**source, "PATH": str(tmp_path)}):
            pass
    assert refused.value.code == "agent_not_found"
