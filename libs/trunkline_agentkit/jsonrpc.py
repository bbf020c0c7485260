"""JSON-RPC 2.0 as data: what a message is, how ours are made, and what an error of it means to Trunkline. Pure.

Both sides send requests, and their ids are independent of each other. An id is compared as its JSON text, so that `1`, `1.0`
and `"1"` stay three ids, and repeated byte for byte. The member `jsonrpc` is optional, for agents that leave it out.
Source: https://www.jsonrpc.org/specification
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from trunkline_agentkit.framing import Decoded
from trunkline_wire import TrunklineError, encode

Obj = dict[str, Any]

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
CANCELLED: Final = -32800
"""What the Language Server Protocol, and after it others, answer to a request that was cancelled."""

CODES: Final[Mapping[int, str]] = {METHOD_NOT_FOUND: "unsupported", INVALID_PARAMS: "bad_params"}
"""Codes of the specification -> ours; every other one is `agent_failed`. Protocols add their own."""


class RpcError(msgspec.Struct, frozen=True, kw_only=True):
    """The `error` of a response."""

    code: int = INTERNAL_ERROR
    message: str = ""
    data: Any = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """`id` is the key of its id (`id_key`), `raw_id` the id's bytes as they came, which the answer repeats."""

    id: bytes
    raw_id: bytes
    method: str
    params: Any = None


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    params: Any = None


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to the request whose id has this key: `error` None means success, whatever `result` is."""

    id: bytes
    result: Any = None
    error: RpcError | None = None


Message = Request | Notification | Response


class _Id(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw(b"null")


_ids: Final = msgspec.json.Decoder(_Id)


def read(decoded: Decoded) -> Message | None:
    """What a line is; None for what is no message of JSON-RPC (a batch too: no agent sends one)."""
    message = decoded.message
    if message is None:
        return None
    method = message.get("method")
    if isinstance(method, str):
        if "id" in message:
            raw_id = bytes(_ids.decode(decoded.raw).id)
            return Request(id=id_key(message["id"]), raw_id=raw_id, method=method, params=message.get("params"))
        return Notification(method=method, params=message.get("params"))
    if "id" not in message or not ("result" in message or "error" in message):
        return None
    error = None if message.get("error") is None else _error(message["error"])
    return Response(id=id_key(message["id"]), result=message.get("result"), error=error)


def _error(value: object) -> RpcError:
    if not isinstance(value, dict):
        return RpcError(message=encode(value).decode())
    code, said = value.get("code"), value.get("message")
    return RpcError(
        code=code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR,
        message=said if isinstance(said, str) else "",
        data=value.get("data"),
    )


def id_key(value: Any) -> bytes:
    """What an id is compared by: its JSON text."""
    return encode(value)


def request(id: str | int, method: str, params: Any = None) -> Obj:
    """A request of ours."""
    return {"id": id} | notification(method, params)


def notification(method: str, params: Any = None) -> Obj:
    return {"method": method} | ({} if params is None else {"params": params})


def error_of(code: int, message: str, data: Any = None) -> Obj:
    """The `error` of an answer of ours."""
    return {"code": code, "message": message} | ({} if data is None else {"data": data})


def failure(method: str, error: RpcError, codes: Mapping[int, str] = CODES) -> TrunklineError:
    """The error of ours for an agent's refusal of `method`; `native_code` in its details is the agent's own number."""
    code = codes.get(error.code, "agent_failed")
    said = error.message or "no reason given"
    details: Obj = {"native_code": error.code}
    if code == "unsupported":
        details["capability"] = method
    return TrunklineError(code, f"the agent refused {method!r}: {said}", **details)
