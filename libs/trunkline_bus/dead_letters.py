"""Messages that a service could not apply, kept for people in the stream DEADLETTER."""

import itertools
import logging
from typing import Final

from trunkline_bus import leader, metrics
from trunkline_bus.connection import Bus
from trunkline_bus.mux import Lost, NoAnswer
from trunkline_bus.stored import Stored
from trunkline_wire import DeadLetter, TrunklineError, encode, subjects, timestamp

log = logging.getLogger(__name__)

_MAX_ERROR: Final = 2000


async def bury(bus: Bus, service: str, stored: Stored, error: Exception) -> None:
    """Note on `trunk.dlq.<service>` that `stored` could not be applied, as long as it takes.

    The same message buried again within the stream's window is kept once; after that a reader tells by the `id`.
    """
    letter = DeadLetter(
        id=f"{service}:{stored.stream}:{stored.sequence}",
        service=service,
        time=timestamp(),
        stream=stored.stream,
        sequence=stored.sequence,
        session=stored.session,
        code=error.code if isinstance(error, TrunklineError) else "internal",
        error=f"{type(error).__name__}: {error}"[:_MAX_ERROR],
    )
    log.error(
        "dead_letter",
        extra={"service": service, "session": stored.session, "sequence": stored.sequence, "code": letter.code},
    )
    metrics.DEAD_LETTERS.labels(service).inc()
    for tries in itertools.count():
        try:
            answer = await leader.publish(
                bus.mux, subjects.dead_letter(service), encode(letter), {"Nats-Msg-Id": letter.id}
            )
        except (Lost, NoAnswer):
            answer = leader.Refusal(code=leader.UNAVAILABLE)
        if isinstance(answer, int):
            return
        if answer.code != leader.UNAVAILABLE:
            log.warning("dead_letter.refused", extra={"service": service, "error": str(answer)})
        await leader.pause(bus.mux, tries)
