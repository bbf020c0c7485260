"""What the gateway says of itself, for machines."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from trunkline_gateway import asyncapi, openapi
from trunkline_gateway.methods import ALL

ASYNC = asyncapi.document("1")
OPEN = openapi.document("1", ALL)


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for one in value.values() for found in references(one)]
    return [found for one in value for found in references(one)] if isinstance(value, list) else []


@pytest.mark.parametrize("document", [ASYNC, OPEN], ids=["asyncapi", "openapi"])
def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    for reference in set(references(document)):
        found: Any = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]


def validator(message: str) -> Draft202012Validator:
    payload = ASYNC["components"]["messages"][message]["payload"]
    return Draft202012Validator({**payload, "components": ASYNC["components"]})


def test_all_methods_are_messages_and_their_parameters_are_checked() -> None:
    assert set(ALL) | {"hello", "subscribe", "unsubscribe", "session.switch"} <= set(ASYNC["components"]["messages"])
    rename = {"type": "req", "id": 1, "method": "session.rename", "params": {"session": "ses_x", "title": "T"}}
    validator("session.rename").validate(rename)
    assert not validator("session.rename").is_valid({**rename, "params": {"session": "ses_x"}})
    assert not validator("session.rename").is_valid({**rename, "method": "session.close"})


def test_frames_as_they_are_sent() -> None:
    event = {
        "id": "01890000-0000-7000-8000-000000000000",
        "type": "turn.started",
        "v": 1,
        "session": "ses_" + "0" * 32,
        "time": "2026-01-01T00:00:00.000000Z",
        "data": {"number": 1},
    }
    frame = {"type": "event", "subscription": "sub_1", "event": "turn.started", "cursor": "c", "payload": event}
    validator("event").validate(frame)
    assert not validator("event").is_valid({**frame, "payload": {**event, "data": {"number": "one"}}})
    refused = {"type": "res", "id": 7, "ok": False, "error": {"code": "forbidden", "message": "no"}}
    validator("answer").validate(refused)


def test_what_a_terminals_viewer_says_and_is_told() -> None:
    validator("terminal_resize").validate({"type": "resize", "columns": 80, "rows": 24})
    assert not validator("terminal_resize").is_valid({"type": "resize", "columns": 80})
    state = {"terminal": "0" * 16, "running": True, "columns": 80, "rows": 24, "writer": {"viewer": "v"}}
    validator("terminal_state").validate({"type": "state", "state": state})
    refused = {"code": "terminal_taken", "message": "take the terminal first"}
    validator("terminal_error").validate({"type": "error", "of": "input", "error": refused})
