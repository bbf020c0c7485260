"""What is known of each agent: one TOML file in `profiles/`, and no code.

The core asks a profile, never who the agent is. Files in the directory that `TRUNKLINE_HEADLESS_PROFILES` names come on top.
"""

import re
from typing import Final, Literal

from trunkline_adapters.headless.dialects import DIALECTS
from trunkline_agentkit.profiles import AgentProfile, Profiles
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.session import Capabilities


class Profile(AgentProfile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an agent is started for one turn, and what it prints."""

    dialect: str | None = None
    prompt: Literal["stdin", "argument"] = "stdin"
    """How it takes the prompt; an argument is the last one, is visible to everyone on the machine and holds at most 128 KiB."""
    resume: tuple[str, ...] = ()
    """Arguments right behind the program that take up `{session}`; without them each prompt begins anew."""
    model: tuple[str, ...] = ()
    """Arguments that choose `{model}`."""
    modes: dict[str, tuple[str, ...]] = {}
    """Arguments by mode: how much it may do without asking, for it can't ask."""
    streaming: bool = True
    """Whether texts come in pieces."""
    cost: bool = False
    """Whether it tells what a turn costs."""
    ends: Literal["message", "exit"] = "message"
    """What ends a turn: a message, or the program's own end with exit code 0 behind an answer."""
    runtime: Literal["node", "bun"] | None = None
    """What it runs on, if it leaves before all of a long answer is out of its pipe: then it is made to wait for its reader."""
    signed_out: str | None = None
    """A pattern in its error, or at the end of its error output: it wants a login."""
    lost: str | None = None
    """Likewise: it does not know the session that it was to take up."""
    missed: str | None = None
    """Likewise: it did not see the prompt that was on its standard input, and has done nothing."""
    stall_s: float = 600.0
    """Seconds without a word, while no tool runs, after which a turn has failed."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            streaming=self.streaming,
            interrupt=True,
            resume=bool(self.resume),
            model_switching=bool(self.model),
            mode_switching=bool(self.modes),
            cost_tracking=self.cost,
            options=tuple(
                name
                for name, has in (
                    ("model", self.model),
                    ("mode", self.modes),
                    ("resume_native", self.resume),
                    ("native", True),
                )
                if has
            ),
        )

    def failure(self, said: str) -> ErrorInfo:
        """What an error of the agent's, or the end of its error output, means."""
        if self.signed_out is not None and re.search(self.signed_out, said):
            how = f"run `{self.login}` as the worker's user" if self.login else "sign in as the worker's user"
            return ErrorInfo(code="agent_auth", message=f"{self.title} wants a login: {how}, then try again ({said})")
        if self.has_lost(said):
            return ErrorInfo(
                code="history_lost",
                message=f"{self.title} does not know the session any more: the next prompt begins a new one ({said})",
            )
        return ErrorInfo(code="agent_failed", message=said)

    def has_missed(self, said: str) -> bool:
        return self.missed is not None and re.search(self.missed, said) is not None

    def has_lost(self, said: str) -> bool:
        return self.lost is not None and re.search(self.lost, said) is not None


def _check(profile: Profile) -> None:
    for pattern in (profile.signed_out, profile.lost, profile.missed):
        re.compile(pattern or "")
    if profile.dialect not in DIALECTS or not profile.command:
        raise ValueError(f"it needs a `command` and a `dialect` ({', '.join(sorted(DIALECTS))})")


PROFILES: Final = Profiles(Profile, "trunkline_adapters.headless", "TRUNKLINE_HEADLESS_PROFILES", check=_check)
NO_PROFILE: Final = Profile()
