"""A request that is made while the server is away is stored when it is back."""

import asyncio
from pathlib import Path

import nats.errors

from trunkline_bus.connection import Bus
from trunkline_bus.requests import Requests
from trunkline_gateway.audit import Audit
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_wire import Spawn, decode_json, timestamp
from trunkline_wire.ids import new_event_id, new_session_id


async def test_a_request_waits_for_the_server(bus: Bus, fresh_nats: NatsServer, tmp_path: Path) -> None:
    requests = Requests(bus, "worker")
    spawn = Spawn(id=new_event_id(), session=new_session_id(), adapter="demo", cwd=str(tmp_path), time=timestamp())
    fresh_nats.kill()
    await eventually(lambda: not bus.commands.is_connected)
    sending = asyncio.create_task(requests.spawn(spawn))
    await asyncio.to_thread(fresh_nats.restart)
    assert await asyncio.wait_for(sending, 20) == 1
    assert (await bus.js.stream_info("SPAWN")).state.messages == 1


async def test_the_audit_waits_for_the_server_and_keeps_its_order(bus: Bus, fresh_nats: NatsServer) -> None:
    audit = Audit(Requests(bus, "gateway"))
    running = asyncio.create_task(audit.run())
    fresh_nats.kill()
    await eventually(lambda: not bus.commands.is_connected)
    for number in range(3):
        audit.note("signin", f"user {number}")
    await asyncio.to_thread(fresh_nats.restart)

    async def stored() -> list[str]:
        state = (await bus.js.stream_info("SYSTEM")).state
        found = [await bus.js.get_msg("SYSTEM", seq) for seq in range(state.first_seq, state.last_seq + 1)]
        return [decode_json(one.data or b"{}")["actor"] for one in found]

    async def all_three() -> bool:
        return await stored() == ["user 0", "user 1", "user 2"]

    await eventually(all_three, 20, ignore=(nats.errors.Error,))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
