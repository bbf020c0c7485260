"""Where an extension runs: what the supervisor's environment says."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec

from trunkline_wire import TrunklineError

Level = Literal["debug", "info", "warning", "error"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """`home` is the state directory; `gateway` its gateway's address on this host."""

    home: Path
    nats_url: str
    nats_seed: Path | None = None
    http_port: int = 0
    gateway: str = "http://127.0.0.1:30086"
    log_level: Level = "info"


def read_place(environ: Mapping[str, str] = os.environ) -> Place:
    """Raises TrunklineError `bad_settings`."""
    seed, level = environ.get("TRUNKLINE_NATS_SEED"), environ.get("TRUNKLINE_LOG_LEVEL", "info")
    if level not in get_args(Level):
        raise TrunklineError("bad_settings", f"TRUNKLINE_LOG_LEVEL is one of {', '.join(get_args(Level))}")
    try:
        port = int(environ.get("TRUNKLINE_HTTP_PORT", "0"))
    except ValueError as error:
        raise TrunklineError("bad_settings", "TRUNKLINE_HTTP_PORT is a number") from error
    return Place(
        home=Path(environ.get("TRUNKLINE_HOME") or "~/.trunkline").expanduser(),
        nats_url=environ.get("TRUNKLINE_NATS_URL", "nats://127.0.0.1:4222"),
        nats_seed=Path(seed) if seed else None,
        http_port=port,
        gateway=environ.get("TRUNKLINE_EXTENSIONS_GATEWAY", "http://127.0.0.1:30086"),
        log_level=msgspec.convert(level, Level),
    )
