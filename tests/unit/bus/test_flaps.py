"""When a session moves between hosts too often."""

import datetime as dt

from trunkline_bus.ownership import flaps

NOON = dt.datetime(2026, 11, 27, 12, tzinfo=dt.UTC)


def owners(*hosts: str, minutes_apart: float) -> list[tuple[dt.datetime, str]]:
    """Owners in order, the last one now."""
    first = NOON - dt.timedelta(minutes=minutes_apart * (len(hosts) - 1))
    return [(first + dt.timedelta(minutes=minutes_apart * n), host) for n, host in enumerate(hosts)]


def test_the_fourth_move_within_five_minutes_is_one_too_many() -> None:
    assert flaps(owners("a", "b", "a", "b", minutes_apart=1), "a", NOON)
    assert not flaps(owners("a", "b", "a", minutes_apart=1), "b", NOON)


def test_restarts_on_one_host_are_no_moves() -> None:
    assert not flaps(owners(*["a"] * 9, minutes_apart=0.1), "a", NOON)
    assert not flaps(owners("a", "b", "a", "b", minutes_apart=1), "b", NOON)


def test_old_moves_are_forgotten() -> None:
    assert not flaps(owners("a", "b", "a", "b", minutes_apart=3), "a", NOON)
