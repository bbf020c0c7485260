"""A client of the gateway for programs: every method with its parameters, and events without a gap over its restarts."""

from trunkline_client.address import Address
from trunkline_client.blobs import blob_parts, whole
from trunkline_client.connection import Connection, ConnectionLostError, Frame, error_of
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
    "Received",
    "Snapshot",
    "Start",
    "blob_parts",
    "error_of",
    "whole",
]
