"""What policies are made of, and the rules that come before all others."""

from typing import Final, Literal

import msgspec

from trunkline_fold.asks import AskKind
from trunkline_wire.blocks import ToolKind

Action = Literal["allow", "deny", "ask"]
OnExpiry = Literal["allow", "deny"]
Role = Literal["viewer", "participant", "approver", "owner"]
Danger = Literal["destroys", "publishes", "privileged", "network", "downloads", "installs", "secrets", "obscured"]

ASK_TWO: Final = "ask-two"
"""The word for: ask, and two different people have to allow it."""

FILE_ORIGIN: Final = "policy file"
BUILT_IN: Final = "built in"


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule; an empty tuple matches everything. `expires_after` is in seconds, costs in USD.

    `hours` are (begin, end) in minutes since midnight, `weekdays` 0 for Monday to 6, both in `zone`.
    """

    name: str
    action: Action
    adapter: tuple[str, ...] = ()
    workspace: tuple[str, ...] = ()
    cwd: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    kind: tuple[ToolKind, ...] = ()
    command: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    mcp_server: tuple[str, ...] = ()
    danger: tuple[Danger, ...] = ()
    cost_at_least: float | None = None
    cost_at_most: float | None = None
    hours: tuple[tuple[int, int], ...] = ()
    weekdays: tuple[int, ...] = ()
    zone: str = "UTC"
    asks: tuple[AskKind, ...] = ("permission",)
    message: str | None = None
    expires_after: float | None = None
    on_expiry: OnExpiry = "deny"
    quorum: int = 1
    role: Role | None = None
    signed: bool = False
    origin: str = FILE_ORIGIN


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """`version` is the sha256 (hex) of the text that the rules were read from."""

    version: str
    rules: tuple[Rule, ...]
    default: Action = "ask"


class Ruling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a policy says about an ask; `rule` is None where no rule matched."""

    action: Action
    policy_version: str
    rule: str | None = None
    message: str | None = None
    expires_after: float | None = None
    on_expiry: OnExpiry = "deny"
    quorum: int = 1
    role: Role | None = None
    signed: bool = False

    @property
    def plain(self) -> bool:
        """Whether people are asked on no condition, neither a quorum, a role nor a signature: the session's rules may answer."""
        return self.action == "ask" and self.quorum == 1 and self.role is None and not self.signed


def protecting_rules(state_dir: str) -> tuple[Rule, ...]:
    """The rules that keep agents off Trunkline's own directory (its token among the rest) and off its command."""
    inside = state_dir.rstrip("/")
    message = "Trunkline's own files and commands are for people, not for agents."
    return (
        Rule(name="trunkline-state", action="deny", path=(f"{inside}/**",), message=message, origin=BUILT_IN),
        Rule(
            name="trunkline-state-by-command",
            action="deny",
            command=(
                f"*{inside}*",
                "*~/.trunkline*",
                "*$HOME/.trunkline*",
                "*${HOME}/.trunkline*",
                "*$TRUNKLINE_*",
                "*${TRUNKLINE_*",
            ),
            message=message,
            origin=BUILT_IN,
        ),
        Rule(
            name="trunkline-command",
            action="deny",
            command=("trunkline", "trunkline *", "python* -m trunkline_*", "uv run trunkline*", "uvx trunkline*"),
            message=message,
            origin=BUILT_IN,
        ),
    )
