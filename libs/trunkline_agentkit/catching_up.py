"""What of an agent's messages the log has already, where all that passed is read again. Pure.

A translator makes of the same lines the same events, in the same order. The log has a beginning of them: so many messages
whole, perhaps a part of the next one, and of what followed from ours what stands behind that.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from trunkline_agentkit.protocol import Fact, ItemEnd, Native, Out, Piece, Progress
from trunkline_agentkit.survivor import Survivor
from trunkline_wire.session import SessionResumed

Piecemeal = tuple[str, int, str, str | None]


class CatchingUp:
    """Give it every message in order: `pass_on` says what of it the log lacks. `end` is said once all that had passed is read."""

    def __init__(self, survivor: Survivor) -> None:
        self._left = survivor.natives
        self._parts = survivor.parts
        self._behind = list(survivor.behind)
        self._live = False
        self._pieces: dict[Piecemeal, list[str]] = {}

    def pass_on(self, native: Native) -> list[Native]:
        facts = [one for one in native.out if isinstance(one, Fact)]
        if native.ours:
            return self._pass_on_ours(native, facts)
        if native.out and not facts:
            self._remember(native.out)
            return []
        if self._left > 0:
            self._left -= 1
            self._remember(native.out)
            told = self._parts if self._left == 0 else len(facts)
            return [replace(native, out=facts[told:])] if told < len(facts) else []
        self._live = True
        pieces = self._said_in_pieces()
        self._remember([one for one in native.out if isinstance(one, ItemEnd)])
        return [*pieces, native]

    def end(self, native_session: str | None = None) -> list[Native]:
        """What is being said at this moment, and that the agent is taken up."""
        resumed = Fact(data=SessionResumed(how="adopted", native_session=native_session))
        return [*self._said_in_pieces(), Native(raw=b"", out=[resumed], kind="adopted", ours=True)]

    def _pass_on_ours(self, native: Native, facts: Sequence[Fact]) -> list[Native]:
        if self._left > 0:
            return []
        new: list[Fact] = []
        for fact in facts:
            key = (fact.data.TYPE, fact.item)
            if not self._live and key in self._behind:
                del self._behind[: self._behind.index(key) + 1]
            else:
                self._live = True
                new.append(fact)
        return [replace(native, out=new)] if new else []

    def _remember(self, out: Sequence[Out]) -> None:
        """Pieces of blocks that nobody has ended yet: their watchers get them again, as one."""
        for one in out:
            match one:
                case Piece() if one.text:
                    self._pieces.setdefault((one.item, one.block, one.kind, one.lane), []).append(one.text)
                case ItemEnd():
                    self._pieces = {key: said for key, said in self._pieces.items() if key[0] != one.item}
                case Progress() | Piece() | Fact():
                    pass

    def _said_in_pieces(self) -> list[Native]:
        pieces, self._pieces = self._pieces, {}
        out = [
            Piece(item=item, block=block, kind=kind, text="".join(said), lane=lane)  # pyright: ignore[reportArgumentType]  # as it came
            for (item, block, kind, lane), said in pieces.items()
        ]
        return [Native(raw=b"", out=out, kind="pieces")] if out else []
