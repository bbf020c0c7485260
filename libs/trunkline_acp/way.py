"""What the agent needs of the gateway: its methods, and the events of a session."""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Protocol

from trunkline_client import Notice, Start


class Way(Protocol):
    """A way to the gateway, with the rights of whoever the editor belongs to. Use as an async context manager."""

    async def __aenter__(self) -> object: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    async def call(self, method: str, *, within: float = 60.0, **params: Any) -> Any:
        """A method's payload, as JSON. Raises the gateway's TrunklineError; `timeout` after `within` seconds."""
        ...

    def watch(self, *, session: str, start: Start) -> AsyncIterator[Notice]:
        """Everything that happens in a session from `start`, in order and without end. One watch at a time.

        Raises the gateway's TrunklineError.
        """
        ...
