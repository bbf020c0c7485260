r"""Escapes of lone surrogates become \ufffd; pairs and escaped backslashes stay."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_wire import decode_json, replace_lone_surrogates


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\uD83D\uDE00"', rb'"\uD83D\uDE00"'),
        (rb'"\ud83d"', rb'"\ufffd"'),
        (rb'"\ude00"', rb'"\ufffd"'),
        (rb'"\ude00\ud83d"', rb'"\ufffd\ufffd"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\ud83d\ude00\ude00"', rb'"\ud83d\ude00\ufffd"'),
        (rb'"\ud83dx\ude00"', rb'"\ufffdx\ufffd"'),
        (rb'"\\ud83d"', rb'"\\ud83d"'),
        (rb'"\\\ud83d"', rb'"\\\ufffd"'),
        (rb'"\\\\ud83d"', rb'"\\\\ud83d"'),
        (rb'"\\\ud83d\ude00"', rb'"\\\ud83d\ude00"'),
        (rb'"\ud83d\\ude00"', rb'"\ufffd\\ude00"'),
        (rb'"\n\ud83d\n"', rb'"\n\ufffd\n"'),
        (rb'"\u00e9 \ud7ff \ue000"', rb'"\u00e9 \ud7ff \ue000"'),
        (rb'{"\udc00":["\udbff"]}', rb'{"\ufffd":["\ufffd"]}'),
        (b"plain \xf0\x9f\x98\x80", b"plain \xf0\x9f\x98\x80"),
    ],
)
def test_cases(line: bytes, expected: bytes) -> None:
    assert replace_lone_surrogates(line) == expected


pieces = st.lists(
    st.one_of(
        st.text(max_size=3),
        st.integers(0xD800, 0xDFFF).map(chr),
        st.sampled_from(["\\", "\\u", "ud800", '"', "\n", "\U0001f600"]),
    ),
    max_size=12,
)


@given(pieces)
def test_any_text_of_javascript_becomes_readable_and_nothing_else_changes(parts: list[str]) -> None:
    units = "".join(parts).encode("utf-16-be", "surrogatepass")
    line = json.dumps("".join(parts)).encode()  # like JSON.stringify, with every unit beyond ASCII escaped
    assert decode_json(replace_lone_surrogates(line)) == _well_formed(units)


def _well_formed(units: bytes) -> str:
    """String.prototype.toWellFormed of JavaScript, written from its definition."""
    codes = [int.from_bytes(units[n : n + 2], "big") for n in range(0, len(units), 2)]
    out: list[str] = []
    n = 0
    while n < len(codes):
        code = codes[n]
        if 0xD800 <= code < 0xDC00 and n + 1 < len(codes) and 0xDC00 <= codes[n + 1] < 0xE000:
            out.append(chr(0x10000 + ((code - 0xD800) << 10) + (codes[n + 1] - 0xDC00)))
            n += 2
            continue
        out.append("\ufffd" if 0xD800 <= code < 0xE000 else chr(code))
        n += 1
    return "".join(out)
