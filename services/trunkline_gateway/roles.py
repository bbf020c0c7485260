"""Roles nest: viewer (sees) < participant (prompts, interrupts) < approver (decides) < owner (everything)."""

from typing import Final, Literal

import msgspec

from trunkline_wire import TrunklineError
from trunkline_wire.events import Source

Role = Literal["viewer", "participant", "approver", "owner"]
Via = Literal["socket", "tcp"]
_RANK: Final[dict[Role, int]] = {"viewer": 0, "participant": 1, "approver": 2, "owner": 3}


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks. `token` is the id of the token's record, None on the unix socket."""

    actor: str
    role: Role
    via: Via
    token: str | None = None

    @property
    def source(self) -> Source:
        return Source(actor=self.actor, via=self.via)

    def require(self, role: Role, method: str) -> None:
        """Raises TrunklineError `forbidden` for a role below `role`."""
        if _RANK[self.role] < _RANK[role]:
            raise TrunklineError(
                "forbidden",
                f"{method!r} needs the role {role!r}, yours is {self.role!r}: ask the owner for another token",
                needs=role,
                role=self.role,
            )
