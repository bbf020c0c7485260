"""Errors as frames of the WebSocket and as `application/problem+json`."""

import math

from aiohttp import web

from trunkline_wire import ErrorInfo, TrunklineError, encode


def error_frame(id: str | int | None, error: TrunklineError) -> bytes:
    """`{"type":"res","id","ok":false,"error"}`; `id` is None where the request could not be read."""
    return encode({"type": "res", "id": id, "ok": False, "error": ErrorInfo.of(error)})


def problem(error: TrunklineError) -> web.Response:
    """RFC 9457, with Trunkline's `code` and `details` beside the standard members."""
    body = {
        "type": f"urn:trunkline:error:{error.code}",
        "title": error.status.phrase,
        "status": int(error.status),
        "detail": error.message,
        "code": error.code,
        "details": error.details,
    }
    response = web.Response(status=error.status, body=encode(body), content_type="application/problem+json")
    if error.code == "unauthorized":
        response.headers["WWW-Authenticate"] = 'Bearer realm="trunkline"'
    if "retry_after" in error.details:
        response.headers["Retry-After"] = str(math.ceil(error.details["retry_after"]))
    return response
