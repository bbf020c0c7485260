"""Who is let to whom, without a connection: the lines are lists."""

import pytest

from trunkline_relay.switch import MAX_CONNECTIONS, MAX_OFFER_S, MAX_OFFERS, HostPlace, Switch, Visit, opened
from trunkline_seal.control import MAX_DEVICES, MAX_OF_DEVICE, MAX_PAIRINGS, Base, Close, Failed, Opened, b64
from trunkline_wire import TrunklineError

ANN, BOB = b"a" * 32, b"b" * 32


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Recorded:
    """A line that keeps what it is given; `full` takes nothing."""

    def __init__(self) -> None:
        self.said: list[Base] = []
        self.frames: list[bytes] = []
        self.ended = False
        self.full = False
        self.crowded = False

    def say(self, message: Base) -> None:
        self.said.append(message)

    def put(self, frame: bytes) -> bool:
        if not self.full:
            self.frames.append(frame)
        return not self.full

    def end(self) -> None:
        self.ended = True


def connected(clock: Clock | None = None) -> tuple[Switch, HostPlace, Recorded]:
    switch = Switch(clock or Clock())
    line = Recorded()
    place = switch.arrive("hst_a", line)
    place.admit(frozenset((ANN,)))
    return switch, place, line


def refused(code: str) -> "pytest.RaisesExc[TrunklineError]":
    return pytest.RaisesExc(TrunklineError, check=lambda error: error.code == code)


def test_frames_go_both_ways_and_to_their_visit_alone() -> None:
    _, place, host = connected()
    first, second = Recorded(), Recorded()
    one, two = place.visit(first, device=ANN), place.visit(second, device=ANN)
    assert one.sid != two.sid
    one.up(b"up")
    place.down(two.sid, b"down")
    assert (host.frames, first.frames, second.frames) == ([b"up"], [], [b"down"])


def test_a_device_that_is_not_admitted_is_unpaired() -> None:
    _, place, _ = connected()
    with refused("unpaired"):
        place.visit(Recorded(), device=BOB)


def test_a_device_that_is_revoked_while_connected_is_told_so_and_leaves() -> None:
    _, place, host = connected()
    place.admit(frozenset((ANN, BOB)))
    ann, bob = Recorded(), Recorded()
    visit = place.visit(ann, device=ANN)
    place.visit(bob, device=BOB)
    place.admit(frozenset((BOB,)))
    assert [(type(said), said.code) for said in ann.said if isinstance(said, Failed)] == [(Failed, "unpaired")]
    assert (ann.ended, bob.ended) == (True, False)
    assert host.said == [Close(sid=visit.sid.hex(), reason="the device was revoked")]


def test_who_pairs_stays_when_the_list_changes() -> None:
    _, place, _ = connected()
    place.offer("pair_1", 60)
    new = Recorded()
    place.visit(new, pairing="pair_1")
    place.admit(frozenset())
    assert not new.ended


def test_a_pairing_is_used_once() -> None:
    _, place, _ = connected()
    place.offer("pair_1", 60)
    place.visit(Recorded(), pairing="pair_1")
    with refused("bad_pairing"):
        place.visit(Recorded(), pairing="pair_1")


@pytest.mark.parametrize(("offered", "later"), [(60.0, 60.0), (10_000.0, MAX_OFFER_S), (-5.0, 0.0)])
def test_a_pairing_is_too_old_after_its_time_which_is_limited(offered: float, later: float) -> None:
    clock = Clock()
    _, place, _ = connected(clock)
    place.offer("pair_1", offered)
    clock.now += later
    with refused("bad_pairing"):
        place.visit(Recorded(), pairing="pair_1")


def test_a_withdrawn_pairing_and_one_that_never_was_are_refused() -> None:
    _, place, _ = connected()
    place.offer("pair_1", 60)
    place.withdraw("pair_1")
    for name in ("pair_1", "pair_2", ""):
        with refused("bad_pairing"):
            place.visit(Recorded(), pairing=name)


def test_a_device_takes_no_more_than_its_share_of_a_host() -> None:
    _, place, _ = connected()
    place.admit(frozenset((ANN, BOB)))
    visits = [place.visit(Recorded(), device=ANN) for _ in range(MAX_OF_DEVICE)]
    with refused("rate_limited"):
        place.visit(Recorded(), device=ANN)
    place.visit(Recorded(), device=BOB)
    visits[0].leave("gone")
    place.visit(Recorded(), device=ANN)


