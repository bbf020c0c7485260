"""Profiles are data: every file is one, and nothing but the files knows an agent's name."""

import re
from pathlib import Path

import pytest
from tests.live.matrix import test_others
from tests.live.matrix.rows import Row

import trunkline_adapters.acp
from trunkline_adapters.acp.profiles import PROFILES, named_by
from trunkline_wire import TrunklineError

HERE = Path(trunkline_adapters.acp.__file__).parent
NAMES = {
    "gemini",
    "claude",
    "codex",
    "qwen",
    "copilot",
    "vibe",
    "fast-agent",
    "openhands",
    "opencode",
    "goose",
    "kiro",
    "cline",
    "auggie",
    "cursor",
}


def test_the_agents_that_are_promised_have_profiles() -> None:
    assert set(PROFILES.shipped) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_profile_says_how_to_start_install_and_sign_in(name: str) -> None:
    found = PROFILES.get(name, {})
    assert found.title
    assert found.command
    assert found.install
    assert found.login


def test_each_profile_is_proved_by_a_row_of_the_matrix_or_says_why_it_is_not() -> None:
    proved = {row.profile for row in vars(test_others).values() if isinstance(row, type) and issubclass(row, Row)}
    assert {name for name in NAMES if not PROFILES.get(name, {}).unproved} == proved - {None}


def test_an_agent_is_known_by_what_it_calls_itself() -> None:
    known = named_by("gemini-cli")
    assert known == PROFILES.get("gemini", {})
    assert named_by("nobody") is None
    assert named_by(None) is None
    claimed = [name for one in PROFILES.shipped.values() for name in one.names]
    assert len(claimed) == len(set(claimed))


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(TrunklineError, match="auggie, claude") as refused:
        PROFILES.get("nobody", {})
    assert refused.value.code == "bad_params"


@pytest.mark.parametrize("content", ["title = 7", "colour = 'red'", "no toml", "mode_chunk = '('"])
def test_a_file_that_is_no_profile_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "mine.toml").write_text(content)
    with pytest.raises(TrunklineError, match=re.escape("mine.toml")) as refused:
        PROFILES.get("mine", {"TRUNKLINE_ACP_PROFILES": str(tmp_path)})
    assert refused.value.code == "bad_settings"


def test_no_agents_name_is_in_the_code() -> None:
    names = re.compile(rf"['\"]({'|'.join(sorted(NAMES))})['\"]", re.IGNORECASE)
    for path in HERE.glob("*.py"):
        if path.name.endswith("_history.py"):
            continue  # what a file holds is one agent's alone
        assert not names.findall(path.read_text()), path.name
