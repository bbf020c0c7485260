"""A fake agent that speaks JSON-RPC over stdio, or in the same words over a WebSocket (`replies`)."""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

Obj = dict[str, Any]


def replies(line: bytes) -> Iterator[bytes]:
    """What the agent says to one line of its client."""
    message: Obj = json.loads(line)
    id, method = message.get("id"), message.get("method")
    params: Any = message.get("params")
    match method:
        case "echo":
            yield of({"id": id, "result": params})
        case "fail":
            yield of({"id": id, "error": {"code": params, "message": "it failed"}})
        case "ask":
            # Asks under the id it is told, verbatim, and says what it was answered.
            yield b'{"method":"permission","id":' + params.encode() + b',"params":{"what":"rm"}}'
            yield of({"id": id, "result": "asked"})
        case "call":
            yield of({"id": params.get("id", "call-1"), "method": params["method"], "params": params.get("params")})
            yield of({"id": id, "result": "called"})
        case "take back":
            yield of({"method": "$/cancel_request", "params": {"requestId": params}})
            yield of({"id": id, "result": "taken"})
        case "ignore" | "cancelled":
            pass
        case "late":
            # Answers the request of that id, which nobody waits for any more.
            yield of({"id": params, "result": "late"})
            yield of({"id": id, "result": "done"})
        case "flood":
            for number in range(params):
                yield of({"method": "note", "params": {"number": number, "padding": "x" * 100_000}})
            yield of({"id": id, "result": params})
        case "print":
            yield b"*** a banner, no JSON ***"
            yield b"[1, 2]"
            yield of({"id": id, "result": "printed"})
        case "die":
            sys.stderr.write("the fake dies\n")
            sys.stderr.flush()
            os._exit(params)
        case None:
            # An answer to a request of ours: told as it came.
            yield of({"method": "answered", "params": {"line": line.decode()}})
        case _:
            yield of({"id": id, "error": {"code": -32601, "message": "Method not found"}})


def of(message: Obj) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def main() -> None:
    for line in sys.stdin.buffer:
        for reply in replies(line):
            sys.stdout.buffer.write(reply + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
