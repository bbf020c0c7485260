"""Profiles are data: every file is one, the README says what they say, and nothing but the files knows an agent's name."""

import re
from pathlib import Path

import pytest

import trunkline_adapters.headless
from trunkline_adapters.headless.profiles import PROFILES, Profile
from trunkline_wire import TrunklineError

HERE = Path(trunkline_adapters.headless.__file__).parent
NAMES = ("amp", "cline", "continue", "cursor", "gemini", "qwen")


def test_the_agents_that_are_promised_have_profiles() -> None:
    assert tuple(sorted(PROFILES.shipped)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_says_how_to_start_install_and_sign_in(name: str) -> None:
    found = PROFILES.get(name, {})
    assert found.title
    assert found.command
    assert found.install
    assert found.login
    assert (not found.tested) == (HERE / "profiles" / f"{name}.toml").read_text().startswith("# Never run")


def test_the_readme_says_of_each_profile_what_the_profile_says() -> None:
    rows = re.findall(
        r"^\| (\w+) \| ([\w-]+) \| ([\w.]+) \| (\w+) \| (yes|no) \|", (HERE / "README.md").read_text(), re.MULTILINE
    )
    said = {
        name: (dialect, () if tested == "never" else (tested,), prompt, up == "yes")
        for name, dialect, tested, prompt, up in rows
    }
    assert said == {
        name: (one.dialect, one.tested, one.prompt, bool(one.resume)) for name, one in PROFILES.shipped.items()
    }


@pytest.mark.parametrize(
    "content",
    [
        "title = 7",
        "colour = 'red'",
        "no toml",
        "dialect = 'gemini'",
        "command = ['a']\ndialect = 'latin'",
        "command = ['a']\ndialect = 'gemini'\nlost = '('",
    ],
)
def test_a_file_that_is_no_profile_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "mine.toml").write_text(content)
    with pytest.raises(TrunklineError, match=re.escape("mine.toml")) as refused:
        PROFILES.get("mine", {"TRUNKLINE_HEADLESS_PROFILES": str(tmp_path)})
    assert refused.value.code == "bad_settings"


def test_the_readmes_example_is_a_profile(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
    (tmp_path / "mine.toml").write_text(example)
    found = PROFILES.get("mine", {"TRUNKLINE_HEADLESS_PROFILES": str(tmp_path)})
    assert found.capabilities.resume
    assert found.capabilities.mode_switching
    assert not found.capabilities.permissions


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("API key not valid. Please pass a valid API key.", "agent_auth"),
        ('Error resuming session: Invalid session identifier "x".', "history_lost"),
        ("[API Error: fake INVALID_ARGUMENT]", "agent_failed"),
    ],
)
def test_an_error_is_told_by_what_it_says(said: str, code: str) -> None:
    failure = PROFILES.get("gemini", {}).failure(said)
    assert failure.code == code
    assert said in failure.message


def test_without_patterns_every_error_is_the_agents() -> None:
    assert Profile(title="A").failure("401").code == "agent_failed"


def test_no_agents_name_is_in_the_code() -> None:
    names = re.compile(rf"['\"]({'|'.join(NAMES)})['\"]", re.IGNORECASE)
    for path in HERE.glob("*.py"):
        assert not names.findall(path.read_text()), path.name
