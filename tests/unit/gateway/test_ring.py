import pytest

from trunkline_gateway import ring as rings_of
from trunkline_gateway.ring import Frame, Rings, SseFrames, WsFrames, make_frame
from trunkline_wire import decode_json


def frame(sequence: int, size: int = 10) -> Frame:
    return make_frame(sequence, "turn.started", "ses_x", f"c{sequence}", b'{"x":"' + b"y" * size + b'"}')


def sequences(frames: list[Frame] | None) -> list[int] | None:
    return None if frames is None else [one.sequence for one in frames]


def test_the_ring_has_everything_above_its_floor() -> None:
    ring = Rings().open(100)
    assert sequences(ring.above(100)) == []
    assert ring.above(99) is None
    for sequence in (103, 110, 111):
        ring.append(frame(sequence))
    assert sequences(ring.above(100)) == [103, 110, 111]
    assert sequences(ring.above(103)) == [110, 111]
    assert sequences(ring.above(105)) == [110, 111]
    assert sequences(ring.above(200)) == []


def test_the_oldest_of_all_go_and_their_floor_rises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rings_of, "MAX_BYTES", 5 * frame(1).size)
    rings = Rings()
    quiet, busy = rings.open(0), rings.open(0)
    quiet.append(frame(1))
    for sequence in range(2, 7):
        busy.append(frame(sequence))
    assert (quiet.floor, busy.floor) == (1, 0)
    assert quiet.above(0) is None
    busy.append(frame(7))
    assert busy.above(1) is None
    assert sequences(busy.above(2)) == [3, 4, 5, 6, 7]


def test_one_frame_always_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rings_of, "MAX_BYTES", 1000)
    ring = Rings().open(0)
    ring.append(frame(1))
    ring.append(frame(2, 10_000))
    assert sequences(ring.above(1)) == [2]


def test_a_closed_ring_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rings_of, "MAX_BYTES", 2 * frame(1).size)
    rings = Rings()
    gone, stays = rings.open(0), rings.open(0)
    stays.append(frame(1))
    gone.append(frame(2))
    rings.close(gone)
    stays.append(frame(3))
    assert sequences(stays.above(0)) == [1, 3]
    stays.append(frame(4))
    assert sequences(stays.above(1)) == [3, 4]


def test_frames_as_clients_see_them() -> None:
    shown = decode_json(WsFrames('sub_"1').event(frame(5)))
    assert shown == {
        "type": "event",
        "subscription": 'sub_"1',
        "event": "turn.started",
        "cursor": "c5",
        "payload": {"x": "y" * 10},
    }
    assert decode_json(WsFrames("s").gap(b'{"reason":"erased"}')) == {
        "type": "event",
        "subscription": "s",
        "event": "gap",
        "payload": {"reason": "erased"},
    }
    spread = make_frame(1, "a.b", "ses_x", "c", b'{\n"x":\r\n1}')
    assert SseFrames().event(spread) == b'id: c\nevent: a.b\ndata: { "x":  1}\n\n'
