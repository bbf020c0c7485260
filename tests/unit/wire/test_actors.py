"""Names of actors: whose they are, and how many voices they have."""

import pytest

from trunkline_wire import TrunklineError
from trunkline_wire.actors import check_person, voices, vouched


@pytest.mark.parametrize(
    ("actor", "expected"),
    [
        ("ada", {"ada"}),
        ("team/ada", {"team/ada"}),
        ("ext:bot", {"ext:bot"}),
        ("ext:bot/ada", {"ext:bot", "ada"}),
        ("ext:bot/team/ada", {"ext:bot", "team/ada"}),
        (vouched("ext:bot", "ada"), {"ext:bot", "ada"}),
    ],
)
def test_who_speaks(actor: str, expected: set[str]) -> None:
    assert voices(actor) == expected


@pytest.mark.parametrize("name", ["", "a b", "a\n", "x" * 129, "ext:bot", "ext:bot/ada", "policy"])
def test_what_is_no_persons_name(name: str) -> None:
    with pytest.raises(TrunklineError) as refused:
        check_person(name)
    assert refused.value.code == "bad_params"


def test_a_persons_name() -> None:
    assert check_person("ada@example.org") == "ada@example.org"
