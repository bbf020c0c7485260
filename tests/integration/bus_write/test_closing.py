"""Closing the connections, whatever state they are in."""

from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.proxy import NatsProxy

PING = b"PING\r\n"


async def test_a_broken_line_with_bytes_to_send_is_closed_all_the_same(fresh_nats: NatsServer) -> None:
    """nats-py stops half way then: the tasks of its subscriptions, and the other connections, went on for ever."""
    async with NatsProxy(fresh_nats.url) as proxy:
        bus = await Bus.open(BusSettings(url=proxy.url))
        for connection in (bus.reading, bus.commands):
            await connection.subscribe("a.subject", cb=_nothing)
        proxy.cut()
        proxy.reset()
        for connection in (bus.reading, bus.commands):
            await eventually(lambda connection=connection: connection.is_reconnecting)
            # The second in one step waits in the client.
            connection.send(PING)
            connection.send(PING)
        await bus.close()
        assert bus.reading.is_closed
        assert bus.commands.is_closed
        await bus.wait_ended()


async def _nothing(_: object) -> None:
    pass
