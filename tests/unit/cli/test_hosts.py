"""The records of paired hosts: names, what may be overwritten, and a host's newer identity."""

import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from trunkline_cli import hosts
from trunkline_client import Paired
from trunkline_wire import TrunklineError

BOX = Paired(
    relay="https://relay.example",
    host="Ann's box",
    route=b"r" * 32,
    identity=b"i" * 32,
    device="dev_1",
    actor="ann",
    role="owner",
    seed=b"s" * 32,
    secret=b"t" * 32,
    token="tl_1",
    key=b"k" * 32,
)
OTHER = replace(BOX, route=b"o" * 32)


def test_a_host_gets_its_own_name_or_the_next_that_is_free(tmp_path: Path) -> None:
    assert hosts.save(tmp_path, None, BOX) == "Ann-s-box"
    assert hosts.save(tmp_path, None, OTHER) == "Ann-s-box-2"
    assert hosts.save(tmp_path, None, replace(BOX, device="dev_2")) == "Ann-s-box"
    assert hosts.names(tmp_path) == ["Ann-s-box", "Ann-s-box-2"]
    assert hosts.load(tmp_path, "Ann-s-box").device == "dev_2"


def test_another_hosts_keys_are_not_overwritten(tmp_path: Path) -> None:
    hosts.save(tmp_path, "box", BOX)
    with pytest.raises(TrunklineError) as refused:
        hosts.save(tmp_path, "box", OTHER)
    assert refused.value.code == "bad_params"
    assert hosts.load(tmp_path, "box") == BOX


def test_a_newer_identity_is_written_down_and_nothing_comes_back_after_forget(tmp_path: Path) -> None:
    hosts.save(tmp_path, "box", BOX)
    sealed = hosts.address(tmp_path, "box").sealed
    assert sealed is not None
    sealed.learn(b"n" * 32, 2)
    assert hosts.load(tmp_path, "box") == replace(BOX, identity=b"n" * 32, number=2)
    hosts.forget(tmp_path, "box")
    sealed.learn(b"m" * 32, 3)
    assert hosts.names(tmp_path) == []


def test_what_another_program_has_learned_is_not_undone(tmp_path: Path) -> None:
    hosts.save(tmp_path, "box", BOX)
    one, other = (hosts.address(tmp_path, "box").sealed for _ in range(2))
    assert one is not None
    assert other is not None
    one.learn(b"n" * 32, 2)
    assert other.look().identity == b"n" * 32
    # Paired again meanwhile: a connection of before has nothing to say any more.
    again = replace(BOX, device="dev_2", token="tl_2", secret=b"u" * 32)
    hosts.save(tmp_path, "box", again)
    one.learn(b"m" * 32, 3)
    assert hosts.load(tmp_path, "box") == again
    assert other.look() == again


def test_a_program_that_hears_late_undoes_nothing(tmp_path: Path) -> None:
    hosts.save(tmp_path, "box", BOX)
    slow, quick = (hosts.address(tmp_path, "box").sealed for _ in range(2))
    assert slow is not None
    assert quick is not None
    quick.learn(b"m" * 32, 3)
    slow.learn(b"n" * 32, 2)
    assert (slow.look().identity, slow.look().number) == (b"m" * 32, 3)


def test_two_programs_that_learn_at_the_same_time_end_with_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts.save(tmp_path, "box", BOX)
    slow, quick = (hosts.address(tmp_path, "box").sealed for _ in range(2))
    assert slow is not None
    assert quick is not None
    load, other = hosts.load, threading.Thread(target=quick.learn, args=(b"m" * 32, 3))

    def between(home: Path, name: str) -> Paired:
        """The other one would be through between this one's reading and writing, if it were let."""
        found = load(home, name)
        if threading.current_thread() is not other:
            other.start()
            other.join(0.2)
        return found

    monkeypatch.setattr(hosts, "load", between)
    slow.learn(b"n" * 32, 2)
    other.join()
    assert load(tmp_path, "box").number == 3


def test_a_name_that_is_another_hosts_by_now_leads_nowhere(tmp_path: Path) -> None:
    hosts.save(tmp_path, "box", BOX)
    sealed = hosts.address(tmp_path, "box").sealed
    assert sealed is not None
    hosts.forget(tmp_path, "box")
    for name in (None, "box"):
        if name is not None:
            hosts.save(tmp_path, name, OTHER)
        with pytest.raises(TrunklineError) as refused:
            sealed.look()
        assert refused.value.code == "unpaired"
    sealed.learn(b"n" * 32, 2)
    assert hosts.load(tmp_path, "box") == OTHER
