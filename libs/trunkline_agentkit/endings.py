"""What is written for an agent that is gone: everything it left open gets its end. Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from trunkline_agentkit.agent_process import Exit
from trunkline_fold.session import SessionState
from trunkline_wire import Data
from trunkline_wire.asks import AskWithdrawn
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.turn import MessageUser, ToolCompleted, TurnCompleted
from trunkline_wire.work import ErrorRaised, TaskUpdated


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """An event to write, with the envelope's fields that it needs."""

    data: Data
    item: str | None = None
    turn: str | None = None
    lane: str | None = None
    cause: str | None = None


def leftovers(
    state: SessionState,
    *,
    asks: Iterable[str] = (),
    queued: Mapping[str, str] | None = None,
    error: ErrorInfo | None = None,
) -> list[Ending]:
    """The ends of open tools, of running tasks, of `asks`, of the turn, and of prompts that the agent had `queued`."""
    turn = state.turn.id if state.turn is not None else None
    endings = [
        Ending(
            data=ToolCompleted(status="cancelled", reason="the agent ended"),
            item=item,
            turn=tool.turn,
            lane=tool.lane,
        )
        for item, tool in sorted(state.open_tools.items(), key=lambda entry: entry[1].started)
    ]
    endings += [
        Ending(data=TaskUpdated(task=task.task, status="stopped"), turn=turn)
        for task in state.tasks
        if task.status in {"pending", "running"}
    ]
    endings += [Ending(data=AskWithdrawn(ask=ask, why="agent_died"), turn=turn) for ask in asks]
    if state.turn is not None:
        endings.append(
            Ending(data=TurnCompleted(outcome="aborted", trigger=state.turn.trigger, error=error), turn=turn)
        )
    endings += [
        Ending(data=MessageUser(content=[], delivery="cancelled", command=command), item=item, cause=command)
        for command, item in (queued or {}).items()
    ]
    return endings


def died(exit: Exit, stderr: str) -> ErrorRaised:
    """The error event of an agent that ended by itself in the middle of something. `stderr` is free of secrets."""
    how = "ended, nobody knows how"
    if exit.signal is not None:
        how = f"ended with signal {exit.signal}"
    elif exit.code is not None:
        how = f"ended with exit code {exit.code}"
    return ErrorRaised(
        code="agent_failed",
        message=f"The agent {how}; the next prompt starts it again.",
        details={"exit_code": exit.code, "signal": exit.signal, "stderr": stderr},
    )
