"""Agents whose teams stand in files: what an adapter says of them."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from trunkline_wire import Data

Leads = Callable[[str | None, int | None], str | None]
"""Given the lead's own name for its session, and its process: the session on the bus, "" for a stranger's, None: it is not observed."""


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """An observation without the time and the host. Its `id` is derived where it names something that is seen but once."""

    data: Data
    native_session: str | None
    session: str
    """As `Leads` says."""
    path: str
    """Below the agent's own directory."""
    id: str | None = None


class TeamFiles(Protocol):
    """Looks at the files again and again. Its methods block for a moment."""

    @property
    def directories(self) -> Iterable[Path]:
        """Those in which a change is to be looked at; all of them exist, or did."""
        ...

    def look(self, leads: Leads) -> list[Sight]:
        """What is other than at the last look, at most some hundreds at a time, in an order that can be told in; [] when that was all.

        Never raises for what stands in a file: one that is half written is looked at again.
        """
        ...


@runtime_checkable
class TeamObserver(Protocol):
    """An adapter whose agents' teams can be seen so."""

    def team_files(self) -> TeamFiles: ...


@runtime_checkable
class UnseenTeam(Protocol):
    """A session whose agent's members can work unseen by its own stream: their files tell of them."""

    @property
    def has_unseen_team(self) -> bool: ...

    async def team_changed(self) -> None:
        """The team's files are other than before: what its members ask there comes with `messages()`.

        Raises TrunklineError `agent_failed` where they can't be read now.
        """
        ...
