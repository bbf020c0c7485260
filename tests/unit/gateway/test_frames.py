"""Frames of stored events: what this gateway can't decode is shown as it is, what no client could read is left out."""

import json

from trunkline_bus.stored import make
from trunkline_gateway.ring import WsFrames, frame_of
from trunkline_wire import subjects

SUBJECT = "trunk.ev.0.ses_00000000000000000000000000000000.agent.fact"


def test_an_event_of_a_schema_to_come_is_framed_verbatim() -> None:
    raw = b'{"type":"message.assistant","v":99,"data":{"unheard_of":true}}'
    stored = make("EVENTS", 7, SUBJECT, {subjects.HEADER_TYPE: "message.assistant"}, raw, 0)
    frame = frame_of(stored, "ses_x", "cursor")
    assert frame is not None
    assert json.loads(WsFrames("sub").event(frame)) == {
        "type": "event",
        "subscription": "sub",
        "event": "message.assistant",
        "cursor": "cursor",
        "payload": {"type": "message.assistant", "v": 99, "data": {"unheard_of": True}},
    }
    assert frame.sequence == 7


def test_what_is_no_json_would_break_the_frame_and_is_left_out() -> None:
    for raw in (b"", b"junk", b'{"a":', b'{"a":1}}'):
        assert frame_of(make("EVENTS", 7, SUBJECT, None, raw, 0), "ses_x", "cursor") is None
