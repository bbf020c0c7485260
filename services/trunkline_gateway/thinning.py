"""What a slow client has not been given of the deltas: so much of it as is still open goes later, merged. Pure.

Facts and asks are never left out, and a finished block stands whole in its fact: what is skipped here is only how it grew.
"""

from typing import Final

from trunkline_gateway.blocks import Blocks
from trunkline_wire import Event
from trunkline_wire.turn import MessageDelta

MAX_KEPT: Final = 2_000
"""Blocks and tools that are remembered; above it those that have ended are dropped."""


class Thinned:
    """Which open blocks a client is behind in, and from which offset on."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str, int], int] = {}
        self._latest: dict[tuple[str, str, str], None] = {}

    def __len__(self) -> int:
        return len(self._places) + len(self._latest)

    def clear(self) -> None:
        self._places.clear()
        self._latest.clear()

    def skip(self, delta: Event, blocks: Blocks) -> None:
        """Leave `delta` out, which `blocks` holds already."""
        item = delta.item or ""
        if isinstance(delta.data, MessageDelta):
            key = (delta.session, item, delta.data.block)
            self._places[key] = min(delta.data.at, self._places.get(key, delta.data.at))
        else:
            self._latest[delta.session, item, delta.type] = None
        if len(self) > MAX_KEPT:
            self._places = {key: at for key, at in self._places.items() if blocks.since(key, at) is not None}
            self._latest = {key: None for key in self._latest if blocks.last(key) is not None}

    def merged(self, blocks: Blocks) -> list[Event]:
        """One delta for each block that is still open, from where the client is behind, and the latest progress of each tool."""
        texts = [blocks.since(key, at) for key, at in self._places.items()]
        latest = [blocks.last(key) for key in self._latest]
        self.clear()
        return [event for event in (*texts, *latest) if event is not None]
