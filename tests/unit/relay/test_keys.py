"""The host's keys: who may still come by which identity, and a file that is its owner's alone."""

import base64
import json
import logging
import os
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from trunkline_relay import keys
from trunkline_relay.keys import HostKeys
from trunkline_wire import TrunklineError


def test_they_are_made_once_and_kept_private(tmp_path: Path) -> None:
    made = keys.load(tmp_path)
    path = tmp_path / "keys" / "host.json"
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    assert keys.load(tmp_path) == made
    assert [one.name for one in path.parent.iterdir()] == ["host.json"]


@pytest.mark.parametrize("place", ["keys", "keys/host.json"])
def test_what_others_can_read_is_refused(tmp_path: Path, place: str) -> None:
    keys.load(tmp_path)
    (tmp_path / place).chmod(0o755 if place == "keys" else 0o640)
    with pytest.raises(TrunklineError, match=r"others can get at it: .*chmod (700|600)") as refused:
        keys.load(tmp_path)
    assert refused.value.code == "bad_settings"


@pytest.mark.parametrize("content", ["", "{}", f'{{"route": "{"A" * 43}=", "identities": []}}', '{"route": 1}'])
def test_a_damaged_file_is_told_without_its_content(tmp_path: Path, content: str) -> None:
    made = keys.load(tmp_path)
    path = keys.path_of(tmp_path)
    path.write_text(content)
    with pytest.raises(TrunklineError, match="does not hold a host's keys") as refused:
        keys.load(tmp_path)
    assert refused.value.__cause__ is None
    assert base64.b64encode(made.newest.secret).decode() not in str(refused.value)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    keys.load(tmp_path)
    path = keys.path_of(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TrunklineError, match="can't be read"):
        keys.load(tmp_path)


def test_nothing_of_them_is_in_a_repr_or_a_log(caplog: pytest.LogCaptureFixture) -> None:
    made = HostKeys.new()
    logging.getLogger("x").warning("keys", extra={"host_keys": made})
    for secret in (made.route.seed, made.newest.secret):
        for shown in (repr(made), str(made), repr(caplog.records[-1].__dict__)):
            assert repr(secret)[2:-1] not in shown
            assert base64.b64encode(secret).decode() not in shown


def test_a_device_that_is_missing_makes_a_new_identity_and_the_others_keep_the_old_until_they_know_it(
    tmp_path: Path,
) -> None:
    before = HostKeys.new().joined("ann").joined("bob").joined("eve")
    old = before.newest.public
    assert before.seen(frozenset({"ann", "bob", "eve", "new"})).newest.public == old
    after = before.seen(frozenset({"ann", "bob"}))
    new = after.newest.public
    assert new != old
    assert after.route == before.route
    assert [after.may_use(name, old) for name in ("ann", "bob", "eve", "late")] == [True, True, False, False]
    assert after.came("ann", old) == after
    ann_knows = after.came("ann", new)
    assert [ann_knows.may_use(name, old) for name in ("ann", "bob")] == [False, True]
    assert [one.public for one in ann_knows.came("bob", new).all()] == [new]
    keys.save(tmp_path, ann_knows)
    assert keys.load(tmp_path) == ann_knows


def test_identities_have_rising_numbers_that_stay(tmp_path: Path) -> None:
    first = HostKeys.new().joined("ann").joined("bob").joined("eve")
    second = first.seen(frozenset({"ann", "bob"}))
    keys.save(tmp_path, second.came("ann", second.newest.public).came("bob", second.newest.public))
    second = keys.load(tmp_path)
    third = second.seen(frozenset({"ann"}))
    assert [one.number for one in (*first.identities, *second.identities, *third.identities)] == [1, 2, 3, 2]
    old, new = (base64.b64encode(one.newest.public).decode() for one in (second, third))
    assert third.told(third.newest.public) == {"identity": new, "number": 3}
    assert third.told(second.newest.public) == {"identity": old, "number": 2}


def test_a_file_without_numbers_loads_and_its_identities_get_theirs(tmp_path: Path) -> None:
    """As versions before numbers wrote it."""
    first = HostKeys.new().joined("ann").joined("eve")
    second = first.seen(frozenset({"ann"}))
    keys.save(tmp_path, second)
    path = keys.path_of(tmp_path)
    former = json.loads(path.read_text())
    for one in former["identities"]:
        del one["number"]
    path.write_text(json.dumps(former))
    assert keys.load(tmp_path) == second
    assert [one.number for one in keys.load(tmp_path).identities] == [2, 1]


def test_two_revocations_leave_each_device_what_it_may_know() -> None:
    first = HostKeys.new().joined("ann").joined("bob").joined("eve").joined("mal")
    second = first.seen(frozenset({"ann", "bob", "mal"}))
    second = second.came("ann", second.newest.public)
    third = second.seen(frozenset({"ann", "bob"}))
    oldest, old = first.newest.public, second.newest.public
    assert [third.may_use("ann", one) for one in (oldest, old)] == [False, True]
    assert [third.may_use("bob", one) for one in (oldest, old)] == [True, True]
    assert not any(third.may_use("mal", one) for one in (oldest, old))
    # Who comes by the one in between needs the oldest no more.
    assert [one.public for one in third.came("bob", old).all()] == [third.newest.public, old]


def test_the_last_device_revoked_leaves_one_identity() -> None:
    before = HostKeys.new().joined("eve")
    after = before.seen(frozenset())
    assert [one.public != before.newest.public for one in after.all()] == [True]
    assert replace(after, identities=before.identities, paired=before.paired) == before


def test_a_saved_file_is_there_after_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, synced, sync = keys.path_of(tmp_path), list[str](), os.fsync

    def noted(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append("its directory, with it" if name == path.parent and path.exists() else name.name)
        sync(descriptor)

    monkeypatch.setattr("os.fsync", noted)
    keys.save(tmp_path, HostKeys.new())
    assert synced == [f".host.json.{os.getpid()}", "its directory, with it"]
