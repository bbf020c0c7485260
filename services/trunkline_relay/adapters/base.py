"""What an adapter is."""

from typing import Protocol


class Adapter(Protocol):
    """One way to a relay. Encryption is none of its business: it is the same by each."""

    type: str

    async def connect(self) -> str:
        """Do what is needed, and keep doing it; the address at which the host connects to the relay. Raises TrunklineError."""
        ...

    @property
    def connected(self) -> bool:
        """Whether devices can reach the relay, as far as is known here."""
        ...

    @property
    def public_url(self) -> str:
        """The relay's address for devices (`https://…`); empty while it is not known."""
        ...

    @property
    def trouble(self) -> str:
        """Why devices can't reach the relay, and what to do; empty where they can, as far as is known here."""
        ...

    async def disconnect(self) -> None: ...
