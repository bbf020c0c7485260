"""Reading the log itself, without a gateway: for checks, replays and operators."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from trunkline_bus import jsapi
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.reader import read_session
from trunkline_bus.stored import Stored
from trunkline_cli.context import LAST, unique
from trunkline_cli.discovery import home_directory, running_state
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import is_id

READING: Final = "projector"
"""The NATS user with the right to read all of the log, and to write none of it."""


def nats_settings(home: Path | None, *, user: str) -> BusSettings:
    """How to reach NATS: TRUNKLINE_NATS_URL and TRUNKLINE_NATS_SEED, else the running instance with the key of `user`.

    Raises `not_running`.
    """
    directory = home_directory(home)
    seed = os.environ.get("TRUNKLINE_NATS_SEED")
    if url := os.environ.get("TRUNKLINE_NATS_URL"):
        return BusSettings(url=url, seed_file=Path(seed) if seed else None, name="trunkline-cli", connect_within=10.0)
    key = Path(seed) if seed else directory / "nats" / "keys" / f"{user}.nk"
    url = running_state(directory).nats
    return BusSettings(url=url, seed_file=key if key.exists() else None, name="trunkline-cli", connect_within=10.0)


@asynccontextmanager
async def open_log(home: Path | None, *, user: str = READING) -> AsyncGenerator[Bus]:
    """A connection to the log. Raises `not_running`, `unauthorized`, `log_unavailable`."""
    async with Bus.open(nats_settings(home, user=user)) as bus:
        yield bus


async def session_ids(bus: Bus) -> list[str]:
    """The sessions in the log, oldest first."""
    return sorted({session for stream in bus.layout.names for session in await _sessions_in(bus, stream)})


async def _sessions_in(bus: Bus, stream: str) -> set[str]:
    found: set[str] = set()
    offset = 0
    while True:
        body = {"subjects_filter": subjects.ALL_FACTS, "offset": offset}
        answer = await jsapi.request(bus.js_read, f"STREAM.INFO.{stream}", body)
        page: dict[str, int] = answer["state"].get("subjects") or {}
        found |= {parsed.session for subject in page if (parsed := subjects.parse(subject)) is not None}
        offset += len(page)
        if not page or offset >= answer.get("total", 0):
            return found


async def find_logged(bus: Bus, reference: str) -> str:
    """The session that `reference` means, as `find_session` does, from the log."""
    if is_id(reference, "ses"):
        return reference
    sessions = await session_ids(bus)
    if reference == LAST:
        if not sessions:
            raise TrunklineError("unknown_session", "the log holds no session yet")
        return sessions[-1]
    return unique(reference, "ses", sessions, "unknown_session", "see `trunkline ls`")


async def history(bus: Bus, session: str, until: int | None = None) -> list[Stored]:
    """All of a session's events up to and with the stream sequence `until`. Raises `unknown_session` for none."""
    found = await read_session(bus, session, until=until)
    if not found:
        raise TrunklineError("unknown_session", f"the log holds nothing of {session!r}: see `trunkline ls --all`")
    return found
