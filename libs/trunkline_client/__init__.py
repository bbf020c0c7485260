"""A client of the gateway for programs: every method with its parameters, and events without a gap over its restarts."""

from trunkline_client.address import Address
from trunkline_client.blobs import blob_parts, whole
from trunkline_client.connection import Connection, Frame, Socket, error_of, open_session, open_socket
from trunkline_client.link import (
    FIRST_DELAY,
    LONGEST_DELAY,
    Broken,
    Gap,
    Link,
    Notice,
    Opened,
    Received,
    Snapshot,
    Start,
)
from trunkline_client.lost import ConnectionLostError
from trunkline_client.paired import Paired, Sealed

__all__ = [
    "FIRST_DELAY",
    "LONGEST_DELAY",
    "Address",
    "Broken",
    "Connection",
    "ConnectionLostError",
    "Frame",
    "Gap",
    "Link",
    "Notice",
    "Opened",
    "Paired",
    "Received",
    "Sealed",
    "Snapshot",
    "Socket",
    "Start",
    "blob_parts",
    "error_of",
    "open_session",
    "open_socket",
    "whole",
]
