"""Which adapter runs an agent: the best way that works."""

import pytest

from trunkline_gateway.choice import Chosen, choose
from trunkline_gateway.workers import InstalledAdapter, InstalledAgent
from trunkline_wire import ErrorInfo, TrunklineError


def missing(program: str) -> ErrorInfo:
    return ErrorInfo(code="agent_not_found", message=f"program {program!r} is not installed; npm install {program}")


def adapters(*, native: bool, over_acp: bool) -> list[InstalledAdapter]:
    """`claude` in two ways, as a worker tells of them: ACP first."""
    acp = InstalledAgent(name="claude", profile="claude", error=None if over_acp else missing("claude-agent-acp"))
    own = InstalledAgent(name="claude", error=None if native else missing("claude"))
    other = InstalledAgent(name="gemini", profile="gemini", path="/bin/gemini")
    return [
        InstalledAdapter(name="acp", way="acp", protocol="ACP over stdio", agents=[acp, other]),
        InstalledAdapter(name="claude", way="native", protocol="stream-json over stdio", agents=[own]),
    ]


def test_its_own_protocol_is_the_best_way() -> None:
    assert choose(adapters(native=True, over_acp=True), "claude") == Chosen(adapter="claude")


def test_the_next_best_way_is_taken_with_a_notice() -> None:
    chosen = choose(adapters(native=False, over_acp=True), "claude")
    assert (chosen.adapter, chosen.profile) == ("acp", "claude")
    assert chosen.notice == (
        "program 'claude' is not installed; npm install claude; it runs through the adapter 'acp' (ACP over stdio)"
    )


def test_an_agent_of_one_way_has_no_notice() -> None:
    chosen = choose(adapters(native=True, over_acp=True), "gemini")
    assert chosen == Chosen(adapter="acp", profile="gemini")


def test_what_is_installed_in_no_way_says_how_to_install_it_in_each() -> None:
    with pytest.raises(TrunklineError) as refused:
        choose(adapters(native=False, over_acp=False), "claude")
    assert refused.value.code == "agent_not_found"
    assert refused.value.message == (
        "program 'claude' is not installed; npm install claude; "
        "or program 'claude-agent-acp' is not installed; npm install claude-agent-acp"
    )


def test_an_unknown_agent_is_told_what_there_is() -> None:
    with pytest.raises(TrunklineError, match="no agent 'nobody' is known: installed here are claude, gemini;"):
        choose(adapters(native=True, over_acp=False), "nobody")


def test_the_name_of_an_adapter_does_as_well() -> None:
    assert choose([InstalledAdapter(name="mine")], "mine") == Chosen(adapter="mine")


def test_a_way_of_a_newer_worker_is_the_last() -> None:
    newer = InstalledAdapter(name="new", way="telepathy", agents=[InstalledAgent(name="gemini")])
    assert choose([newer, *adapters(native=True, over_acp=True)], "gemini").adapter == "acp"
