"""How an owner behaves, as numbers."""

from typing import Literal

import msgspec


class OwnerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds."""

    idle_after: float = 1800.0
    """After this time without anything to do the agent is stopped and the session let go."""
    stalled_after: float = 120.0
    """A turn that is silent for so long, with no tool or ask open, is `stalled`."""
    effect_within: float = 30.0
    """How long a control verb may take in the agent."""
    close_grace: float = 5.0
    """How long an agent may take to leave after the end of its input."""
    held_for: float = 86_400.0
    """How long an agent that is held on purpose goes on without any worker."""
    lease_ttl: float = 30.0
    """After this time without a sign of the session's owner another host may take it; at most the bucket's 30."""
    turns_within: float = 0.0
    """How long running turns may go on once the worker is told to stop."""
    tick: float = 0.5
    observe_files: Literal["terminals", "always", "never"] = "terminals"
    """Whose teams' files are looked at: those of sessions in a terminal, everybody's on this host, nobody's."""
    record_native: bool = False
