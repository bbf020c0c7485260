"""Teams of agents: what happens in them, from every source, as `team` events; and the board that those events fold into."""

from trunkline_fold.team.board import (
    BoardMessage,
    BoardTask,
    Team,
    TeamMember,
    TeamRequest,
    TeamsState,
    decode_teams,
    encode_teams,
    initial_teams,
)
from trunkline_fold.team.deriver import Derived, hear, initial_deriver, next_event
from trunkline_fold.team.fold import fold_teams
from trunkline_fold.team.hearing import Deriver, Heard, Input, decode_deriver, encode_deriver
from trunkline_fold.team.operations import Caveat

__all__ = [
    "BoardMessage",
    "BoardTask",
    "Caveat",
    "Derived",
    "Deriver",
    "Heard",
    "Input",
    "Team",
    "TeamMember",
    "TeamRequest",
    "TeamsState",
    "decode_deriver",
    "decode_teams",
    "encode_deriver",
    "encode_teams",
    "fold_teams",
    "hear",
    "initial_deriver",
    "initial_teams",
    "next_event",
]
