"""What is counted of an agent's work, by hand; each test has an adapter's name of its own, for metrics are the process'."""

import itertools
from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY

from trunkline_agentkit.meters import AgentMeter
from trunkline_bus.labels import Capped
from trunkline_fold.session import SessionState, fold_session, initial
from trunkline_wire import Data, make_event, timestamp
from trunkline_wire.blocks import Usage
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import Capabilities, SessionCreated, SessionInitialized
from trunkline_wire.turn import ModelUsage, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted


class Agent:
    """A session whose events are folded and metered as an owner does; `now` is the clock's time."""

    def __init__(self, name: str, model: str = "m1") -> None:
        self.now = 100.0
        self.name = name
        self._numbers = itertools.count(1)
        self._session = new_session_id()
        self.state: SessionState = initial(self._session)
        self.meter = AgentMeter(name, self.state, lambda: self.now)
        self.says(SessionCreated(adapter=name, cwd=f"/src/{name}", host="hst_" + "0" * 32, workspace="ws_" + "0" * 32))
        self.says(SessionInitialized(capabilities=Capabilities(), model=model))

    def says(self, data: Data, after: float = 0.0, **envelope: Any) -> None:
        self.now += after
        number = next(self._numbers)
        event = make_event(data, session=self._session, time=timestamp(), seq=number, epoch=1, **envelope)
        self.state = fold_session(self.state, event, number)
        self.meter.take(event, self.state)


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def test_the_first_word_counts_from_the_prompt_and_the_turn_from_its_begin() -> None:
    agent = Agent("first")
    agent.meter.prompted()
    agent.says(TurnStarted(number=1), after=2.0)
    agent.now += 1.0
    agent.meter.spoke()
    agent.meter.spoke()
    agent.says(TurnCompleted(outcome="success"), after=4.0)
    assert value("trunkline_first_token_seconds_count", adapter="first") == 1
    assert value("trunkline_first_token_seconds_sum", adapter="first") == pytest.approx(3.0)
    assert value("trunkline_turn_seconds_sum", adapter="first") == pytest.approx(5.0)


def test_a_tool_counts_from_its_start_to_its_end_whatever_runs_beside_it() -> None:
    agent = Agent("tools")
    agent.says(TurnStarted(number=1))
    agent.says(ToolStarted(name="Bash"), item="itm_a")
    agent.says(ToolStarted(name="Read"), item="itm_b", after=1.0)
    agent.says(ToolCompleted(status="completed"), item="itm_b", after=2.0)
    agent.says(ToolCompleted(status="failed"), item="itm_a", after=4.0)
    assert value("trunkline_tool_seconds_sum", adapter="tools", tool="Bash") == pytest.approx(7.0)
    assert value("trunkline_tool_seconds_sum", adapter="tools", tool="Read") == pytest.approx(2.0)
    assert value("trunkline_tools_total", adapter="tools", status="failed") == 1


def test_tokens_and_cost_of_a_turn_go_to_the_models_that_the_agent_names() -> None:
    agent = Agent("models")
    one = ModelUsage(model="large", usage=Usage(input=100, output=20, cost_usd=0.3))
    two = ModelUsage(model="small", usage=Usage(input=50, cache_read=7, cost_usd=0.1))
    agent.says(TurnStarted(number=1))
    usage = Usage(input=150, output=20, cache_read=7)
    agent.says(TurnCompleted(outcome="success", usage=usage, cost_usd=0.4, models=[one, two]))
    assert value("trunkline_tokens_total", agent="models", model="large", kind="input") == 100
    assert value("trunkline_tokens_total", agent="models", model="small", kind="cache_read") == 7
    assert value("trunkline_cost_usd_total", agent="models", model="large") == pytest.approx(0.3)
    assert value("trunkline_cost_usd_total", agent="models", model="small") == pytest.approx(0.1)
    assert value("trunkline_workspace_cost_usd_total", workspace="models") == pytest.approx(0.4)


def test_a_running_total_is_counted_once_and_nothing_twice_over_turns() -> None:
    agent = Agent("totals")
    for number, total in ((1, 0.5), (2, 0.8)):
        agent.says(TurnStarted(number=number))
        agent.says(TurnCompleted(outcome="success", usage=Usage(input=10), total_cost_usd=total))
    assert value("trunkline_cost_usd_total", agent="totals", model="m1") == pytest.approx(0.8)
    assert value("trunkline_tokens_total", agent="totals", model="m1", kind="input") == 20


def test_what_was_used_before_the_meter_began_is_no_news() -> None:
    agent = Agent("before")
    agent.says(TurnStarted(number=1))
    agent.says(TurnCompleted(outcome="success", usage=Usage(input=10), cost_usd=1.0))
    agent.name = "after"
    agent.state = msgspec.structs.replace(agent.state, agent="after")
    agent.meter = AgentMeter("after", agent.state, lambda: agent.now)
    agent.says(TurnStarted(number=2))
    agent.says(TurnCompleted(outcome="success", usage=Usage(input=5), cost_usd=0.25))
    assert value("trunkline_cost_usd_total", agent="after", model="m1") == pytest.approx(0.25)
    assert value("trunkline_tokens_total", agent="after", model="m1", kind="input") == 5


def test_labels_without_an_end_of_their_own_have_one() -> None:
    label = Capped(2)
    assert [label(name) for name in ("a", "b", "c", "a", None, "d", "")] == [
        "a",
        "b",
        "other",
        "a",
        "unknown",
        "other",
        "unknown",
    ]
    assert len(label("x" * 1000)) <= 80
