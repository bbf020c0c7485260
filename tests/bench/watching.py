"""What the Python client costs a program that follows a session, beside aiohttp that reads and parses the same messages."""

import tempfile
from pathlib import Path
from typing import Final

import aiohttp
from tests.bench.fanout import gateway
from tests.bench.report import Figure, turns

from trunkline_client import Address, Link, Received
from trunkline_wire import decode_json

COUNT: Final = 10_000


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        async with gateway(Path(folder)) as running:
            await running.fill(COUNT)
            address = Address(url=running.url, token=running.token)
            bare, ours = await turns(
                lambda: _plain(address, running.session), lambda: _watched(address, running.session), rounds=3
            )
    return [
        Figure(
            name=f"{COUNT:,} events to the Python client, CPU",
            unit="us/event",
            value=ours.cpu / COUNT * 1e6,
            limit=bare.cpu / COUNT * 1e6,
            limit_name="aiohttp and parsing",
            goal=4.0,
            note=f"{COUNT / ours.wall:,.0f} against {COUNT / bare.wall:,.0f} events/s",
        )
    ]


async def _watched(address: Address, session: str) -> None:
    left = COUNT
    async with Link(address) as link:
        async for notice in link.watch(session=session, start="start"):
            left -= isinstance(notice, Received)
            if not left:
                return


async def _plain(address: Address, session: str) -> None:
    headers = {"Authorization": f"Bearer {address.token}"}
    left = COUNT
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{address.url}/ws", headers=headers, max_msg_size=0) as ws,
    ):
        params = {"session": session, "from": "start"}
        await ws.send_json({"type": "req", "id": 1, "method": "subscribe", "params": params})
        while left:
            left -= decode_json((await ws.receive()).data)["type"] == "event"
