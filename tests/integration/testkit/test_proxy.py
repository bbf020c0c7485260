"""The proxy against a real server and a real client."""

import asyncio
from collections.abc import AsyncIterator

import nats
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg

from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.proxy import Action, NatsProxy, Passing


@pytest_asyncio.fixture
async def proxy(fresh_nats: NatsServer) -> AsyncIterator[NatsProxy]:
    async with NatsProxy(fresh_nats.url) as proxy:
        yield proxy


@pytest_asyncio.fixture
async def client(proxy: NatsProxy) -> AsyncIterator[Client]:
    client = await nats.connect(proxy.url, max_reconnect_attempts=-1, reconnect_time_wait=0.05)
    yield client
    await client.close()


async def test_messages_pass_whole_and_are_counted(proxy: NatsProxy, client: Client) -> None:
    seen: list[Passing] = []
    proxy.on_publish = seen.append
    subscription = await client.subscribe("a.*")
    await client.publish("a.b", b"x" * 700_000, headers={"Trunk-Type": "turn.started"})
    await client.publish("a.c", b"line\r\nPUB a.d 0\r\n\r\nend")
    messages = [await subscription.next_msg(5), await subscription.next_msg(5)]
    assert [(m.subject, m.data) for m in messages] == [
        ("a.b", b"x" * 700_000),
        ("a.c", b"line\r\nPUB a.d 0\r\n\r\nend"),
    ]
    assert [(m.number, m.subject, m.type) for m in seen] == [(1, "a.b", "turn.started"), (2, "a.c", "")]
    assert proxy.published == 2


async def test_a_cut_line_holds_everything_and_gives_it_back(proxy: NatsProxy, client: Client) -> None:
    subscription = await client.subscribe("a")
    await client.flush()
    proxy.cut()
    await client.publish("a", b"1")
    with pytest.raises(TimeoutError):
        await subscription.next_msg(0.5)
    assert client.is_connected, "a dead line tells nobody"
    proxy.heal()
    assert (await subscription.next_msg(5)).data == b"1"


async def test_a_reset_line_is_connected_anew(proxy: NatsProxy, client: Client) -> None:
    lost = asyncio.Event()

    async def on_lost() -> None:
        lost.set()

    client._disconnected_cb = on_lost  # pyright: ignore[reportPrivateUsage]
    proxy.reset()
    await asyncio.wait_for(lost.wait(), 5)
    await eventually(lambda: client.is_connected, 5)
    await client.flush()


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        ("drop", [b"0", b"1"], [b"0", b"1", b"3"]),
        ("hold", [b"0", b"1"], [b"0", b"1", b"2", b"3"]),
        ("pass_then_hold", [b"0", b"1", b"2"], [b"0", b"1", b"2", b"3"]),
    ],
)
async def test_a_message_is_dropped_or_held(
    fresh_nats: NatsServer, proxy: NatsProxy, client: Client, action: Action, before: list[bytes], after: list[bytes]
) -> None:
    beside = await nats.connect(fresh_nats.url)
    got: list[bytes] = []

    async def on_message(message: Msg) -> None:
        got.append(message.data)

    await beside.subscribe("a", cb=on_message)
    await beside.publish("a", b"0")
    await eventually(lambda: got == [b"0"], 5)
    proxy.on_publish = lambda message: action if message.payload == b"2" else None
    for text in (b"1", b"2", b"3"):
        await client.publish("a", text)
    if action == "drop":
        await client.flush()
    else:
        await eventually(lambda: proxy.is_cut, 5)
    await eventually(lambda: got[: len(before)] == before, 5)
    proxy.heal()
    await eventually(lambda: got == after, 5)
    await beside.close()


async def test_answers_can_be_lost(proxy: NatsProxy, client: Client) -> None:
    """What was stored and whose acknowledgement never came."""
    js = client.jetstream()
    await js.add_stream(name="S", subjects=["s"])
    proxy.on_deliver = lambda message: "drop" if b'"seq":1' in message.payload else None
    with pytest.raises(TimeoutError):
        await js.publish("s", b"1", timeout=0.5)
    assert (await js.publish("s", b"2")).seq == 2
