"""What an owner has to know before it begins: the folds of a session's log."""

from collections.abc import Iterable

import msgspec

from trunkline_agentkit.memory import Memory
from trunkline_agentkit.orders import first_prompt_id
from trunkline_agentkit.survivor import Survivor, incarnation_of, survivor_of
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read, read_session
from trunkline_bus.stored import Stored
from trunkline_fold.asks import AsksState, fold_asks
from trunkline_wire import TrunklineError, decode_command, subjects


class Folds(msgspec.Struct, frozen=True, kw_only=True):
    memory: Memory
    asks: AsksState

    @property
    def unfinished(self) -> bool:
        """Whether something began that nobody has ended, a terminal too: then the session needs an owner."""
        state = self.memory.session
        if state.closed is not None:
            return bool(self.memory.commands.open)  # a `close` that was done, or a `resume` that was not
        first = bool(state.options.prompt) and state.turns == 0
        first = first and first_prompt_id(state.session) not in self.memory.handed_over
        return bool(
            first
            or state.turn is not None
            or state.open_tools
            or state.open_asks
            or self.memory.commands.open
            or state.condition not in {None, "stopped"}
            or (state.interface == "terminal" and incarnation_of(state) is not None)
        )


async def fold_log(bus: Bus, session: str, *, until: int | None = None) -> Folds:
    """The folds of all of a session's events up to and with the stream sequence `until`, by default of all there are.

    Raises TrunklineError `bad_event` for a log that this version can't read, `log_unavailable`.
    """
    return _fold(session, await read_session(bus, session, until=until))


def _fold(session: str, log: Iterable[Stored]) -> Folds:
    memory, asks = Memory(session), AsksState()
    for stored in log:
        event = stored.event()
        memory.fold(event, stored.sequence)
        asks = fold_asks(asks, event, stored.sequence)
    return Folds(memory=memory, asks=asks)


async def find_survivor(bus: Bus, session: str, *, until: int) -> Survivor:
    """What the log up to the claim at `until` tells of the agent that outlived its owner. Raises what `fold_log` raises."""
    log = await read_session(bus, session, until=until)
    folds = _fold(session, log)
    return survivor_of(folds.memory, folds.asks, [stored.event() for stored in log])


async def has_unread(bus: Bus, session: str, *, after: int, closed: bool) -> bool:
    """Whether commands came behind `after` that an owner has to look at: for a closed session only `resume` is one."""
    for stored in await read(bus, subjects.COMMANDS, [subjects.session_commands(session)], after=after):
        try:
            if not closed or decode_command(stored.raw).verb == "resume":
                return True
        except TrunklineError:
            continue
    return False
