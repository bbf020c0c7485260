"""What needs more than a participant, because it goes around the asks: pure."""

from typing import Final

from trunkline_gateway.roles import Role
from trunkline_wire.session import Capabilities, SessionOptions

VERBS: Final[dict[str, Role]] = {
    "native": "owner",
    "kill": "owner",
    "set_mode": "approver",
    "hand_over": "approver",
}
"""The agent's own protocol and its process are the owner's. A mode may allow everything, and in an agent's own terminal its
asks are answered by typing: both are decisions in advance.
"""

_OWNER: Final = ("environment", "mcp_servers", "native", "agents")
"""Options that run programs, or change how the agent is started."""
_APPROVER: Final = ("mode", "allowed_tools", "resume_native")
"""Options that decide asks in advance, or bring a conversation in that did."""


def role_for_verb(verb: str) -> Role:
    return VERBS.get(verb, "participant")


def role_to_type(capabilities: Capabilities | None) -> Role:
    """Who may type in a session's terminal: where its agent asks, keys are answers."""
    return "approver" if capabilities is not None and capabilities.permissions else "participant"


def role_for_session(options: SessionOptions, capabilities: Capabilities | None) -> Role:
    """Who may start a session with these options, by an adapter with these capabilities (None: not known)."""
    if any(getattr(options, name) for name in _OWNER):
        return "owner"
    if any(getattr(options, name) for name in _APPROVER):
        return "approver"
    if capabilities is not None and (not capabilities.permissions or "permissions" in capabilities.heuristic):
        return "approver"  # it runs tools without asking, or may
    return "participant"
