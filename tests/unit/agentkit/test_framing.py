"""Framing: lines of any length however they are cut, and lines that are no proper JSON."""

import itertools
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_agentkit.framing import LineSplitter, decode_line, frame, kind_of

lines = st.lists(
    st.binary(min_size=1).filter(lambda line: b"\n" not in line and not line.endswith(b"\r") and line.strip())
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[begin:end] for begin, end in itertools.pairwise(edges)]


@given(lines, st.lists(st.integers(min_value=0)), st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\n \r\n"]), st.booleans())
def test_however_a_stream_is_cut_the_lines_come_whole(
    sent: list[bytes], places: list[int], end: bytes, ended: bool
) -> None:
    data = end.join(sent) + (end if ended else b"")
    splitter = LineSplitter()
    found: list[bytes] = []
    for piece in cut(data, places):
        found += splitter.feed(piece)
    found += splitter.end()
    assert found == sent
    assert splitter.pending == 0


def test_a_character_cut_in_two_is_one_character() -> None:
    splitter = LineSplitter()
    line = '{"text":"grün 🚀"}'.encode()
    assert splitter.feed(line[:12]) == []
    assert splitter.pending == 12
    assert splitter.feed(line[12:16]) == []
    (whole,) = splitter.feed(line[16:] + b"\n")
    assert decode_line(whole).message == {"text": "grün 🚀"}


def test_64_megabytes_in_small_pieces_take_linear_time() -> None:
    piece = b"x" * 65536
    splitter = LineSplitter()
    begin = time.perf_counter()
    for _ in range(1024):
        assert splitter.feed(piece) == []
    (line,) = splitter.feed(b"\nafter\n")[:1]
    assert len(line) == 64 * 1024 * 1024
    # Joining anew with every piece would copy 32 GB.
    assert time.perf_counter() - begin < 5


def test_a_frame_is_one_line_or_nothing() -> None:
    assert frame({"b": 1, "a": "x\ny"}) == b'{"a":"x\\ny","b":1}\n'
    assert frame(b'{"raw":1}') == b'{"raw":1}\n'
    with pytest.raises(ValueError, match="line end"):
        frame(b'{"a":\n1}')


@pytest.mark.parametrize(
    ("line", "message", "reason"),
    [
        (b'{"type":"x"}', {"type": "x"}, None),
        (b'{"text":"a\\ud83d!"}', {"text": "a\ufffd!"}, None),
        (b'{"text":"\xff\xfe"}', {"text": "\ufffd\ufffd"}, None),
        (b'{"text":"\\ud83d\\ude80"}', {"text": "🚀"}, None),
        (b"[1,2]", None, "not_an_object"),
        (b"*** update available ***", None, "not_json"),
        (b'{"cut":', None, "not_json"),
    ],
)
def test_what_an_agent_prints_is_read_or_kept(line: bytes, message: object, reason: str | None) -> None:
    decoded = decode_line(line)
    assert decoded.message == message
    assert decoded.reason == reason
    json.loads(decoded.raw)  # fit for an event's `native`, whatever it was


@given(st.binary().filter(lambda line: b"\n" not in line))
def test_any_bytes_become_json(line: bytes) -> None:
    json.loads(decode_line(line).raw)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"type": "system", "subtype": "init"}, "system/init"),
        ({"method": "session/update", "params": {}}, "session/update"),
        ({"type": 7}, "?"),
        ({}, "?"),
        (None, "?"),
    ],
)
def test_a_messages_kind_is_the_agents_own_word(message: dict[str, object] | None, kind: str) -> None:
    assert kind_of(message) == kind
