"""Where a gateway is."""

from pathlib import Path

import msgspec


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a gateway. `socket` wins over `url`; `token` is needed for TCP alone."""

    url: str
    socket: Path | None = None
    token: str | None = None
