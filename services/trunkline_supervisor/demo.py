"""The demo: a session with the built-in agent, so that there is something to look at before any agent is installed."""

import asyncio
from pathlib import Path

import aiohttp

from trunkline_wire import TrunklineError

PROMPT = (
    "say I am a small scripted agent; say I need no account and I run nothing.; slow 20; ask make test; "
    "say One decision reached me, and everybody who watches saw it."
)
"""Streams, then asks: `trunkline attach` shows it, `trunkline approve` answers it."""


async def start_demo(socket: Path, cwd: Path, adapter: str = "demo") -> str:
    """Create a session and send its first prompt through the gateway; returns the session's id.

    Raises the gateway's TrunklineError, `timeout` after 30 s.
    """
    try:
        async with asyncio.timeout(30.0), aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as http:
            created = await _call(http, "session.create", {"adapter": adapter, "cwd": str(cwd), "title": "Demo"})
            session = str(created["session"])
            await _call(http, "session.prompt", {"session": session, "text": PROMPT})
            return session
    except TimeoutError:
        raise TrunklineError("timeout", "the demo session was not ready within 30 s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise TrunklineError("not_running", f"the demo could not be started: {error}") from error


async def _call(http: aiohttp.ClientSession, method: str, params: dict[str, str]) -> dict[str, object]:
    async with http.post(f"http://localhost/api/v1/{method}", json=params) as answer:
        body: dict[str, object] = await answer.json(content_type=None)
        if answer.status >= 400:
            raise TrunklineError("internal", f"the demo could not be started: {body.get('detail') or body}")
        return body
