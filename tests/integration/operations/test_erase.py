"""An erased session: its content is nowhere, a tombstone says so, and everything else is as it was."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from tests.integration.operations.conftest import trunkline
from tests.integration.operations.sessions import session

from trunkline_bus import kv, mirror, topology
from trunkline_bus.blobs import STREAM as BLOBS
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.credentials import GRANTS, ensure_keys, public_key, server_config
from trunkline_bus.erase import erase
from trunkline_bus.lease import Lease
from trunkline_bus.reader import read, read_session
from trunkline_bus.requests import Requests
from trunkline_fold.session import decode_state
from trunkline_projector.app import Histories
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_wire import Command, SystemRecord, TrunklineError, subjects, timestamp
from trunkline_wire.blocks import TextBlock
from trunkline_wire.commands import Prompt
from trunkline_wire.ids import new_command_id

SECRET = "hunter2-correct-horse"
OWN, SHARED = f"{SECRET} own {'a' * 600_000}", f"shared {'b' * 600_000}"


async def stored_bytes(bus: Bus) -> bytes:
    """Everything in every stream, as it is stored."""
    answer = await kv.direct.jsapi.request(bus.js, "STREAM.NAMES")
    names = [name for name in answer["streams"] if name != subjects.SPAWN]  # a work queue, which nobody else may read
    found = [stored.raw for name in names for stored in await read(bus, name, [">"])]
    return b"\n".join(found)


async def test_nothing_of_it_is_left_but_a_tombstone(bus: Bus, tmp_path: Path) -> None:
    victim = await session(bus, f"my password is {SECRET}", OWN, SHARED)
    other = await session(bus, "nothing secret", SHARED)
    prompt = Prompt(content=[TextBlock(text=SECRET)])
    command = Command(id=new_command_id(), session=victim, args=prompt, time=timestamp())
    await Requests(bus, "test").command(command)
    histories = Histories(bus)
    projecting = asyncio.create_task(histories.run())
    try:
        await eventually(lambda: histories.ready, 20)
        others = [one.raw for one in await read_session(bus, other)]
        assert SECRET.encode() in await stored_bytes(bus)
        blobs = len(await read(bus, BLOBS, ["$O.trunk_blobs.M.>"]))

        code, said = await trunkline(bus.settings.url, tmp_path, "erase", victim, "--yes", "--reason", "a test")
        assert code == 0, said

        assert SECRET.encode() not in await stored_bytes(bus)
        [tombstone] = await read_session(bus, victim)
        assert tombstone.type == "session.erased"
        assert tombstone.event().data.reason == "a test"  # pyright: ignore[reportAttributeAccessIssue]
        assert [one.raw for one in await read_session(bus, other)] == others
        assert blobs == 2
        assert len(await read(bus, BLOBS, ["$O.trunk_blobs.M.>"])) == 1, "the other session refers to one"

        shown = await mirror.fetch(bus, subjects.KV_SESSIONS, victim, decode_state)
        assert shown is not None
        assert (shown.state.title, shown.state.erased is not None) == (None, True)
        [audit] = await read(bus, subjects.SYSTEM, ["trunk.sys.erasure"])
        record = msgspec.json.decode(audit.raw, type=SystemRecord)
        assert (record.session, record.details["reason"]) == (victim, "a test")

        code, said = await trunkline(bus.settings.url, tmp_path, "verify")
        assert (code, "all is well" in said) == (0, True), said
        # Once more: there is nothing left, and no second tombstone.
        again = await erase(bus, victim, by="test")
        assert (again.sequence, again.purged) == (tombstone.sequence, {})
    finally:
        projecting.cancel()
        await asyncio.gather(projecting, return_exceptions=True)


async def test_what_a_worker_owns_is_not_erased_under_its_hands(bus: Bus) -> None:
    victim = await session(bus, SECRET, closed=False)
    lease = Lease(bus, victim, {"worker": "wrk_x"}, 10.0)
    assert await lease.acquire()
    with pytest.raises(TrunklineError, match="close it first") as caught:
        await erase(bus, victim, by="test")
    assert caught.value.code == "busy"
    assert len(await read_session(bus, victim)) == 2
    await lease.release()


async def test_no_service_may_erase(tmp_path: Path) -> None:
    keys = ensure_keys(tmp_path / "keys")
    config = server_config({user: public_key(file) for user, file in keys.items()})
    with NatsServer(config=config) as server:
        async with Bus.open(BusSettings(url=server.url, seed_file=keys["admin"])) as admin:
            await topology.apply(admin.js, max_bytes=64 * 1024 * 1024)
        async with Bus.open(BusSettings(url=server.url, seed_file=keys["worker"])) as worker:
            victim = await session(worker, SECRET)
        for user in ("worker", "gateway", "permissions"):
            assert user in GRANTS
            async with Bus.open(BusSettings(url=server.url, seed_file=keys[user])) as service:
                with pytest.raises(TrunklineError, match="administrator's key") as caught:
                    await erase(service, victim, by="test", patience=1.0)
                assert caught.value.code == "forbidden"
        async with Bus.open(BusSettings(url=server.url, seed_file=keys["admin"])) as admin:
            assert SECRET.encode() in await stored_bytes(admin), "not even the tombstone was written"
            assert len(await read_session(admin, victim)) == 3
