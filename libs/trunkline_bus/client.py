"""nats-py's client with a quicker reading of headers, which were half the cost of reading the log (measured)."""

from nats.aio.client import Client as _Client

from trunkline_bus.stored import header_lines


class Client(_Client):
    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        # Called by the client for each message with headers. A test proves that it still is.
        return header_lines(raw.decode("utf-8", "replace"))
