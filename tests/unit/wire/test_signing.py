"""The bytes that a device signs, against openssl and in the words of the definition."""

import itertools

import pytest

from trunkline_wire import TrunklineError
from trunkline_wire.signing import answer_mac, signed_bytes

ASK = "ask_00112233445566778899aabbccddeeff"
TIME = "2026-11-27T21:20:10Z"
NONCE = "000102030405060708090a0b0c0d0e0f"
KEY = bytes(range(32))


def test_the_bytes_are_five_lines() -> None:
    assert signed_bytes(ASK, "allow", TIME, NONCE) == (
        b"trunkline-answer-1\nask_00112233445566778899aabbccddeeff\nallow\n2026-11-27T21:20:10Z\n"
        b"000102030405060708090a0b0c0d0e0f"
    )


def test_a_known_answer() -> None:
    # printf 'trunkline-answer-1\nask_…\nallow\n…' | openssl dgst -sha256 -mac HMAC -macopt hexkey:000102…1f
    expected = "ae924ae891d06c0ead41399a518c12bbd31595ae7e0b387d4c3b3a8aec68f03f"
    assert answer_mac(KEY, ASK, "allow", TIME, NONCE) == expected


@pytest.mark.parametrize(
    ("ask", "behaviour", "time", "nonce", "code"),
    [
        (f"{ASK}\n", "allow", TIME, NONCE, "bad_id"),
        ("ses_00112233445566778899aabbccddeeff", "allow", TIME, NONCE, "bad_id"),
        (ASK, "allow\ndeny", TIME, NONCE, "bad_answer"),
        (ASK, "maybe", TIME, NONCE, "bad_answer"),
        (ASK, "allow", "2026-11-27T21:20:10+00:00", NONCE, "bad_answer"),
        (ASK, "allow", f"{TIME}\n", NONCE, "bad_answer"),
        (ASK, "allow", "٢٠٢٦-11-27T21:20:10Z", NONCE, "bad_answer"),
        (ASK, "allow", TIME, NONCE.upper(), "bad_answer"),
        (ASK, "allow", TIME, NONCE[:-2], "bad_answer"),
        (ASK, "allow", TIME, f"{NONCE}\n", "bad_answer"),
    ],
)
def test_parts_of_another_form_are_not_signed(ask: str, behaviour: str, time: str, nonce: str, code: str) -> None:
    with pytest.raises(TrunklineError) as refused:
        signed_bytes(ask, behaviour, time, nonce)
    assert refused.value.code == code


def test_whatever_differs_has_another_signature() -> None:
    parts = [
        (ASK, ASK.replace("0011", "1100")),
        ("allow", "deny", "answered"),
        (TIME, "2026-11-27T21:20:11Z", "2026-11-27T21:20:10.0Z"),
        (NONCE, NONCE[::-1]),
    ]
    macs = {answer_mac(KEY, *each) for each in itertools.product(*parts)}
    assert len(macs) == 2 * 3 * 3 * 2
    assert answer_mac(bytes(32), ASK, "allow", TIME, NONCE) not in macs
