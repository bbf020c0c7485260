"""What a limited token sees of the sessions: those of its scope, and nothing of the others."""

from collections.abc import Iterable

import msgspec

from trunkline_fold.asks import Ask
from trunkline_fold.session import SessionState
from trunkline_gateway.blocks import OpenBlock
from trunkline_gateway.directory import Directory
from trunkline_gateway.ring import Frame
from trunkline_gateway.roles import Principal, Scope, out_of_scope
from trunkline_wire.session import SessionCreated


class _Created(msgspec.Struct, frozen=True):
    workspace: str | None = None


class _Envelope(msgspec.Struct, frozen=True):
    data: _Created = _Created()


class Sight:
    """The directory through one scope."""

    def __init__(self, directory: Directory, scope: Scope) -> None:
        self._directory = directory
        self._scope = scope

    def holds(self, session: str) -> bool:
        if self._scope.whole:
            return True
        state = self._directory.states.get(session)
        return self._scope.holds(session, state.workspace if state is not None else None)

    def frame(self, frame: Frame) -> bool:
        """Whether an event may be shown. The first of a session comes before its state is known."""
        if self._scope.whole or self.holds(frame.session):
            return True
        if frame.type != SessionCreated.TYPE:
            return False
        try:
            workspace = msgspec.json.decode(frame.raw, type=_Envelope).data.workspace
        except msgspec.MsgspecError:
            return False
        return self._scope.holds(frame.session, workspace)

    def states(self) -> list[SessionState]:
        """All that are seen, the one with the latest event first."""
        seen = (state for key, state in self._directory.states.items() if self.holds(key))
        return sorted(seen, key=lambda state: state.sequence, reverse=True)

    def asks(self, session: str | None = None) -> list[Ask]:
        return [ask for ask in self._directory.asks(session) if self.holds(ask.session)]

    def blocks(self, blocks: Iterable[OpenBlock]) -> list[OpenBlock]:
        return [block for block in blocks if self.holds(block.session)]


async def require_sight(directory: Directory, principal: Principal, session: str) -> None:
    """Raises TrunklineError `forbidden` for a session that the principal's scope does not hold."""
    scope = principal.scope
    if scope.whole or session in scope.sessions:
        return
    if scope.workspaces:
        state = directory.states.get(session) or await directory.session(session)
        if scope.holds(session, state.workspace):
            return
    raise out_of_scope(f"session {session!r}")
