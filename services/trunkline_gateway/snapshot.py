"""What a client that comes is told first: state, asks, the latest messages, and the text of what is being written."""

from typing import Any, Final

import msgspec

from trunkline_bus.pages import last_messages
from trunkline_gateway.channel import Channel
from trunkline_gateway.gateway import Gateway
from trunkline_gateway.registry import EventAt
from trunkline_gateway.sight import Sight
from trunkline_wire import TrunklineError

SESSIONS: Final = 200
MESSAGES: Final = 20
MAX_MESSAGES: Final = 100
MAX_BYTES: Final = 1024 * 1024
"""Of the messages of one snapshot; the rest is in `session.history`."""


def make_snapshot(gateway: Gateway, channel: Channel, sight: Sight) -> dict[str, Any]:
    """What is known at the channel's position: state, asks, and the text so far of blocks that are being written."""
    directory = gateway.directory
    if channel.session is not None:
        return {
            "state": directory.states.get(channel.session),
            "asks": list(directory.asks(channel.session)),
            "blocks": channel.blocks.open(),
        }
    states = sight.states()
    return {
        "sessions": states[:SESSIONS],
        "total": len(states),
        "asks": [ask for ask in sight.asks() if ask.status == "open"],
        "blocks": sight.blocks(channel.blocks.open()),
    }


def check_count(messages: int) -> None:
    """Raises TrunklineError `bad_params` for a number of messages that nobody gets."""
    if not 0 <= messages <= MAX_MESSAGES:
        raise TrunklineError("bad_params", f"messages must be between 0 and {MAX_MESSAGES}", field="messages")


async def latest_messages(gateway: Gateway, session: str, count: int, *, until: int) -> list[EventAt]:
    """The events of the latest `count` messages at or below the sequence `until`, in order, as {cursor, event}.

    What an agent said in several blocks is one message of several events. The cursor of the first is where
    `session.history` goes on `before`.
    """
    if not count:
        return []
    return [
        {"cursor": gateway.cursors.at(session, one.sequence, one.id), "event": msgspec.Raw(one.raw)}
        for one in await last_messages(gateway.bus, session, count, until=until, max_bytes=MAX_BYTES)
    ]
