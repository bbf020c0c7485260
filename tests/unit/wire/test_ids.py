"""Ids and partitions."""

import hashlib
import re
import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_wire import TrunklineError, ids, subjects

HEX = st.text("0123456789abcdef", min_size=32, max_size=32)


def test_an_event_id_is_a_uuid7_of_now() -> None:
    before = time.time_ns() // 1_000_000
    event_id = ids.new_event_id()
    after = time.time_ns() // 1_000_000
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", event_id)
    assert before <= int(event_id.replace("-", "")[:12], 16) <= after


def test_event_ids_sort_by_time_and_do_not_repeat() -> None:
    made = [ids.new_event_id() for _ in range(2000)]
    assert len(set(made)) == 2000
    # 12 bits of the fraction of a millisecond: ids made 2 ms apart are in order
    first = ids.new_event_id()
    deadline = time.monotonic_ns() + 2_000_000
    while time.monotonic_ns() < deadline:
        pass
    assert first < ids.new_event_id()


@pytest.mark.parametrize("make", [ids.new_session_id, ids.new_command_id, ids.new_host_id, ids.new_worker_id])
def test_minted_ids_are_ids_of_their_prefix(make: object) -> None:
    assert callable(make)
    value = str(make())
    assert ids.is_id(value, value.split("_", maxsplit=1)[0])


@given(HEX)
def test_an_item_is_the_same_for_the_same_native_id_and_no_other(native: str) -> None:
    one = ids.item_id("ses_a", "inc", native)
    assert one == ids.item_id("ses_a", "inc", native)
    assert ids.is_id(one, "itm")
    assert len({one[4:], ids.item_id("ses_b", "inc", native)[4:], ids.item_id("ses_a", "inc2", native)[4:]}) == 3


def test_parts_of_a_hash_do_not_run_into_each_other() -> None:
    assert ids.ask_id("ses_a", "b", "c") != ids.ask_id("ses_a", "bc", "")
    assert ids.ask_id("ses_a", "b", "c")[4:] == ids.item_id("ses_a", "b", "c")[4:]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "ses_",
        "ses_" + "0" * 31,
        "ses_" + "0" * 33,
        "ses_" + "G" * 32,
        "ses_" + "A" * 32,
        "itm_" + "0" * 32,
        "ses_" + "0" * 32 + "\n",
        "ses_" + "0" * 31 + ".",
    ],
)
def test_what_is_no_session_id_never_reaches_a_subject(value: str) -> None:
    assert not ids.is_id(value, "ses")
    for subject in (subjects.agent_fence, subjects.session_events, subjects.delta, subjects.session_commands):
        with pytest.raises(TrunklineError) as refused:
            subject(value)
        assert refused.value.code == "bad_id"


@pytest.mark.parametrize("value", ["", "a.b", "a b", "*", ">", "a" * 65, "é", "a\n"])
def test_what_is_no_token_never_reaches_a_subject(value: str) -> None:
    with pytest.raises(TrunklineError):
        subjects.command("ses_" + "0" * 32, value)


def test_a_partition_is_crc32_modulo_64() -> None:
    """CRC-32 of `123456789` is cbf43926 by its definition; 0x26 is 38."""
    assert ids.partition("123456789") == 0x26
    assert ids.PARTITIONS == 64


@given(HEX)
def test_every_session_has_one_partition_and_its_subjects_say_so(digits: str) -> None:
    session = f"ses_{digits}"
    assert 0 <= ids.partition(session) < 64
    assert ids.partition(session) == zlib.crc32(session.encode()) & 63
    parsed = subjects.parse(subjects.event(session, "agent.fact"))
    assert parsed == subjects.Parsed("ev", session, "agent.fact")
    assert subjects.event(session, "permission").split(".")[2] == subjects.delta(session).split(".")[2]


def test_partitions_are_even() -> None:
    counts = [0] * 64
    for _ in range(6400):
        counts[ids.partition(ids.new_session_id())] += 1
    assert min(counts) > 50
    assert max(counts) < 160


def test_subjects_parse_back() -> None:
    session = "ses_" + "0" * 32
    assert subjects.parse(subjects.command(session, "web")) == subjects.Parsed("cmd", session, "web")
    assert subjects.parse(subjects.answer(session, "web")) == subjects.Parsed("answer", session, "web")
    assert subjects.parse("trunk.sys.tokens") is None
    assert subjects.parse("other.ev.1.x.y") is None


@given(st.integers(0, 2**48 - 1), st.text(max_size=20), st.text(max_size=20))
def test_ids_of_what_is_imported_follow_from_it_alone(millis: int, native: str, place: str) -> None:
    session = ids.imported_session_id("claude", native, millis)
    assert ids.is_id(session, "ses")
    assert int(session.removeprefix("ses_")[:12], 16) == millis
    assert ids.imported_session_id("claude", native, millis) == session
    assert ids.imported_session_id("codex", native, millis) != session
    event = ids.imported_event_id(session, place, millis)
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", event)
    assert ids.imported_event_id(session, place, millis) == event
    assert ids.imported_event_id(session, f"{place}/1", millis) != event


def test_an_id_of_what_is_imported_is_a_hash_in_the_form_of_a_uuid7() -> None:
    """Derived from RFC 9562: 48 bits of time, version 7, variant 10; the rest are the low 74 bits of ten bytes of SHA-256."""
    digest = int.from_bytes(hashlib.sha256(b"claude\x00native").digest()[:10])
    bits = (1_767_323_045_678 << 80) | (7 << 76) | ((digest >> 62 & 0xFFF) << 64) | (2 << 62) | (digest & (2**62 - 1))
    assert ids.imported_session_id("claude", "native", 1_767_323_045_678) == f"ses_{bits:032x}"
