"""Records of a bucket, as a gateway knows them: what it deletes itself is gone at once, whatever it has yet to hear."""

import asyncio
import contextlib

import msgspec
from tests.integration.gateway.rig import Rig

from trunkline_gateway.records import Records
from trunkline_testkit import eventually
from trunkline_wire.subjects import KV_DEVICES


class Thing(msgspec.Struct, frozen=True):
    name: str


async def test_what_is_deleted_is_known_no_more_and_told_once_it_is_heard(rig: Rig) -> None:
    records, gone = Records(rig.bus, KV_DEVICES, Thing, "thing"), list[str]()
    records.on_gone.append(gone.append)
    await records.put("a", Thing("a"))
    assert records.known == {"a": Thing("a")}
    await records.delete("a")
    assert (records.known, gone) == ({}, [])
    watching = asyncio.create_task(records.run())
    try:
        await records.ready.wait()
        assert (records.known, gone) == ({}, ["a"])
        for number in range(50):
            id_ = f"b{number}"
            await records.put(id_, Thing(id_))
            await records.delete(id_)
            # what it was before may still be on its way here
            await asyncio.sleep(0)
            assert id_ not in records.known
        await eventually(lambda: len(gone) == 51)
        assert (sorted(gone), records.known) == (sorted({"a", *(f"b{n}" for n in range(50))}), {})
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
