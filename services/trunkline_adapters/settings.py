"""Settings of the worker process."""

from typing import Literal

from trunkline_agentkit.settings import OwnerSettings
from trunkline_service import Settings


class AdaptersSettings(Settings, frozen=True, kw_only=True):
    """Times in seconds."""

    only: list[str] = []
    """Names of the adapters to run; none given: all that are installed."""
    idle_after: float = 1800.0
    """An agent that has nothing to do for so long is stopped; its session stays."""
    stalled_after: float = 120.0
    """A turn that is silent for so long is reported as stalled."""
    effect_within: float = 30.0
    """How long a control command may take in the agent."""
    close_grace: float = 5.0
    """How long an agent may take to leave by itself."""
    turns_within: float = 0.0
    """Once the worker is told to stop, running turns may go on for so long; `drain_s` has to be longer."""
    lease_ttl: float = 30.0
    """After so long without a sign of a session's owner another host may take it, if it is for any host; at most 30."""
    observe_files: Literal["terminals", "always", "never"] = "terminals"
    """Whose teams' files are looked at: those of sessions in a terminal or with silent teams, everybody's on this host, nobody's."""
    record_native: bool = False
    """Record what agents and worker say to each other in host/sessions/<session>/native.jsonl."""

    def of_owner(self) -> OwnerSettings:
        return OwnerSettings(
            idle_after=self.idle_after,
            stalled_after=self.stalled_after,
            effect_within=self.effect_within,
            close_grace=self.close_grace,
            turns_within=self.turns_within,
            lease_ttl=self.lease_ttl,
            observe_files=self.observe_files,
            record_native=self.record_native,
        )
