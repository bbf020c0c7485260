"""The end of a connection."""


class ConnectionLostError(ConnectionError):
    """The connection ended before the answer, or between two events."""
