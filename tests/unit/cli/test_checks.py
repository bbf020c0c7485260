"""What `trunkline doctor` says of an agent whose version or protocol nobody has reviewed."""

from trunkline_agentkit.agents import Agent
from trunkline_cli.checks import check_protocol, check_version
from trunkline_wire import TrunklineError


def agent(version: str | None, *tested: str) -> Agent:
    return Agent(name="one", title="One", path="/bin/one", version=version, tested=tested)


def test_a_version_that_no_recording_is_of_is_named_with_those_that_are() -> None:
    finding = check_version("agent one", agent("3.0", "1.0", "2.0"))
    assert (finding.state, finding.found) == ("warn", "3.0 at /bin/one; what it says is known of 1.0, 2.0")
    assert finding.advice is not None
    for known in (agent("2.0", "1.0", "2.0"), agent("3.0"), agent(None, "1.0")):
        assert check_version("agent one", known).state == "ok"


class Fake:
    """An adapter that says this of its agent's protocol."""

    def __init__(self, *lines: str, error: TrunklineError | None = None) -> None:
        self._lines = lines
        self._error = error

    async def drift(self) -> list[str]:
        if self._error is not None:
            raise self._error
        return list(self._lines)


async def test_what_came_to_a_protocol_is_named() -> None:
    assert (await check_protocol("protocol", Fake())).state == "ok"
    finding = await check_protocol("protocol", Fake("new items: dream", "methods that are gone: sleep"))
    assert (finding.state, finding.found) == ("warn", "new items: dream; methods that are gone: sleep")
    finding = await check_protocol("protocol", Fake(error=TrunklineError("agent_failed", "it says nothing")))
    assert (finding.state, finding.found) == ("warn", "it says nothing")
