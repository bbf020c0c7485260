"""The channels: opened with the first subscription, closed after the last."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from trunkline_bus.connection import Bus
from trunkline_bus.stored import Stored
from trunkline_bus.tasks import end
from trunkline_gateway.channel import Channel
from trunkline_gateway.cursors import Cursors
from trunkline_gateway.directory import Directory
from trunkline_gateway.ring import Rings
from trunkline_wire import Event


class Hub:
    """Hands the directory's events to the channels. A Directory listener."""

    def __init__(self, bus: Bus, directory: Directory, cursors: Cursors) -> None:
        self._bus = bus
        self._directory = directory
        self._cursors = cursors
        self._rings = Rings()
        self._channels: dict[str | None, tuple[Channel, asyncio.Task[None]]] = {}
        self._users: dict[str | None, int] = {}
        directory.listeners.append(self)

    @asynccontextmanager
    async def channel(self, session: str | None) -> AsyncGenerator[Channel]:
        """The channel of a session (None: of all), running for as long as somebody is in the block."""
        if session not in self._channels:
            opened = Channel(self._bus, self._directory, self._cursors, self._rings, session)
            self._channels[session] = (opened, asyncio.create_task(opened.run()))
        channel, task = self._channels[session]
        self._users[session] = self._users.get(session, 0) + 1
        try:
            await channel.opened()
            yield channel
        finally:
            self._users[session] -= 1
            if not self._users[session]:
                del self._users[session], self._channels[session]
                self._rings.close(channel.ring)
                await end(task)

    def on_stored(self, session: str, stored: Stored) -> None:
        for key in (session, None):
            found = self._channels.get(key)
            if found is not None:
                found[0].on_stored(session, stored)

    def on_folded(self, event: Event) -> None:
        for key in (event.session, None):
            found = self._channels.get(key)
            if found is not None:
                found[0].on_folded(event)

    def on_begun(self) -> None:
        for channel, _ in list(self._channels.values()):
            channel.on_begun()

    def on_diverged(self) -> None:
        for channel, _ in list(self._channels.values()):
            channel.on_diverged()
