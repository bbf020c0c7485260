"""What the handlers of methods work with."""

import msgspec

from trunkline_bus.connection import Bus
from trunkline_bus.requests import Requests
from trunkline_gateway.audit import Audit
from trunkline_gateway.boards import Boards
from trunkline_gateway.cursors import Cursors
from trunkline_gateway.devices import Devices
from trunkline_gateway.directory import Directory
from trunkline_gateway.extensions import Extensions
from trunkline_gateway.hub import Hub
from trunkline_gateway.overview import Overview
from trunkline_gateway.peers import Peer
from trunkline_gateway.presence import Presence, Seat
from trunkline_gateway.roles import Principal
from trunkline_gateway.settings import GatewaySettings
from trunkline_gateway.terminals import Terminals
from trunkline_gateway.tickets import Tickets
from trunkline_gateway.tokens import Tokens
from trunkline_gateway.workers import Workers


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one gateway. `host` is this host's id, `version` the product's."""

    bus: Bus
    settings: GatewaySettings
    version: str
    host: str
    directory: Directory
    boards: Boards
    hub: Hub
    overview: Overview
    cursors: Cursors
    tokens: Tokens
    devices: Devices
    presence: Presence
    workers: Workers
    extensions: Extensions
    audit: Audit
    requests: Requests
    terminals: Terminals
    tickets: Tickets

    def require_room(self) -> None:
        """Raises TrunklineError `log_full` when the log is so full that no new turn may begin."""
        condition = self.bus.capacity.condition
        if condition is not None:
            raise condition


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls a method, and over which connection. `seat` is None where that lasts for one call only."""

    principal: Principal
    peer: Peer
    seat: Seat | None = None
