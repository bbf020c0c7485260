"""The gateway's methods, one module a namespace; importing this package registers them."""

from typing import Final

from trunkline_gateway.methods import asks, history, hosts, sessions, tokens
from trunkline_gateway.registry import METHODS, Method

__all__ = ["ALL", "asks", "history", "hosts", "sessions", "tokens"]

ALL: Final[dict[str, Method]] = METHODS
