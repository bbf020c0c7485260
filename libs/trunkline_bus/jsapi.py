"""The JetStream API as JSON: what nats-py's typed calls leave out (unknown settings survive, answers come whole)."""

import json
from typing import Any

from nats.js import JetStreamContext
from nats.js.errors import APIError, NotFoundError


async def request(js: JetStreamContext, name: str, body: dict[str, Any] | None = None, *, wait: float = 5.0) -> Any:
    """The answer of `$JS.API.<name>` to `body`; `wait` is seconds.

    Raises nats.js.errors.APIError with the server's code, nats.errors.TimeoutError where nobody answers (which is
    also what a refused permission looks like), nats.js.errors.ServiceUnavailableError where JetStream is off.
    """
    payload = json.dumps(body).encode() if body is not None else b""
    # The typed calls of nats-py drop fields that they do not know: only this one passes JSON through.
    return await js._api_request(f"{js._prefix}.{name}", payload, timeout=wait)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


async def stream_info(js: JetStreamContext, stream: str) -> dict[str, Any] | None:
    """`{config, created, state, …}` of a stream from its leader, None where there is no such stream."""
    try:
        return await request(js, f"STREAM.INFO.{stream}")
    except NotFoundError:
        return None


def error_code(error: APIError) -> int:
    """The server's own error number (10071 …), 0 where it gave none."""
    return error.err_code or 0
