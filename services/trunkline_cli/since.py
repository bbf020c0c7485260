"""Times as people write them."""

import datetime as dt
import re
from typing import Final

from trunkline_wire import TrunklineError, parse_time, timestamp

_AGO: Final = re.compile(r"(\d+)\s*([smhdw])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def since(text: str, now: dt.datetime | None = None) -> str:
    """`7d`, `12h`, `30m`, `90s`, `2w` ago, or a date or time (RFC 3339; UTC without an offset), as RFC 3339. Raises `bad_params`."""
    found = _AGO.fullmatch(text.strip())
    if found is not None:
        moment = (now or dt.datetime.now(dt.UTC)) - dt.timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
        return timestamp(moment)
    try:
        moment = parse_time(text)
    except TrunklineError as error:
        raise TrunklineError("bad_params", f"{text!r} is no time: write 7d, 12h, or 2026-11-27T21:00:00Z") from error
    return timestamp(moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC))
