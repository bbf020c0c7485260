"""A backup, put into an empty server: the same log, sequence by sequence, and cursors that stay valid."""

from pathlib import Path

import msgspec
import pytest
from tests.integration.operations.conftest import trunkline
from tests.integration.operations.sessions import session

from trunkline_bus import direct, topology
from trunkline_bus.backup import backup, check, restore
from trunkline_bus.blobs import Blobs
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.cursor import Cursor, verify
from trunkline_bus.reader import read
from trunkline_bus.stored import Stored
from trunkline_testkit.nats import NatsServer
from trunkline_wire import TrunklineError, subjects

LARGE = "x" * 600_000


async def everything(bus: Bus) -> list[tuple[int, str, bytes, int]]:
    stored: list[Stored] = await read(bus, subjects.EVENTS, [subjects.ALL_EVENTS])
    return [(one.sequence, one.subject, one.raw, one.time_ns) for one in stored]


async def test_what_is_restored_is_the_same_log(bus: Bus, empty: NatsServer, tmp_path: Path) -> None:
    for n in range(3):
        await session(bus, f"first {n}", LARGE)
    log = await everything(bus)
    at = await direct.at(bus, subjects.EVENTS, 4)
    assert at is not None
    cursor = Cursor(log=bus.log_id, positions={subjects.EVENTS: 4}, ids={subjects.EVENTS: at.id or ""})
    code, said = await trunkline(bus.settings.url, tmp_path, "backup", str(tmp_path / "copy"))
    assert code == 0, said
    await session(bus, "after the backup")
    late = await direct.info(bus, subjects.EVENTS)
    last = await direct.at(bus, subjects.EVENTS, late.last)
    assert last is not None
    beyond = Cursor(log=bus.log_id, positions={subjects.EVENTS: late.last}, ids={subjects.EVENTS: last.id or ""})

    code, said = await trunkline(empty.url, tmp_path, "restore", str(tmp_path / "copy"))
    assert code == 0, said
    code, said = await trunkline(empty.url, tmp_path, "verify")
    assert (code, said) == (0, f"3 sessions, {len(log)} events: all is well\n")
    async with Bus.open(BusSettings(url=empty.url)) as restored:
        assert await everything(restored) == log
        assert await verify(restored, cursor) is None
        gap = await verify(restored, beyond)
        assert gap is not None
        assert gap.reason == "log_diverged", "what came after the backup is gone, and said to be"
        refs = {part.decode() for one in log for part in one[2].split(b'"sha256":"')[1:] for part in [part[:64]]}
        assert len(refs) == 1
        # The value stands in the event as JSON text of its own.
        assert LARGE.encode() in await Blobs(restored).get(refs.pop())
        assert await topology.plan(restored.js) == []
        await session(restored, "the log goes on")


async def test_a_file_that_was_altered_is_noticed(bus: Bus, empty: NatsServer, tmp_path: Path) -> None:
    await session(bus, "hello")
    manifest = await backup(bus, tmp_path / "copy")
    assert manifest.streams[0].stream == subjects.EVENTS
    file = tmp_path / "copy" / manifest.streams[0].file
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    async with Bus.open(BusSettings(url=empty.url)) as target:
        with pytest.raises(TrunklineError, match="not what was written") as caught:
            await restore(target, tmp_path / "copy")
        assert caught.value.code == "bad_backup"
        assert await direct.jsapi.stream_info(target.js, subjects.EVENTS) is None, "nothing was begun"


async def test_a_server_with_a_log_is_left_alone(bus: Bus, tmp_path: Path) -> None:
    await session(bus, "hello")
    await backup(bus, tmp_path / "copy")
    before = await everything(bus)
    with pytest.raises(TrunklineError, match="restore into an empty one") as caught:
        await restore(bus, tmp_path / "copy")
    assert caught.value.code == "topology_conflict"
    assert await everything(bus) == before


async def test_a_backup_of_a_newer_version_is_refused(bus: Bus, tmp_path: Path) -> None:
    await session(bus, "hello")
    manifest = await backup(bus, tmp_path / "copy")
    newer = msgspec.structs.replace(manifest, schema=topology.SCHEMA + 1)
    (tmp_path / "copy" / "manifest.json").write_bytes(msgspec.json.encode(newer))
    with pytest.raises(TrunklineError, match="a newer one") as caught:
        check(tmp_path / "copy")
    assert caught.value.code == "bad_backup"
    with pytest.raises(TrunklineError, match="exists already"):
        await backup(bus, tmp_path / "copy")