def test_paired_devices_keep_nobody_from_pairing() -> None:
    _, place, _ = connected()
    devices = [number.to_bytes(32) for number in range(MAX_CONNECTIONS // MAX_OF_DEVICE)]
    place.admit(frozenset((ANN, *devices)))
    for device in devices * MAX_OF_DEVICE:
        place.visit(Recorded(), device=device)
    with refused("rate_limited"):
        place.visit(Recorded(), device=ANN)
    place.offer("pair_1", 60)
    place.visit(Recorded(), pairing="pair_1")


def test_too_many_who_pair_do_not_use_up_a_pairing() -> None:
    _, place, _ = connected()
    visits: list[Visit] = []
    for number in range(MAX_PAIRINGS):
        place.offer(f"pair_{number}", 60)
        visits.append(place.visit(Recorded(), pairing=f"pair_{number}"))
    place.offer("pair_1", 60)
    with refused("rate_limited"):
        place.visit(Recorded(), pairing="pair_1")
    place.visit(Recorded(), device=ANN)
    visits[0].leave("gone")
    place.visit(Recorded(), pairing="pair_1")


def test_what_a_host_may_name_is_bounded() -> None:
    clock = Clock()
    _, place, _ = connected(clock)
    with refused("bad_params"):
        place.admit(frozenset(number.to_bytes(32) for number in range(MAX_DEVICES + 1)))
    with refused("bad_params"):
        place.admit(frozenset((b"short",)))
    assert place.admitted == {ANN}
    for number in range(MAX_OFFERS):
        place.offer(f"pair_{number}", 60)
    place.offer("pair_0", 30)
    for name in ("one more", "", "x" * 65):
        with refused("bad_params"):
            place.offer(name, 60)
    clock.now += 61
    place.offer("one more", 60)
    assert set(place.offers) == {"one more"}


def test_a_slow_device_leaves_and_the_host_is_told() -> None:
    _, place, host = connected()
    slow = Recorded()
    visit = place.visit(slow, device=ANN)
    slow.full = True
    place.down(visit.sid, b"x")
    place.down(visit.sid, b"y")
    assert host.said == [Close(sid=visit.sid.hex(), reason="the device is too slow")]
    assert slow.ended


def test_a_device_that_sends_more_than_the_host_takes_leaves_and_the_host_stays() -> None:
    _, place, host = connected()
    loud, quiet = Recorded(), Recorded()
    visit = place.visit(loud, device=ANN)
    place.visit(quiet, device=ANN)
    host.crowded = True
    visit.up(b"x")
    assert [said.code for said in loud.said if isinstance(said, Failed)] == ["rate_limited"]
    assert (host.frames, loud.ended, quiet.ended, host.ended) == ([], True, False, False)


def test_before_the_host_has_said_who_may_come_it_is_away_and_nobody_is_unpaired() -> None:
    place = Switch(Clock()).arrive("hst_a", Recorded())
    with refused("host_away"):
        place.visit(Recorded(), device=ANN)
    place.admit(frozenset())
    with refused("unpaired"):
        place.visit(Recorded(), device=ANN)


def test_frames_for_a_visit_that_is_over_go_nowhere() -> None:
    _, place, _ = connected()
    line = Recorded()
    visit = place.visit(line, device=ANN)
    visit.leave("gone")
    place.down(visit.sid, b"late")
    assert line.frames == []


def test_devices_of_a_host_that_departs_hear_that_it_is_away() -> None:
    switch, place, host = connected()
    line = Recorded()
    place.visit(line, device=ANN)
    switch.depart(place)
    assert [said.code for said in line.said if isinstance(said, Failed)] == ["host_away"]
    assert (line.ended, host.ended, switch.hosts, switch.visits) == (True, True, {}, 0)
    with refused("host_away"):
        switch.find("hst_a")


def test_a_host_that_comes_again_takes_its_own_place() -> None:
    switch, former, old = connected()
    line = Recorded()
    former.visit(line, device=ANN)
    new = switch.arrive("hst_a", Recorded())
    assert [said.code for said in old.said if isinstance(said, Failed)] == ["already_running"]
    assert (old.ended, line.ended) == (True, True)
    assert (new.open, new.admitted) == (False, frozenset()), "it says anew who may come"
    switch.depart(former)
    assert switch.find("hst_a") is new, "the end of the old connection does not end the new one"


def test_the_host_hears_who_comes_and_by_which_pairing() -> None:
    _, place, _ = connected()
    visit = place.visit(Recorded(), device=ANN, sid=bytes(16))
    assert opened(visit) == Opened(sid="00" * 16, device=b64(ANN))
    place.offer("pair_1", 60)
    new = place.visit(Recorded(), pairing="pair_1")
    assert opened(new, "pair_1") == Opened(sid=new.sid.hex(), pairing="pair_1")
