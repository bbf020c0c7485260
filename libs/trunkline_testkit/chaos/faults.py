"""Faults as data, and plans of them drawn from a seed: the same seed gives the same plan."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["kill", "stop", "cut", "delay"]
"""SIGKILL; SIGSTOP, then SIGCONT; a line that carries nothing, then does; a line that is slow for a while."""

Moment = Literal["any", "turn", "ask"]
"""At once; while a turn is under way; while an ask is open."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`part` is hit in the way `kind` at a moment `at`, `pause` seconds after the system had recovered from the last fault.

    What is stopped, cut or slow is so for `seconds`.
    """

    kind: Kind
    part: str
    at: Moment
    pause: float
    seconds: float = 0.0

    def __str__(self) -> str:
        lasting = f" for {self.seconds:.1f} s" if self.kind != "kill" else ""
        return f"{self.kind} {self.part}{lasting}, {self.at}, +{self.pause:.2f} s"


_MOMENTS: Final[tuple[Moment, ...]] = ("any", "turn", "turn", "ask")


def plan(
    seed: int,
    kills: int,
    parts: Mapping[str, float],
    *,
    others: Mapping[Kind, tuple[str, ...]] | None = None,
    every: int = 8,
    pause: float = 0.4,
) -> list[Fault]:
    """`kills` kills, the parts by weight, and after about `every` of them one of the `others` (kind to parts)."""
    chance = random.Random(seed)
    names, weights = list(parts), list(parts.values())
    choices: list[tuple[Kind, str]] = [(kind, part) for kind, hit in (others or {}).items() for part in hit]
    faults: list[Fault] = []
    for _ in range(kills):
        if choices and chance.random() < 1 / every:
            kind, part = chance.choice(choices)
            faults.append(Fault(kind, part, "any", chance.uniform(0, pause), round(chance.uniform(0.3, 2.5), 1)))
        (part,) = chance.choices(names, weights)
        faults.append(Fault("kill", part, chance.choice(_MOMENTS), chance.uniform(0, pause)))
    return faults
