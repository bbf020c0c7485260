"""The fence that one would build first, and that fails: an event is known by its session and number."""

from trunkline_bus import leader
from trunkline_bus.connection import Bus
from trunkline_bus.mux import Lost, NoAnswer
from trunkline_wire import TrunklineError, encode, make_event, subjects, timestamp
from trunkline_wire.session import SessionClaimed
from trunkline_wire.subjects import HEADER_EXPECTED, HEADER_EXPECTED_FILTER, HEADER_ID, HEADER_TYPE
from trunkline_wire.turn import MessageSystem

MSG_ID = "Nats-Msg-Id"


class NaiveWriter:
    """Appends one event at a time behind the last, as `SessionWriter` does, but takes `<session>:<number>` for its own."""

    def __init__(self, bus: Bus, session: str, epoch: int, seq: int, sequence: int) -> None:
        self.bus, self.session, self.epoch, self.seq, self.sequence = bus, session, epoch, seq, sequence

    async def append(self, data: MessageSystem | SessionClaimed) -> None:
        """Raises TrunklineError `fenced`."""
        seq, mine = self.seq + 1, f"{self.session}:{self.seq + 1}"
        event = make_event(data, session=self.session, time=timestamp(), seq=seq, epoch=self.epoch)
        headers = {HEADER_ID: event.id, HEADER_TYPE: event.type, MSG_ID: mine, HEADER_EXPECTED: str(self.sequence)}
        fence = subjects.agent_fence(self.session)
        headers[HEADER_EXPECTED_FILTER] = fence
        while True:
            try:
                subject = subjects.event(self.session, "agent.fact")
                answer = await leader.publish(self.bus.mux, subject, encode(event), headers)
            except (Lost, NoAnswer):
                answer = None
            if not isinstance(answer, int):  # unknown: is the last one mine, or may mine still follow?
                last = await leader.last_of(self.bus.mux, subjects.EVENTS, fence)
                assert last is not None
                if last.sequence == self.sequence:
                    continue
                if (last.headers or {}).get(MSG_ID) != mine:
                    raise TrunklineError("fenced", "the last event is another's")
                answer = last.sequence
            self.seq, self.sequence = seq, answer
            return


async def naive_claim(bus: Bus, session: str) -> NaiveWriter:
    """The next owner."""
    last = await leader.last_of(bus.mux, subjects.EVENTS, subjects.agent_fence(session))
    assert last is not None
    event = last.event()
    assert event.epoch is not None
    assert event.seq is not None
    writer = NaiveWriter(bus, session, event.epoch + 1, event.seq, last.sequence)
    await writer.append(SessionClaimed(worker="heir", host="host-a"))
    return writer
