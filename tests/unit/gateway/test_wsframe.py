"""Frames of RFC 6455, section 5.2: FIN and opcode 1, then the length in 7, 16 or 64 bits."""

import pytest

from trunkline_gateway.wsframe import text_frames


@pytest.mark.parametrize(
    ("size", "head"),
    [
        (0, b"\x81\x00"),
        (125, b"\x81\x7d"),
        (126, b"\x81\x7e\x00\x7e"),
        (65535, b"\x81\x7e\xff\xff"),
        (65536, b"\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00"),
    ],
)
def test_the_length_is_coded_as_the_rfc_says(size: int, head: bytes) -> None:
    assert text_frames([b"x" * size]) == head + b"x" * size


def test_many_in_one_buffer() -> None:
    assert text_frames([b"a", b"bc"]) == b"\x81\x01a\x81\x02bc"
