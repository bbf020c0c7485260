from trunkline_gateway import ring as rings
from trunkline_gateway.ring import Frame, Ring, SseFrames, WsFrames, make_frame
from trunkline_wire import decode_json


def frame(sequence: int, size: int = 10) -> Frame:
    return make_frame(sequence, "turn.started", "ses_x", f"c{sequence}", b'{"x":"' + b"y" * size + b'"}')


def sequences(frames: list[Frame] | None) -> list[int] | None:
    return None if frames is None else [one.sequence for one in frames]


def test_the_ring_has_everything_above_its_floor() -> None:
    ring = Ring(100)
    assert sequences(ring.above(100)) == []
    assert ring.above(99) is None
    for sequence in (103, 110, 111):
        ring.append(frame(sequence))
    assert sequences(ring.above(100)) == [103, 110, 111]
    assert sequences(ring.above(103)) == [110, 111]
    assert sequences(ring.above(105)) == [110, 111]
    assert sequences(ring.above(200)) == []


def test_the_oldest_go_and_the_floor_rises() -> None:
    ring = Ring(0)
    for sequence in range(1, rings.MAX_FRAMES + 11):
        ring.append(frame(sequence))
    assert ring.floor == 10
    assert ring.above(9) is None
    assert sequences(ring.above(10)) == list(range(11, rings.MAX_FRAMES + 11))


def test_bytes_are_bounded_but_one_frame_always_fits() -> None:
    ring = Ring(0)
    for sequence in range(1, 11):
        ring.append(frame(sequence, 1_000_000))
    assert sequences(ring.above(ring.floor)) == [7, 8, 9, 10]
    ring.append(frame(11, 10_000_000))
    assert sequences(ring.above(10)) == [11]


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
