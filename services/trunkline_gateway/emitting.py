"""Events of extensions on their way into a session's history: on its subject `ext`, apart from what its agent does.

They are `ext.<name>.<kind>`, have no `seq` and no `src`, and every fold passes them over: they are remarks, no state. Each append
expects the subject's last message, and what stands there already under the same id is not written again; one that is repeated
after others came in between is in the log twice, with the same id.
"""

from typing import Any

from trunkline_bus import direct, metrics, trace
from trunkline_bus.append import Conflict, store
from trunkline_bus.connection import Bus
from trunkline_bus.outcome import Message
from trunkline_wire import Source, TrunklineError, encode, subjects, timestamp

MAX_DATA = 64 * 1024


async def emit(bus: Bus, session: str, type_: str, data: dict[str, Any], *, id: str, source: Source) -> int:
    """The event's sequence in EVENTS. Raises TrunklineError `too_large`, and what `append.store` raises."""
    payload = encode(
        {"id": id, "type": type_, "v": 1, "session": session, "time": timestamp(), "source": source, "data": data}
    )
    if len(payload) > MAX_DATA:
        raise TrunklineError("too_large", f"an event of an extension has at most {MAX_DATA} bytes: link to the rest")
    subject = subjects.event(session, "ext")
    message = Message(subject=subject, filter=subject, id=id, type=type_, payload=payload, headers=trace.inject({}))
    while True:
        last = await direct.last(bus, subjects.EVENTS, subject)
        if last is not None and last.id == id:
            return last.sequence
        try:
            sequence = await store(bus.mux, subjects.EVENTS, message, expected=last.sequence if last is not None else 0)
        except Conflict:
            continue
        metrics.APPENDS.labels("ext").inc()
        return sequence
