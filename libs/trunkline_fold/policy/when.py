"""Hours and weekdays of a rule, in a named zone."""

import datetime as dt
import re
from collections.abc import Sequence
from typing import Final
from zoneinfo import ZoneInfo

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SPAN: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)")


def span(text: str) -> tuple[int, int]:
    """`22:00-06:00` as minutes since midnight. Raises ValueError for anything else, and for an empty span."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(text)
    begin, end = int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])
    if begin == end or end > 24 * 60:
        raise ValueError(text)
    return begin, end


def days(text: str) -> list[int]:
    """`mon`, or `mon-fri`, as numbers; a span may go over Sunday. Raises ValueError for anything else."""
    first, dash, last = text.lower().partition("-")
    begin = DAYS.index(first)
    if not dash:
        return [begin]
    count = (DAYS.index(last) - begin) % 7
    return [(begin + day) % 7 for day in range(count + 1)]


def within(moment: dt.datetime, hours: Sequence[tuple[int, int]], weekdays: Sequence[int], zone: str) -> bool:
    """Whether a moment lies in one of the spans (none: the whole day) that begin on one of the days (none: every day)."""
    local = moment.astimezone(ZoneInfo(zone))
    minute, today = local.hour * 60 + local.minute, local.weekday()
    for begin, end in hours or [(0, 24 * 60)]:
        over_midnight = end < begin
        if begin <= minute and (over_midnight or minute < end):
            day = today
        elif over_midnight and minute < end:
            day = (today - 1) % 7
        else:
            continue
        if not weekdays or day in weekdays:
            return True
    return False
