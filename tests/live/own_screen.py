"""An agent's own terminal in tmux, at which a test looks and types as somebody does who has attached."""

import asyncio
from collections.abc import Sequence

from trunkline_testkit import eventually


async def screen(server: Sequence[str]) -> str:
    """What it shows now. `server` is tmux with the socket of its server."""
    return await run(*server, "capture-pane", "-p", "-t", "agent")


async def keys(server: Sequence[str], *names: str) -> None:
    await run(*server, "send-keys", "-t", "agent", *names)


async def type_in(server: Sequence[str], said: str, within: float) -> None:
    """Types a prompt, and sees that it stands there before Enter."""

    async def shown() -> bool:
        now = await screen(server)
        assert said in now, now
        return True

    await run(*server, "send-keys", "-t", "agent", "-l", said)
    await eventually(shown, within)
    await keys(server, "Enter")


async def run(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return out.decode()
