"""Tokens and cost, in each way that agents count them. Messages are made by hand after the schema."""

from typing import Any

import pytest
from tests.unit.acp.talk import Obj, Talk

from trunkline_adapters.acp.profiles import Profile
from trunkline_wire.blocks import Usage
from trunkline_wire.turn import TurnCompleted
from trunkline_wire.work import UsageUpdated


def test_usage_is_told_once_and_counts_for_the_turn() -> None:
    talk = Talk()
    cost = {"amount": 0.5, "currency": "USD"}
    assert talk.update("usage_update", used=5, size=10, cost=cost) == [
        UsageUpdated(usage=Usage(context_used=5, context_size=10), total_cost_usd=0.5)
    ]
    assert talk.update("usage_update", used=5, size=10, cost=cost) == []
    (ended,) = talk.end(usage={"inputTokens": 3, "outputTokens": 2})
    assert isinstance(ended, TurnCompleted)
    assert ended.usage == Usage(input=3, output=2, context_used=5, context_size=10)
    assert (ended.cost_usd, ended.total_cost_usd) == (0.5, 0.5)


def test_cost_in_another_currency_is_not_taken_for_dollars() -> None:
    talk = Talk()
    talk.update("usage_update", used=5, size=10, cost={"amount": 0.5, "currency": "EUR"})
    (ended,) = talk.end()
    assert isinstance(ended, TurnCompleted)
    assert ended.cost_usd is None


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        ({"inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 10, "totalTokens": 130}, (100, 10)),
        ({"inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 10, "totalTokens": 120}, (90, 10)),
        ({"inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 10}, (100, 10)),
    ],
)
def test_input_is_counted_without_the_cache_however_the_agent_counts(native: Obj, expected: tuple[int, int]) -> None:
    (ended,) = Talk().end(usage=native)
    assert isinstance(ended, TurnCompleted)
    assert ended.usage is not None
    assert (ended.usage.input, ended.usage.cache_read) == expected


def test_totals_of_the_session_are_a_turns_share_and_may_begin_anew() -> None:
    talk = Talk(Profile(usage="total"))
    shares: list[tuple[int, int]] = []
    for number, (given, output) in enumerate([(10, 1), (30, 4), (5, 2)]):
        if number:
            talk.send("go", 2)
        (ended,) = talk.end(usage={"inputTokens": given, "outputTokens": output})
        assert isinstance(ended, TurnCompleted)
        assert ended.usage is not None
        shares.append((ended.usage.input, ended.usage.output))
    assert shares == [(10, 1), (20, 3), (5, 2)]


def test_usage_that_comes_with_each_call_of_the_model_adds_up_to_the_turns() -> None:
    talk = Talk()
    for given in (3, 4):
        meta = {"usage": {"inputTokens": given, "outputTokens": 1, "totalTokens": given + 1}}
        talk.update("agent_message_chunk", content={"type": "text", "text": ""}, _meta=meta)
    *_, ended = talk.end()
    assert isinstance(ended, TurnCompleted)
    assert ended.usage == Usage(input=7, output=2)


def taken_up(profile: Profile, method: str = "session/resume") -> Talk:
    talk = Talk(profile, prompted=False)
    talk.translator.sent({"id": 7, "method": method, "params": {"sessionId": "s"}})
    talk.feed({"id": 7, "result": {}})
    return talk


@pytest.mark.parametrize(("told", "cost"), [(True, 0.25), (False, None)])
def test_what_a_session_has_cost_before_it_was_taken_up_is_not_the_first_turns(told: bool, cost: Any) -> None:
    talk = taken_up(Profile(usage="total"))
    if told:
        talk.update("usage_update", used=5, size=10, cost={"amount": 1.0, "currency": "USD"})
    talk.send("go")
    talk.update("usage_update", used=6, size=10, cost={"amount": 1.25, "currency": "USD"})
    told_so_far, ended = talk.end(usage={"inputTokens": 100, "outputTokens": 10})
    assert isinstance(ended, TurnCompleted)
    assert (ended.cost_usd, ended.total_cost_usd) == (cost, 1.25)
    assert ended.usage is None, "how much of the total is this turn's the agent does not say"
    assert told_so_far == UsageUpdated(usage=Usage(input=100, output=10, context_used=6, context_size=10))
    talk.send("go", 2)
    (ended,) = talk.end(usage={"inputTokens": 130, "outputTokens": 14})
    assert isinstance(ended, TurnCompleted)
    assert ended.usage == Usage(input=30, output=4, context_used=6, context_size=10)


def test_an_agent_that_counts_anew_when_it_takes_a_session_up_tells_turns_and_no_totals() -> None:
    """claude-agent-acp 0.101.0 (cost) and Copilot 1.0.102 (tokens): less than before the session was taken up."""
    talk = taken_up(Profile(usage="total", counts="process"))
    talk.send("go", 2)
    cost = {"amount": 0.25, "currency": "USD"}
    assert talk.update("usage_update", used=5, size=10, cost=cost) == [
        UsageUpdated(usage=Usage(context_used=5, context_size=10))
    ]
    (ended,) = talk.end(usage={"inputTokens": 103, "outputTokens": 4})
    assert isinstance(ended, TurnCompleted)
    assert ended.usage == Usage(input=103, output=4, context_used=5, context_size=10)
    assert (ended.cost_usd, ended.total_cost_usd) == (0.25, None)


def test_what_the_original_has_used_is_not_its_copys() -> None:
    talk = taken_up(Profile(usage="total"), "session/fork")
    talk.send("go", 2)
    talk.update("usage_update", used=5, size=10, cost={"amount": 1.25, "currency": "USD"})
    (ended,) = talk.end(usage={"inputTokens": 103, "outputTokens": 4})
    assert isinstance(ended, TurnCompleted)
    assert (ended.usage, ended.cost_usd, ended.total_cost_usd) == (None, None, None)
