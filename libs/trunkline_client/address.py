"""Where a gateway is."""

from pathlib import Path

from trunkline_client.paired import Sealed
from trunkline_wire.secret import Discreet, Secret


class Address(Discreet, frozen=True, kw_only=True):
    """How to reach a gateway. `sealed` wins over `socket`, that over `url`; `token` is needed for TCP alone."""

    url: str
    socket: Path | None = None
    token: Secret | None = None
    sealed: Sealed | None = None
    """A host that this device is paired with: it is reached by its relay, end-to-end encrypted, and `url` only names it."""
