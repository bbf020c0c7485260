"""Encoding and decoding: round trips, the same bytes, refusals."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_testkit import strategies
from trunkline_wire import CATALOGUE, Event, TrunklineError, UnknownData, codec, decode_event, encode, make_event
from trunkline_wire.blocks import TextBlock
from trunkline_wire.events import UnknownEvent
from trunkline_wire.session import SessionCreated, SessionOptions
from trunkline_wire.turn import MessageAssistant, TurnStarted

SESSION = "ses_" + "0123456789abcdef" * 2
TIME = "2026-11-27T21:20:10.476123Z"
ID = "01a21ed2-a7a6-7852-8213-e67a374f3aa3"

every_event: st.SearchStrategy[Event] = st.sampled_from(sorted(CATALOGUE)).flatmap(
    lambda name: strategies.events(CATALOGUE[name], session=SESSION)
)


def event_bytes(type_: str = "turn.started", data: Any = None, **fields: Any) -> bytes:
    value = {"id": ID, "v": 1, "session": SESSION, "time": TIME, "type": type_, "data": data or {"number": 1}, **fields}
    return json.dumps(value).encode()


@given(every_event)
def test_what_was_encoded_decodes_to_itself(event: Event) -> None:
    raw = encode(event)
    again = decode_event(raw, strict=True)
    assert (type(again.data), again.data) == (type(event.data), event.data)
    assert encode(again) == raw
    assert decode_event(raw) == event


@given(every_event)
def test_the_order_of_keys_and_spaces_do_not_matter(event: Event) -> None:
    raw = encode(event)

    def backwards(value: Any) -> Any:
        match value:
            case dict():
                return {key: backwards(value[key]) for key in reversed(value)}
            case list():
                return [backwards(entry) for entry in value]
            case _:
                return value

    value = backwards(msgspec.json.decode(raw))
    shuffled = msgspec.json.format(msgspec.json.encode({**value, "native": None}), indent=3)
    expected = encode(msgspec.structs.replace(event, native=msgspec.Raw(b"null")))
    assert encode(decode_event(shuffled)) == expected


def test_bytes_of_an_event_are_these() -> None:
    event = make_event(TurnStarted(number=2), session=SESSION, time=TIME, id=ID, seq=7, epoch=1, origin=(3, 1, 2))
    assert encode(event) == (
        b'{"data":{"number":2},"epoch":1,"id":"01a21ed2-a7a6-7852-8213-e67a374f3aa3","origin":[3,1,2],"seq":7,'
        b'"session":"ses_0123456789abcdef0123456789abcdef","time":"2026-11-27T21:20:10.476123Z","type":"turn.started","v":1}'
    )


def test_native_is_kept_byte_for_byte() -> None:
    native = b'{"b": 1,  "a": 12345678901234567890123, "c":"\\u00e9"}'
    raw = event_bytes().replace(b'"v": 1', b'"v": 1, "native": ' + native)
    event = decode_event(raw)
    assert bytes(event.native) == native
    assert native in encode(event)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (event_bytes(colour="red"), "colour"),
        (event_bytes(data={"number": 1, "colour": "red"}), "data.colour"),
        (event_bytes(source={"actor": "me", "colour": 1}), "source.colour"),
        (
            event_bytes(
                "message.assistant", {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "x": 1}]}
            ),
            "data.content[1].x",
        ),
        (
            event_bytes(
                "message.assistant", {"content": [{"type": "text", "text": {"sha256": "0", "size": 1, "x": 1}}]}
            ),
            "data.content[0].text.x",
        ),
        (
            event_bytes(
                "session.created",
                {"adapter": "a", "cwd": "/", "host": "h", "workspace": "w", "options": {"modal": "opus"}},
            ),
            "data.options.modal",
        ),
        (
            event_bytes(
                "question.asked", {"ask": "a", "incarnation": "i", "questions": [{"id": "q", "text": "?", "n": 1}]}
            ),
            "data.questions[0].n",
        ),
        (event_bytes("session.initialized", {"capabilities": {"telepathy": True}}), "data.capabilities.telepathy"),
    ],
)
def test_unknown_fields_are_tolerated_and_refused_when_strict(raw: bytes, field: str) -> None:
    assert decode_event(raw).session == SESSION
    with pytest.raises(TrunklineError) as refused:
        decode_event(raw, strict=True)
    assert refused.value.code == "bad_event"
    assert field.rsplit(".", maxsplit=1)[-1].rsplit("]", maxsplit=1)[-1] in str(refused.value)


def test_the_agents_own_json_may_hold_anything_even_when_strict() -> None:
    raw = event_bytes(
        "tool.started",
        {"name": "Bash", "input": {"command": "ls", "anything": [{"type": "text", "odd": 1}]}},
        native={"x": 1},
    )
    assert decode_event(raw, strict=True).data == decode_event(raw).data


def test_defaults_may_be_written_out_even_when_strict() -> None:
    raw = event_bytes(data={"number": 1, "trigger": "prompt"}, lane=None, turn=None)
    assert decode_event(raw, strict=True).data == TurnStarted(number=1)


def test_an_unknown_type_is_kept_with_its_value() -> None:
    event = decode_event(event_bytes("moon.landed", {"where": [1, 2]}, seq=9, epoch=3, cause="cmd_1"))
    assert isinstance(event, UnknownEvent)
    assert event.data == UnknownData(kind="moon.landed", value={"where": [1, 2]})
    assert (event.type, event.seq, event.epoch, event.cause) == ("moon.landed", 9, 3, "cmd_1")
    with pytest.raises(TrunklineError, match="bad_event"):
        decode_event(event_bytes("moon.landed"), strict=True)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b'"turn.started"',
        b"{}",
        event_bytes(data={"number": "one"}),
        event_bytes("message.assistant", {"content": [{"type": "hologram"}]}),
        event_bytes(v=2),
        event_bytes(v=2, data={"count": 1}),
        event_bytes(id=None),
        b'{"id":"\xff"}',
        event_bytes("tool.started", {"name": "x"}).replace(b'"x"', b'"x", "input": ' + b"[" * 100_000 + b"]" * 100_000),
    ],
)
def test_what_is_no_event_is_refused_with_a_code(raw: bytes) -> None:
    with pytest.raises(TrunklineError) as refused:
        decode_event(raw)
    assert refused.value.code == "bad_event"


def test_a_newer_version_is_refused_not_guessed() -> None:
    with pytest.raises(TrunklineError, match="version 2, this reader knows 1: upgrade it"):
        decode_event(event_bytes(v=2))


def test_old_versions_go_through_their_upcasters_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TurnStarted, "VERSION", 3)
    monkeypatch.setitem(codec.UPCASTERS, ("turn.started", 1), lambda e: {**e, "data": {"count": e["data"]["n"]}})
    seen: list[set[str]] = []

    def second_step(event: dict[str, Any]) -> dict[str, Any]:
        seen.append(set(event))
        return {**event, "data": {"number": event["data"]["count"]}}

    monkeypatch.setitem(codec.UPCASTERS, ("turn.started", 2), second_step)
    native = {"big": 12345678901234567890123}
    event = decode_event(event_bytes(data={"n": 5}, seq=4, native=native))
    assert event.data == TurnStarted(number=5)
    assert (event.v, event.seq) == (3, 4)
    assert bytes(event.native) == b'{"big": 12345678901234567890123}'
    assert seen == [{"id", "v", "session", "time", "type", "data", "seq"}], (
        "what the agent said is no upcaster's business"
    )
    second = decode_event(event_bytes(v=2, data={"count": 6}))
    assert second.data == TurnStarted(number=6)


def test_an_old_payload_that_still_fits_is_upcast_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 1 counted turns from 0: the shape is the same, the meaning is not."""
    monkeypatch.setattr(TurnStarted, "VERSION", 2)
    monkeypatch.setitem(
        codec.UPCASTERS, ("turn.started", 1), lambda e: {**e, "data": {"number": e["data"]["number"] + 1}}
    )
    assert decode_event(event_bytes(data={"number": 0})).data == TurnStarted(number=1)


