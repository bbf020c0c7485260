"""What is known of OpenCode and of what is made of it: one TOML file each in `profiles/`, and no code.

Files in the directory that `TRUNKLINE_OPENCODE_PROFILES` names come on top.
"""

from typing import Final

from trunkline_agentkit.profiles import AgentProfile, Profiles


class Profile(AgentProfile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a program is started, and where it departs from OpenCode."""

    user: str
    """The user that its server wants to be told beside the password."""
    password_variable: str
    user_variable: str
    """Where the server takes password and user from."""
    mode: str
    """The agent that a session begins with where nothing else is said."""
    terminal: str = ""
    """What the adapter of terminal programs knows its terminal by; empty: it has none that takes up a session."""
    silent: tuple[str, ...] = ()
    """Events of its own without a translation; a `*` at the end takes every name that starts so."""


PROFILES: Final = Profiles(Profile, "trunkline_adapters.opencode", "TRUNKLINE_OPENCODE_PROFILES")
DEFAULT: Final = "opencode"


def is_silent(event: str, *more: Profile) -> bool:
    """Whether an event is one of those that a profile calls silent: one of ours, or one of `more`."""
    return any(
        event.startswith(name[:-1]) if name.endswith("*") else event == name
        for one in (*PROFILES.shipped.values(), *more)
        for name in one.silent
    )
