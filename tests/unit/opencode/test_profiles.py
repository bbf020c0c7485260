"""Profiles are data: every file is one, and nothing but the files knows an agent's name."""

from pathlib import Path

import pytest
from tests.live.matrix import test_serve
from tests.live.matrix.rows import Row

import trunkline_adapters.opencode
from trunkline_adapters.opencode.profiles import PROFILES, is_silent
from trunkline_testkit.agents import AGENTS
from trunkline_wire import TrunklineError

HERE = Path(trunkline_adapters.opencode.__file__).parent
OWN = """
title = "Fork"
command = ["fork"]
user = "fork"
password_variable = "FORK_PASSWORD"
user_variable = "FORK_USER"
mode = "build"
silent = ["fork.*"]
"""


def test_each_profile_is_proved_by_a_row_of_the_matrix() -> None:
    rows = [row for row in vars(test_serve).values() if isinstance(row, type) and issubclass(row, Row)]
    assert set(PROFILES.shipped) == {row.profile for row in rows} - {None} == {"opencode", "kilo"}


@pytest.mark.parametrize("name", ["opencode", "kilo"])
def test_a_profile_says_how_to_install_the_tested_version_and_sign_in(name: str) -> None:
    found = PROFILES.get(name, {})
    assert found.install.endswith(f"@{AGENTS[name].version}")
    assert found.login
    assert found.title


def test_no_code_names_what_is_made_of_opencode() -> None:
    for path in HERE.glob("*.py"):
        code = path.read_text().partition('"""')[2].partition('"""')[2]
        assert "kilo" not in code.lower(), path.name


def test_a_directory_of_profiles_comes_on_top(tmp_path: Path) -> None:
    (tmp_path / "fork.toml").write_text(OWN)
    found = PROFILES.get("fork", {"TRUNKLINE_OPENCODE_PROFILES": str(tmp_path)})
    assert (found.title, found.user, found.login) == ("Fork", "fork", "")
    assert is_silent("fork.moved", found)
    assert not is_silent("fork.moved")
    assert is_silent("indexing.progress")


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(TrunklineError, match=r"there is no agent 'cline' here; there are: kilo, opencode") as error:
        PROFILES.get("cline", {})
    assert error.value.code == "bad_params"


@pytest.mark.parametrize("content", ["title =", OWN + "colour = 1", OWN.replace('mode = "build"', "")])
def test_a_file_that_is_no_profile_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.toml").write_text(content)
    with pytest.raises(TrunklineError, match=r"bad\.toml.* is not a profile") as error:
        PROFILES.all({"TRUNKLINE_OPENCODE_PROFILES": str(tmp_path)})
    assert error.value.code == "bad_settings"
