"""The contract suite for an adapter of someone else's distribution, found by its entry point alone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trunkline_agentkit import installed, load
from trunkline_agentkit.contract import AdapterContract
from trunkline_wire import TrunklineError

DISTRIBUTION = Path(__file__).parent


@pytest.fixture(autouse=True)
def example_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example's distribution is on the path of modules, as if it were installed."""
    monkeypatch.syspath_prepend(str(DISTRIBUTION))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "trunkline_example"]:
        del sys.modules[name]


class TestExample(AdapterContract):
    adapter_name = "example"
    prompts = {"say": "hello"}
    exempt = {
        "long": "it says all at once",
        "streaming": "likewise",
        "interrupt": "it is done before it could be interrupted",
        "ask": "it never asks",
        "question": "likewise",
        "crash": "nothing makes it fail",
        "resume": "it remembers nothing",
    }


def test_it_is_found_beside_the_others() -> None:
    assert {"demo", "example"} <= set(installed())


def test_an_adapter_that_is_not_installed_is_named_with_those_that_are() -> None:
    with pytest.raises(TrunklineError, match=r"no adapter 'nonesuch'.*demo, example") as refused:
        load("nonesuch")
    assert refused.value.code == "unknown_adapter"


def test_the_worker_takes_it_up_without_a_change() -> None:
    program = "from trunkline_adapters.app import load_adapters; print(*load_adapters([]))"
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(DISTRIBUTION)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "example" in found.stdout.split()
