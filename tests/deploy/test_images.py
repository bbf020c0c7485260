"""What the images are made of is what the tests are run with."""

import re
import tomllib
from pathlib import Path

import pytest

TREE = Path(__file__).parents[2]


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (TREE / lock).read_text(), re.MULTILINE))


@pytest.mark.parametrize("lock", ["deploy/docker/requirements.lock", "deploy/docker/build.lock"])
def test_an_image_has_the_versions_of_the_tests(lock: str) -> None:
    assert pins(lock).items() <= pins("requirements.lock").items(), "run `just image-locks`"


def test_an_image_has_all_that_the_program_needs() -> None:
    project = tomllib.loads((TREE / "pyproject.toml").read_text())
    needed = {re.split(r"[\[<>=; ]", one)[0] for one in project["project"]["dependencies"]}
    assert needed <= set(pins("deploy/docker/requirements.lock")), "run `just image-locks`"
    assert {re.split("[<>=]", one)[0] for one in project["build-system"]["requires"]} <= set(
        pins("deploy/docker/build.lock")
    )