def test_a_missing_upcaster_and_a_wrong_one_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TurnStarted, "VERSION", 2)
    with pytest.raises(TrunklineError, match="upcaster is missing"):
        decode_event(event_bytes())
    monkeypatch.setitem(codec.UPCASTERS, ("turn.started", 1), lambda e: {**e, "data": {}})
    with pytest.raises(TrunklineError, match="does not fit after its upcasters"):
        decode_event(event_bytes())


def test_defaults_are_left_out() -> None:
    data = SessionCreated(adapter="a", cwd="/", host="h", workspace="w", options=SessionOptions(model=None))
    assert encode(make_event(data, session=SESSION, time=TIME, id=ID)).startswith(
        b'{"data":{"adapter":"a","cwd":"/","host":"h","options":{},"workspace":"w"},"id":'
    )


def test_equal_values_give_equal_bytes_whatever_the_order_of_a_dict() -> None:
    one = MessageAssistant(content=[TextBlock(text="é")])
    a = make_event(one, session=SESSION, time=TIME, id=ID, native=msgspec.Raw(b"{}"))
    assert encode(a) == encode(decode_event(encode(a)))
    assert encode({"b": 1, "a": 2}) == encode({"a": 2, "b": 1}) == b'{"a":2,"b":1}'


@pytest.mark.parametrize("decode", [codec.decode_command, codec.decode_answer, codec.decode_spawn])
@pytest.mark.parametrize("raw", [b"", b"[]", b'{"verb":"fly"}', b'{"id":"\xff"}', b'{"args":' + b"[" * 100_000])
def test_what_a_client_sends_in_error_is_refused_with_a_code(decode: Callable[[bytes], Any], raw: bytes) -> None:
    with pytest.raises(TrunklineError) as refused:
        decode(raw)
    assert refused.value.code == "bad_params"
