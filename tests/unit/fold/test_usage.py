"""Tokens and cost. Figures are those of the scenarios, or added up by hand."""

import pytest

from trunkline_fold.session import SessionState, fold_session, initial
from trunkline_testkit.logs import Log
from trunkline_wire.blocks import TextBlock, Usage
from trunkline_wire.session import Capabilities, SessionInitialized, SessionUpdated
from trunkline_wire.turn import MessageAssistant, ModelUsage, TurnCompleted, TurnStarted
from trunkline_wire.work import UsageUpdated


def folded(log: Log, times: int = 1) -> SessionState:
    state = initial(log.session)
    for _ in range(times):
        for sequence, _, event in log.entries:
            state = fold_session(state, event, sequence)
    return state


def message(log: Log, item: str, usage: Usage | None, lane: str | None = None) -> None:
    log.agent(MessageAssistant(content=[TextBlock(text="x")], usage=usage), item=item, lane=lane)


def turn(log: Log, number: int) -> None:
    log.agent(TurnStarted(number=number), turn=f"tur_{number}")


def test_scenario_7_three_lines_of_one_message_count_once() -> None:
    """Output 5, 90, 90 of one message, cache read 61,608 in each; then the result's totals; the log replayed twice."""
    log = Log()
    log.created()
    turn(log, 1)
    seen: list[int] = []
    for output in (5, 90, 90):
        message(log, "itm_m", Usage(input=3, output=output, cache_read=61_608))
        seen.append(folded(log).usage.output)
    assert seen == [5, 90, 90]
    state = folded(log)
    assert (state.usage.output, state.usage.cache_read, state.usage.input) == (90, 61_608, 3)
    assert state.counts.messages == 1
    log.agent(
        TurnCompleted(
            outcome="success", usage=Usage(input=3, output=90, cache_read=61_608), cost_usd=0.05, total_cost_usd=0.05
        ),
        turn="tur_1",
    )
    for times in (1, 2):
        state = folded(log, times)
        assert (state.usage.output, state.usage.cache_read, state.usage.input) == (90, 61_608, 3)
        assert state.cost_usd == pytest.approx(0.05)


def test_a_turns_own_totals_replace_what_its_messages_said() -> None:
    log = Log()
    log.created()
    turn(log, 1)
    message(log, "itm_1", Usage(input=10, output=1))
    message(log, "itm_2", Usage(input=20, output=2))
    assert folded(log).usage == Usage(input=30, output=3)
    log.agent(TurnCompleted(outcome="success", usage=Usage(input=33, output=7, reasoning=2)))
    assert folded(log).usage == Usage(input=33, output=7, reasoning=2)
    turn(log, 2)
    message(log, "itm_3", Usage(output=4))
    assert folded(log).usage == Usage(input=33, output=11, reasoning=2)


def test_a_turn_that_died_counts_by_its_messages() -> None:
    log = Log()
    log.created()
    turn(log, 1)
    message(log, "itm_1", Usage(input=10, output=5, cost_usd=0.25))
    message(log, "itm_1", Usage(input=10, output=8, cost_usd=0.5))
    log.agent(TurnCompleted(outcome="aborted"))
    state = folded(log)
    assert state.usage == Usage(input=10, output=8)
    assert state.cost_usd == pytest.approx(0.5)


def test_a_message_repeated_after_its_turn_counts_for_nothing() -> None:
    log = Log()
    log.created()
    turn(log, 1)
    message(log, "itm_1", Usage(output=8))
    log.agent(TurnCompleted(outcome="success", usage=Usage(output=8)))
    message(log, "itm_1", Usage(output=8))
    turn(log, 2)
    message(log, "itm_1", Usage(output=8))
    state = folded(log)
    assert (state.usage.output, state.counts.messages) == (8, 1)


def test_what_a_background_agent_uses_between_two_turns_stays_counted() -> None:
    log = Log()
    log.created()
    message(log, "itm_bg", Usage(output=100), lane="itm_task")
    turn(log, 1)
    message(log, "itm_1", Usage(output=3))
    log.agent(TurnCompleted(outcome="success", usage=Usage(output=4)))
    assert folded(log).usage.output == 104


def test_a_turn_of_hundreds_of_messages_keeps_its_sum_and_a_small_state() -> None:
    log = Log()
    log.created()
    turn(log, 1)
    for n in range(300):
        message(log, f"itm_{n}", Usage(output=1))
        message(log, f"itm_{n}", Usage(output=2))
    state = folded(log)
    assert (state.usage.output, state.counts.messages) == (600, 300)
    assert len(state.metering.counted) == 64


