"""What is known of agents beyond the protocol: one TOML file each in `profiles/`, and no code.

The core asks a profile, never who the agent is. Files in the directory that `TRUNKLINE_ACP_PROFILES` names come on top.
"""

import re
from typing import Final, Literal

import msgspec

from trunkline_agentkit.profiles import AgentProfile, Profiles


class Sign(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A string in a message: `at` is a dotted path, as all places are named here."""

    at: str
    value: str


class Terminal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments with which the agent's program, started without those for ACP, takes up a session in its own terminal: that of
    `{session}`, those of `{model}` and `{mode}`. `modes` are the terminal's words for modes that the protocol calls otherwise.
    """

    resume: tuple[str, ...]
    model: tuple[str, ...] = ()
    mode: tuple[str, ...] = ()
    modes: dict[str, str] = {}


class Profile(AgentProfile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an agent is started, and where it departs from the protocol."""

    unproved: str = ""
    """Why nothing of it was run: then the profile is as the agent's documentation says."""
    temporary: tuple[str, ...] = ()
    """Variables beside TMPDIR that name the session's directory for temporary files to it."""
    names: tuple[str, ...] = ()
    """What the agent calls itself (`agentInfo.name`): its quirks are known also where it was started by a command."""
    mode: str | None = None
    """The mode to begin in where the session names none: for agents that begin in one that never asks."""
    streaming: bool = True
    """Whether it tells an answer while its model gives it."""
    questions: bool = False
    plans: bool = False
    """Whether its model can ask the user something, and propose a plan, through the protocol."""
    compact: str = "compact"
    """The command by which it compacts its context, if it has that command."""
    usage: Literal["turn", "total"] = "turn"
    """Whether the `usage` of a prompt's answer is of that turn, or all so far."""
    cost: bool = False
    """Whether the agent tells what a session costs."""
    counts: Literal["session", "process"] = "session"
    """Whether all that was used so far goes on when a session is taken up, or begins anew."""
    files: bool = True
    terminals: bool = True
    """Whether the agent is offered `fs/*` and `terminal/*`."""
    missing_file: Literal["error", "empty"] = "error"
    """What reading a missing file gives: some agents can't create a file where that is an error."""
    mode_chunk: str | None = None
    """A message whose text is this pattern is no message, but tells the mode, its group 1."""
    notice_chunk: str | None = None
    """A message without an id whose text has this pattern is a notice of the program, not of the model."""
    error_chunk: str | None = None
    """A message without an id whose text has this pattern tells why the turn has failed, unless the agent goes on after it."""
    failure: Sign | None = None
    """What an update holds that says that the turn has failed; the message without an id that follows tells why."""
    signed_out: str | None = None
    """A pattern in the error of a turn: it wants a login, or its key was refused. The next prompt starts it again."""
    silent_chunk: str | None = None
    """A message without an id whose text has this pattern is none of the model's, and says nothing to a reader."""
    load_later: bool = False
    """Whether it can't load a session in the minute of the clock in which it began that session."""
    questions_at: str | None = None
    """Where the tool call of a permission request holds the questions that the request is made of: a dotted path. Their answers go
    beside the option that is chosen, by the number of the question."""
    load_to_fork: bool = False
    """Whether it copies a session only once it has loaded it."""
    apart: bool = False
    """The tool call in a permission request is none: the request is about the calls that are open."""
    tool_name: str | None = None
    parent_call: str | None = None
    """Where a tool call holds the tool's name, and the id of the call whose subagent makes it: dotted paths."""
    silent: tuple[str, ...] = ()
    """Methods of the agent's own that mean nothing to a reader; a `*` at the end takes every method that starts so."""
    history: Literal["chats"] | None = None
    """The form of the histories that it keeps of its own, where they can be imported (`gemini_history.py`)."""
    terminal: Terminal | None = None
    """Its own terminal, which the adapter of terminal programs knows by the agent's name. What is said there comes into the log
    from the agent's history: without `history` it has none."""
    interrupt_s: float = 20.0
    """Seconds that it may take to end a turn that was interrupted; then it is ended itself, and its session taken up again."""
    start_s: float = 120.0
    """Seconds that the agent may take to answer the first request."""

    def is_signed_out(self, said: str) -> bool:
        return self.signed_out is not None and re.search(self.signed_out, said) is not None

    def is_silent(self, method: str) -> bool:
        return any(method.startswith(name[:-1]) if name.endswith("*") else method == name for name in self.silent)


def _check(profile: Profile) -> None:
    if profile.terminal is not None and profile.history is None:
        raise ValueError("a `terminal` needs a `history`")
    for pattern in (
        profile.mode_chunk,
        profile.notice_chunk,
        profile.error_chunk,
        profile.silent_chunk,
        profile.signed_out,
    ):
        re.compile(pattern or "")


PROFILES: Final = Profiles(Profile, "trunkline_adapters.acp", "TRUNKLINE_ACP_PROFILES", check=_check)
NO_PROFILE: Final = Profile(title="ACP agent")


def named_by(agent: str | None) -> Profile | None:
    """The profile of an agent that calls itself so."""
    if agent is None:
        return None
    return next((one for one in PROFILES.shipped.values() if agent in one.names), None)
