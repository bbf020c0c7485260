"""Sessions closed long ago become files, and leave the log where that is wanted."""

import hashlib
import json
from pathlib import Path

from tests.integration.operations.conftest import trunkline
from tests.integration.operations.sessions import session

from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session

LARGE = "large " * 100_000


async def test_closed_sessions_are_written_and_erased(bus: Bus, tmp_path: Path) -> None:
    url, archive = bus.settings.url, tmp_path / "archive"
    closed, still_open = await session(bus, "hello", LARGE), await session(bus, "hello", closed=False)
    before = await read_session(bus, closed)

    code, said = await trunkline(url, tmp_path, "retention", str(archive), "--closed-for", "1d")
    assert (code, archive.exists()) == (0, False), said
    code, said = await trunkline(url, tmp_path, "retention", str(archive), "--closed-for", "0s", "--dry-run")
    assert (code, closed in said, still_open in said, archive.exists()) == (0, True, False, False), said

    code, said = await trunkline(url, tmp_path, "retention", str(archive), "--closed-for", "0s", "--erase")
    assert code == 0, said
    file = archive / f"{closed}.ndjson"
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert [(line["sequence"], line["subject"]) for line in lines] == [(one.sequence, one.subject) for one in before]
    assert [line["event"] for line in lines] == [json.loads(one.raw) for one in before]
    [index] = [json.loads(line) for line in (archive / "index.ndjson").read_bytes().splitlines()]
    assert index["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    [blob] = index["blobs"]
    assert hashlib.sha256((archive / "blobs" / blob).read_bytes()).hexdigest() == blob

    [tombstone] = await read_session(bus, closed)
    assert tombstone.type == "session.erased"
    assert index["sha256"] in (tombstone.event().data.reason or "")  # pyright: ignore[reportAttributeAccessIssue]
    assert len(await read_session(bus, still_open)) == 2
    code, said = await trunkline(url, tmp_path, "verify")
    assert (code, said) == (0, "2 sessions, 3 events: all is well\n")