def test_the_cost_is_the_agents_running_total_also_after_resume() -> None:
    """0.10, then 0.25 in the same process; after a resume with the same native session it goes on to 0.31."""
    log = Log()
    log.created()
    log.agent(SessionInitialized(capabilities=Capabilities(), native_session="n1"))
    costs: list[float | None] = []
    for number, total in ((1, 0.10), (2, 0.25)):
        turn(log, number)
        log.agent(TurnCompleted(outcome="success", total_cost_usd=total, cost_usd=0.1))
        costs.append(folded(log).cost_usd)
    log.claimed()
    log.agent(SessionInitialized(capabilities=Capabilities(), native_session="n1"))
    turn(log, 3)
    log.agent(TurnCompleted(outcome="success", total_cost_usd=0.31))
    costs.append(folded(log).cost_usd)
    assert costs == pytest.approx([0.10, 0.25, 0.31])


def test_a_resume_under_a_new_native_id_that_goes_on_counting_is_not_counted_twice() -> None:
    log = Log()
    log.created()
    for native, total in (("n1", 0.25), ("n2", 0.31)):
        log.agent(SessionUpdated(native_session=native))
        log.agent(TurnCompleted(outcome="success", total_cost_usd=total))
    assert folded(log).cost_usd == pytest.approx(0.31)


def test_a_native_session_that_starts_from_nothing_adds_to_what_was_spent() -> None:
    """0.25 in the first, then 0.04 and 0.10 in one that counts from 0: 0.35 together."""
    log = Log()
    log.created()
    for native, total in (("n1", 0.25), ("n2", 0.04), ("n2", 0.10)):
        log.agent(SessionUpdated(native_session=native))
        log.agent(TurnCompleted(outcome="success", total_cost_usd=total))
    assert folded(log).cost_usd == pytest.approx(0.35)


def test_an_agent_that_corrects_its_total_is_believed() -> None:
    log = Log()
    log.created()
    for total in (0.25, 0.20):
        log.agent(TurnCompleted(outcome="success", total_cost_usd=total))
    assert folded(log).cost_usd == pytest.approx(0.20)


def test_costs_by_turn_add_up_where_there_is_no_total() -> None:
    log = Log()
    log.created()
    assert folded(log).cost_usd is None
    log.agent(TurnCompleted(outcome="success", cost_usd=0.1))
    log.agent(TurnCompleted(outcome="success", usage=Usage(output=1, cost_usd=0.2)))
    assert folded(log).cost_usd == pytest.approx(0.3)
    log.agent(UsageUpdated(total_cost_usd=0.35))
    assert folded(log).cost_usd == pytest.approx(0.35)


def test_totals_so_far_are_of_the_session() -> None:
    """An agent that totals over its thread: 150 and 30 after the first turn, 400 and 90 in the second."""
    log = Log()
    log.created()
    turn(log, 1)
    log.agent(UsageUpdated(usage=Usage(input=150, output=30, context_used=180, context_size=258_400)))
    log.agent(TurnCompleted(outcome="success"))
    state = folded(log)
    assert state.usage == Usage(input=150, output=30)
    assert (state.context.used, state.context.size) == (180, 258_400)
    turn(log, 2)
    log.agent(UsageUpdated(usage=Usage(input=300, output=60)))
    log.agent(UsageUpdated(usage=Usage(input=400, output=90), rate_limits={"primary": 12}))
    log.agent(TurnCompleted(outcome="success"))
    state = folded(log)
    assert state.usage == Usage(input=400, output=90)
    assert state.rate_limits == {"primary": 12}


def test_context_alone_changes_no_total() -> None:
    log = Log()
    log.created()
    turn(log, 1)
    message(log, "itm_1", Usage(output=5))
    log.agent(UsageUpdated(usage=Usage(context_used=1000, context_size=200_000)))
    state = folded(log)
    assert (state.usage.output, state.context.used, state.context.size) == (5, 1000, 200_000)


def test_usage_by_model_adds_up() -> None:
    log = Log()
    log.created()
    for _ in range(2):
        log.agent(
            TurnCompleted(
                outcome="success",
                models=[
                    ModelUsage(model="big", usage=Usage(output=10)),
                    ModelUsage(model="small", usage=Usage(output=1)),
                ],
            )
        )
    assert folded(log).usage_by_model == {"big": Usage(output=20), "small": Usage(output=2)}
