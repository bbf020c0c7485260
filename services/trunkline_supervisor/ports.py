"""Finding a port to listen on."""

import errno
import socket

from trunkline_wire import TrunklineError

GATEWAY_PORT = 30086
TRIES = 50


def free_port() -> int:
    """A port that is free now; the kernel gives it to nobody else at once."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def is_free(port: int) -> bool:
    with socket.socket() as listener:
        # As the gateway will: a port with connections in TIME_WAIT counts as free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen(1)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
        return True


def gateway_port(wanted: int | None) -> int:
    """The port for the gateway: `wanted` itself, any free one for 0, 30086 or the next free one for None.

    Raises `already_running` if `wanted` is taken.
    """
    if wanted == 0:
        return free_port()
    if wanted is not None:
        if not is_free(wanted):
            raise TrunklineError(
                "already_running", f"port {wanted} is taken; choose another with --port (0 takes any)", port=wanted
            )
        return wanted
    for port in range(GATEWAY_PORT, GATEWAY_PORT + TRIES):
        if is_free(port):
            return port
    return free_port()
