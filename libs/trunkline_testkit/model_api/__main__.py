"""`python -m trunkline_testkit.model_api --port 0`: prints `{"url": …}` as one line, serves until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal

from trunkline_testkit.model_api.server import ScriptedApi


async def serve(host: str, port: int) -> None:
    """Serve on `port` (0: any) of `host` until a signal asks to end."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with ScriptedApi(port, host) as api:
        print(json.dumps({"url": api.url}), flush=True)  # noqa: T201 - the one line that callers read
        await ended.wait()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m trunkline_testkit.model_api", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 for other containers")
    options = parser.parse_args()
    asyncio.run(serve(options.host, options.port))


if __name__ == "__main__":
    main()
