"""What can run agents, and where."""

from tests.integration.gateway.rig import Rig

from trunkline_bus import kv
from trunkline_testkit import eventually
from trunkline_wire import subjects


async def test_workers_and_their_adapters(rig: Rig) -> None:
    async with await rig.client() as client:
        assert (await client.call("worker.list"))["workers"] == []
        await rig.announce_worker("hst_a", 5, 12.5, "fake", "other")
        await eventually(rig.running.gateway.workers.all)
        (worker,) = (await client.call("worker.list"))["workers"]
        assert (worker["host"], worker["pid"], worker["started"]) == ("hst_a", 5, 12.5)
        adapters = (await client.call("adapter.list"))["adapters"]
        assert [(adapter["name"], adapter["title"]) for adapter in adapters] == [("fake", "Fake"), ("other", "Other")]
        assert adapters[0]["hosts"][0]["version"] == "1.0"
        await kv.delete(rig.bus, subjects.KV_WORKERS, "wrk_announced")
        await eventually(lambda: not rig.running.gateway.workers.all())
        assert (await client.call("adapter.list"))["adapters"] == []
