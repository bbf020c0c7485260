"""A process of an agent gives way to the next, within one session."""

import asyncio
from collections.abc import AsyncIterator, Callable

from trunkline_agentkit import Native, Peer


class Renewal:
    """`cut` is what the end of the old process has left to tell, `peer` the next one's, None where there is none."""

    def __init__(self, old: Peer) -> None:
        loop = asyncio.get_running_loop()
        self.old = old
        self.cut: asyncio.Future[Native] = loop.create_future()
        self.peer: asyncio.Future[Peer | None] = loop.create_future()

    def settle(self, cut: Native) -> None:
        """Whatever has happened: nobody waits on for what is not known by now."""
        if not self.cut.done():
            self.cut.set_result(cut)
        if not self.peer.done():
            self.peer.set_result(None)


async def messages_of(peer: Peer, latest: Callable[[], Renewal | None]) -> AsyncIterator[Native]:
    """The messages of one process after the other; `latest` gives the latest renewal."""
    following: Peer | None = peer
    while following is not None:
        async for native in following.messages():
            yield native
        renewal = latest()
        if renewal is None or renewal.old is not following:
            return
        cut = await renewal.cut
        if cut.out:
            yield cut
        following = await renewal.peer
