"""A small MCP server over stdio: `mcp_server.py TOKEN [daemon]`. With `daemon` it also starts one, which outlives it."""

import json
import signal
import subprocess
import sys
from typing import Any


def answer(method: str) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "small", "version": "1"},
            }
        case "tools/list":
            return {"tools": [{"name": "nothing", "description": "Does nothing.", "inputSchema": {"type": "object"}}]}
        case _:
            return {}


def main() -> None:
    if "daemon" in sys.argv:
        subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(3600)", sys.argv[1]], env={}, start_new_session=True
        )
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message["method"])}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()
    signal.pause()  # its input has ended, and it stays


if __name__ == "__main__":
    main()
