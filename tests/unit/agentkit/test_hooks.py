"""Which calls of hooks are repetitions, how many are taken, and where they go."""

import stat
from pathlib import Path

import pytest

from trunkline_agentkit.hook_receiver import Rate, Seen
from trunkline_agentkit.hooks import (
    Hook,
    endpoint_file,
    ensure_endpoint,
    read_endpoint,
    read_settings,
    write_settings,
)
from trunkline_wire import TrunklineError


def hook(id: str, *, once: bool = False) -> Hook:
    return Hook(id=id, event="Stop", native_session="x", input={}, once=once)


def test_what_happens_once_is_known_for_long() -> None:
    seen = Seen()
    assert not seen.again(hook("a", once=True), 0)
    assert seen.again(hook("a", once=True), 1)
    assert seen.again(hook("a", once=True), 100_000)


def test_what_may_happen_again_is_a_repetition_for_a_moment() -> None:
    seen = Seen()
    assert not seen.again(hook("a"), 0)
    assert seen.again(hook("a"), 1.9)
    assert not seen.again(hook("a"), 4)
    assert not seen.again(hook("b"), 4)


def test_only_the_latest_calls_are_remembered() -> None:
    seen = Seen(kept=2)
    for id in ("a", "b", "c"):
        assert not seen.again(hook(id, once=True), 0)
    assert not seen.again(hook("a", once=True), 0)
    assert seen.again(hook("c", once=True), 0)


def test_a_burst_is_taken_and_then_so_many_a_second() -> None:
    rate = Rate(per_second=10, burst=3)
    assert [rate.allows(100.0) for _ in range(4)] == [True, True, True, False]
    assert [rate.allows(100.2) for _ in range(3)] == [True, True, False]
    assert [rate.allows(200.0) for _ in range(4)] == [True, True, True, False]


def test_an_endpoint_is_minted_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert read_endpoint(home) is None
    minted = ensure_endpoint(home)
    assert ensure_endpoint(home) == minted == read_endpoint(home)
    assert len(minted.secret) >= 43
    assert stat.S_IMODE(endpoint_file(home).stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"{}", b'{"port": 0, "secret": "short"}', b"\xff"])
def test_a_damaged_endpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    endpoint_file(tmp_path).write_bytes(content)
    with pytest.raises(TrunklineError) as refused:
        read_endpoint(tmp_path)
    assert refused.value.code == "bad_settings"


def test_settings_are_replaced_whole_and_private(tmp_path: Path) -> None:
    file, link = tmp_path / "dotfiles" / "settings.json", tmp_path / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(file)
    assert read_settings(link) == {}
    write_settings(link, {"model": "opus", "äh": [1]})
    assert link.is_symlink()
    assert file.read_text() == '{\n  "model": "opus",\n  "äh": [\n    1\n  ]\n}\n'
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_settings(link) == {"model": "opus", "äh": [1]}


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'{"a": 1} // no comment'])
def test_settings_that_cannot_be_read_stay(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(content)
    with pytest.raises(TrunklineError) as refused:
        read_settings(file)
    assert refused.value.code == "bad_settings"
    assert file.read_bytes() == content
