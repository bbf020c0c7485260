"""Who asks, and what they may: roles nest, and a scope limits what is seen at all.

viewer (sees) < participant (prompts, interrupts) < approver (decides) < owner (everything).
"""

from typing import Final, Literal

import msgspec

from trunkline_wire import TrunklineError
from trunkline_wire.events import Source

Role = Literal["viewer", "participant", "approver", "owner"]
Via = Literal["socket", "tcp", "nats", "link"]
Limited = Literal["session", "itself", "never"]
"""How a method keeps to a token's scope: its `session` has to be in it, it sees to it itself, or it is refused."""
_RANK: Final[dict[Role, int]] = {"viewer": 0, "participant": 1, "approver": 2, "owner": 3}


class Scope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sessions and workspaces that a token is limited to: what is in either; both empty is everything."""

    sessions: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        return not self.sessions and not self.workspaces

    def holds(self, session: str, workspace: str | None) -> bool:
        """Whether a session of a workspace is in it."""
        return self.whole or session in self.sessions or (workspace is not None and workspace in self.workspaces)

    @property
    def rights(self) -> str:
        """The same for scopes that hold the same; empty for everything. Cursors are bound to it."""
        return " ".join(sorted({*self.sessions, *self.workspaces}))


EVERYTHING: Final = Scope()


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks. `token` is the id of the token's record, None on the unix socket; `expires` is in seconds since 1970.

    `device` is the one that asks, `parent` that by whose rights the token was made, where it is none of a device's own.
    `extension` is the name of one that asks over NATS.
    """

    actor: str
    role: Role
    via: Via
    token: str | None = None
    scope: Scope = EVERYTHING
    device: str | None = None
    parent: str | None = None
    expires: float | None = None
    extension: str | None = None

    @property
    def under(self) -> str | None:
        """The device with which this access ends, and with it all access that is given by it."""
        return self.device or self.parent

    @property
    def source(self) -> Source:
        return Source(actor=self.actor, via=self.via)

    def may(self, role: Role) -> bool:
        return _RANK[self.role] >= _RANK[role]

    def require(self, role: Role, method: str) -> None:
        """Raises TrunklineError `forbidden` for a role below `role`."""
        if not self.may(role):
            raise TrunklineError(
                "forbidden",
                f"{method!r} needs the role {role!r}, yours is {self.role!r}: ask the owner for another token",
                needs=role,
                role=self.role,
            )


def out_of_scope(what: str) -> TrunklineError:
    """The refusal of something that a limited token does not reach, whether it exists or not."""
    return TrunklineError("forbidden", f"your token is limited, and {what} is not in what it reaches")
