"""The bookkeeping of pull requests: how much is asked for, and when."""

from trunkline_bus.pulls import OVERLAP, Pulls


def asked(pulls: Pulls, token: str, now: float = 0.0) -> int:
    count = pulls.wanted(now)
    if count:
        pulls.sent(token, count, now + 31)
    return count


def test_a_whole_window_first_and_the_rest_from_half_on() -> None:
    pulls = Pulls(100, 1_000_000)
    assert asked(pulls, "1") == 100
    for _ in range(49):
        pulls.arrived(10)
        assert pulls.wanted(0) == 0
    pulls.arrived(10)
    assert asked(pulls, "2") == 50
    assert pulls.wanted(0) == 0


def test_large_messages_are_asked_for_by_bytes() -> None:
    pulls = Pulls(100, 1000)
    asked(pulls, "1")
    pulls.arrived(499)
    assert pulls.wanted(0) == 0
    pulls.arrived(1)
    assert asked(pulls, "2") == 2, "as many as have come"
    assert pulls.wanted(0) == 0


def test_what_an_ended_request_left_open_is_asked_for_again() -> None:
    pulls = Pulls(100, 1000)
    asked(pulls, "1")
    pulls.arrived(300)
    pulls.ended("1", 99, 700)
    assert not pulls
    assert asked(pulls, "2") == 100


def test_a_request_that_ended_without_a_word_does_not_block() -> None:
    """Its last byte was its limit: all bytes have come, so nothing is under way."""
    pulls = Pulls(100, 1000)
    asked(pulls, "1")
    pulls.arrived(600)
    pulls.arrived(400)
    assert not pulls
    assert asked(pulls, "2") == 100


def test_silent_ends_beside_living_requests_are_forgotten_when_they_must_have_expired() -> None:
    pulls = Pulls(100, 1000)
    for n in range(OVERLAP):
        assert asked(pulls, str(n)), n
        pulls.arrived(500 if n == 0 else 1000)
    assert pulls.wanted(0) == 0
    assert pulls.wanted(32) == 100


def test_a_late_status_of_a_forgotten_request_changes_nothing() -> None:
    pulls = Pulls(100, 1000)
    asked(pulls, "1")
    pulls.ended("0", 50, 500)
    assert "1" in pulls
    assert pulls.wanted(0) == 0


def test_a_limit_that_lets_no_message_through_is_noticed() -> None:
    pulls = Pulls(100, 1000)
    asked(pulls, "1")
    assert pulls.too_small("1", 100)
    assert not pulls.too_small("1", 99)
    assert not pulls.too_small("0", 100)
