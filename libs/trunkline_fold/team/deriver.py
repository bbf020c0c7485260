"""From facts and observations to team events.

`hear` takes what a source tells, once, and says what it means as operations. `next_event` says which event those
operations call for that the board lacks: append it, fold it, ask again. So what two sources tell is written once, a
writer that lost a race asks again with the board as it is now, and a restart finds what is left to write.
"""

import msgspec

from trunkline_fold.team.board import TeamsState
from trunkline_fold.team.decide import decide
from trunkline_fold.team.ear import Ear
from trunkline_fold.team.facts import listen
from trunkline_fold.team.hearing import Deriver, Heard, Input
from trunkline_fold.team.seen import observe
from trunkline_wire import Data, Event, make_event, parse_time
from trunkline_wire.ids import imported_event_id


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """An event to append to the session's team subject. The same input and board give the same, id and time too.

    `src` is [stream, sequence, k]; `cause` the id of the event or observation that tells it; `time` is that one's.
    """

    id: str
    time: str
    session: str
    data: Data
    src: tuple[str, int, int]
    cause: str

    def event(self) -> Event:
        return make_event(self.data, session=self.session, time=self.time, id=self.id, src=self.src, cause=self.cause)


def initial_deriver(session: str) -> Deriver:
    """A deriver that has heard nothing. `session` is the lead's, on whose team subject the events go."""
    return Deriver(session=session)


def hear(deriver: Deriver, what: Input) -> Heard:
    """What an input means. Changes `deriver`; an input at or before its position in the stream means nothing.

    After a restart hear of each stream what stands up to the board's marks, before anything that stands behind them.
    """
    told = what.what
    if what.sequence <= deriver.positions.get(what.stream, 0):
        return Heard(stream=what.stream, sequence=what.sequence, time=told.time, cause=told.id)
    deriver.positions[what.stream] = what.sequence
    ear = Ear(deriver)
    if isinstance(told, Event):
        listen(ear, told)
    else:
        observe(ear, told)
    return Heard(
        stream=what.stream, sequence=what.sequence, time=told.time, cause=told.id, ops=ear.ops, caveats=ear.caveats
    )


def next_event(board: TeamsState, heard: Heard) -> Derived | None:
    """The first event that `heard` calls for and that is not on the board; None when nothing is left to write."""
    for part, op in enumerate(heard.ops):
        src = (heard.stream, heard.sequence, part)
        if board.written(src):
            continue
        data = decide(board, op)
        if data is not None:
            place = f"team/{heard.stream}/{heard.sequence}/{part}"
            millis = int(parse_time(heard.time).timestamp() * 1000)
            return Derived(
                id=imported_event_id(board.session, place, millis),
                time=heard.time,
                session=board.session,
                data=data,
                src=src,
                cause=heard.cause,
            )
    return None
