"""When an unhurried Reader asks for messages: what there is every second, one at a time only after a pause."""

from trunkline_bus.pace import Pace


def came(pace: Pace, count: int) -> None:
    for _ in range(count):
        pace.arrived()


def test_it_begins_by_taking_what_there_is() -> None:
    pace = Pace(1.0)
    assert pace.wanted(10.0, 500) == 500
    assert not pace.resting


def test_some_came_so_it_looks_again_a_second_later() -> None:
    pace = Pace(1.0)
    pace.wanted(10.0, 500)
    came(pace, 3)
    assert pace.wanted(10.2, 500) == 0
    assert pace.due == 11.2
    assert pace.wanted(11.1, 500) == 0
    assert pace.wanted(11.2, 500) == 500
    assert pace.due is None


def test_all_came_that_was_asked_for_so_it_asks_at_once() -> None:
    pace = Pace(1.0)
    pace.wanted(10.0, 5)
    came(pace, 5)
    assert pace.wanted(10.1, 5) == 5


def test_nothing_came_so_it_waits_for_one_message_and_then_paces_again() -> None:
    pace = Pace(1.0)
    pace.wanted(10.0, 500)
    assert pace.wanted(10.1, 500) == 1
    assert pace.resting
    came(pace, 1)
    assert pace.wanted(20.0, 500) == 0
    assert pace.due == 21.0
    assert not pace.resting
    assert pace.wanted(21.0, 500) == 500


def test_a_rest_that_ends_without_a_message_goes_on() -> None:
    pace = Pace(1.0)
    pace.wanted(10.0, 500)
    assert pace.wanted(10.1, 500) == 1
    assert pace.wanted(40.1, 500) == 1
    assert pace.resting


def test_hurry_asks_before_it_is_due_and_not_in_the_middle_of_a_request() -> None:
    pace = Pace(1.0)
    pace.wanted(10.0, 500)
    came(pace, 3)
    assert pace.wanted(10.2, 500) == 0
    pace.hurry()
    assert pace.wanted(10.3, 500) == 500
    pace.hurry()  # while that one is under way: it may have looked too early
    came(pace, 1)
    assert pace.wanted(10.4, 500) == 500
    came(pace, 1)
    assert pace.wanted(10.5, 500) == 0


def test_hurry_in_a_rest_takes_all_that_there_is() -> None:
    pace = Pace(1.0)
    pace.wanted(10.0, 500)
    pace.hurry()
    assert pace.wanted(10.1, 500) == 500
    assert not pace.resting


def test_a_new_consumer_begins_anew() -> None:
    pace = Pace(1.0)
    pace.wanted(10.0, 500)
    came(pace, 3)
    assert pace.wanted(10.2, 500) == 0
    pace.reset()
    assert pace.wanted(10.3, 500) == 500
