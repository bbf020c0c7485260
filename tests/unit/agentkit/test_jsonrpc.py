"""Messages of JSON-RPC: expected values are from the specification, and from recordings of agents that bend it."""

from typing import Any

import pytest

from trunkline_agentkit import decode_line
from trunkline_agentkit.jsonrpc import (
    Notification,
    Request,
    Response,
    RpcError,
    failure,
    id_key,
    notification,
    read,
    request,
)


def of(line: bytes) -> object:
    return read(decode_line(line))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            b'{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}',
            Request(id=b"1", raw_id=b"1", method="subtract", params=[42, 23]),
        ),
        (b'{"id":0,"method":"item/tool/call"}', Request(id=b"0", raw_id=b"0", method="item/tool/call")),
        (b'{"id":null,"method":"a"}', Request(id=b"null", raw_id=b"null", method="a")),
        (b'{"jsonrpc":"2.0","method":"update","params":{"a":1}}', Notification(method="update", params={"a": 1})),
        (b'{"jsonrpc":"2.0","result":19,"id":3}', Response(id=b"3", result=19)),
        (b'{"id":"a","result":null}', Response(id=b'"a"', result=None)),
        (b'{"id":2,"result":{},"error":null}', Response(id=b"2", result={})),
        (
            b'{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":"1"}',
            Response(id=b'"1"', error=RpcError(code=-32601, message="Method not found")),
        ),
        (
            b'{"id":5,"error":{"code":400,"message":"{}","data":{"status":400}}}',
            Response(id=b"5", error=RpcError(code=400, message="{}", data={"status": 400})),
        ),
        (b'{"id":6,"error":"broken"}', Response(id=b"6", error=RpcError(code=-32603, message='"broken"'))),
        (b'{"id":7,"error":{"code":true}}', Response(id=b"7", error=RpcError(code=-32603, message=""))),
    ],
)
def test_a_line_is_a_request_a_notification_or_a_response(line: bytes, message: object) -> None:
    assert of(line) == message


@pytest.mark.parametrize(
    "line",
    [
        b"Loading extensions ...",
        b"[]",
        b'[{"jsonrpc":"2.0","method":"a"}]',
        b"{}",
        b'{"id":1}',
        b'{"result":1}',
        b'{"method":7,"id":1}',
        b"null",
        b"\xff",
    ],
)
def test_what_is_no_message_is_none(line: bytes) -> None:
    assert of(line) is None


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        (b"1", b"1"),
        (b"1.0", b"1.0"),
        (b'"1"', b'"1"'),
        (b"true", b"true"),
        (b"null", b"null"),
        (rb'"\u00e9"', '"é"'.encode()),
        (b"[1, 2]", b"[1,2]"),
        (b"123456789012345678901234567890", b"123456789012345678901234567890"),
    ],
)
def test_ids_of_any_json_are_told_apart_and_kept_as_they_came(raw: bytes, key: bytes) -> None:
    message = of(b'{"method":"m","id": ' + raw + b"}")
    assert isinstance(message, Request)
    assert message.raw_id == raw
    assert message.id == key


def test_no_two_of_the_ids_that_python_calls_equal_are_one() -> None:
    ids: list[Any] = [1, 1.0, True, "1", 0, False, None, "", []]
    assert len({id_key(one) for one in ids}) == len(ids)


def test_our_messages_are_those_of_the_specification() -> None:
    assert request(1, "a", {"b": 2}) == {"id": 1, "method": "a", "params": {"b": 2}}
    assert request("x", "a") == {"id": "x", "method": "a"}
    assert notification("a", []) == {"method": "a", "params": []}


@pytest.mark.parametrize(
    ("native", "code"),
    [
        (-32601, "unsupported"),
        (-32602, "bad_params"),
        (-32603, "agent_failed"),
        (-32700, "agent_failed"),
        (400, "agent_failed"),
    ],
)
def test_an_error_of_the_agent_has_a_stable_code(native: int, code: str) -> None:
    error = failure("session/list", RpcError(code=native, message="no such thing"))
    assert error.code == code
    assert error.details["native_code"] == native
    assert "session/list" in error.message
    assert "no such thing" in error.message
    assert (error.details.get("capability") == "session/list") == (code == "unsupported")


def test_a_protocol_adds_codes_of_its_own() -> None:
    assert failure("session/new", RpcError(code=-32000, message="sign in"), {-32000: "agent_auth"}).code == "agent_auth"
