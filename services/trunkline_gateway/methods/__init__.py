"""The gateway's methods, one module a namespace; importing this package registers them."""

from typing import Final

from trunkline_gateway.methods import asks, create, history, hosts, presence, sessions, tokens, verbs, workspaces
from trunkline_gateway.registry import METHODS, Method

__all__ = ["ALL", "asks", "create", "history", "hosts", "presence", "sessions", "tokens", "verbs", "workspaces"]

ALL: Final[dict[str, Method]] = METHODS
