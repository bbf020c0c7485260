"""*direct*: a relay here, reached as it is: on this machine, in the local network, or behind a proxy of one's own."""

from trunkline_relay.adapters.local import LocalRelay
from trunkline_relay.network import local_address


class Direct:
    type = "direct"
    trouble = ""

    def __init__(self, relay: LocalRelay, url: str) -> None:
        """`url`: where devices find it, if that is not where it listens."""
        self._relay = relay
        self._url = url.rstrip("/")
        self.connected = False

    @property
    def public_url(self) -> str:
        if self._url or not self.connected:
            return self._url
        return self._relay.url_at(local_address() if self._relay.everywhere else self._relay.bind)

    async def connect(self) -> str:
        await self._relay.start()
        self.connected = True
        self._relay.called(self.public_url)
        return self._relay.url

    async def disconnect(self) -> None:
        self.connected = False
        await self._relay.stop()
