"""What of a screen is a program's answer: not the echo of what was typed, nor what its profile calls noise. Pure."""

import re
from collections.abc import Callable, Sequence
from typing import Final

_ECHOED: Final = 12
"""Characters of a prompt that tell its echo from anything else."""
_FRAME: Final = " >❯›│┃╰╭─$#%"  # noqa: RUF001  # what prompts are drawn with
"""What stands around a line that is typed."""


def answer(since_top: list[str], since_line: list[str], said: str, noise: Sequence[str]) -> str:
    """What follows the echo of `said`, in the lines from the top of the screen where that was typed; without an echo, what
    follows the line at which it was typed.
    """
    patterns = [re.compile(pattern) for pattern in noise]

    def is_noise(line: str) -> bool:
        return any(pattern.search(line) for pattern in patterns)

    lines = _without_echo(since_top, said, is_noise)
    kept = [line for line in (since_line if lines is None else lines) if not is_noise(line)]
    return "\n".join(kept).strip()


def ends_with(said: str, shown: str) -> bool:
    """Whether the end of a text stands on a screen, however its lines are broken."""
    return "".join(said.split())[-_ECHOED:] in "".join(shown.split())


def plain(typed: str) -> str:
    """Keys as what they show: Enter stays, other controls go."""
    return re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x0c\x0e-\x1f]", "", typed.replace("\n", "\r"))


def _without_echo(lines: list[str], said: str, is_noise: Callable[[str], bool]) -> list[str] | None:
    """The lines behind those that last show what was typed; None where none does."""
    left = said.replace("\r", " ").strip()
    whole = min(len(said.strip().partition("\r")[0]), _ECHOED)

    def begins_it(line: str) -> bool:
        # A line of state may have it for a title, behind other words.
        echo = _echo(line, left)
        return len(echo) >= whole and (line.strip(_FRAME).startswith(echo) or not is_noise(line))

    found = (number for number in reversed(range(len(lines))) if begins_it(lines[number]))
    if not left or (first := next(found, None)) is None:
        return None
    for number in range(first, len(lines)):
        echo = _echo(lines[number], left)
        if lines[number].strip(_FRAME) and not echo:
            return lines[number:]
        left = left[len(echo) :].lstrip()
        if not left:
            return lines[number + 1 :]
    return []


def _echo(line: str, said: str) -> str:
    """What `said` begins with at the end of a line, behind a prompt of whatever words."""
    shown = line.strip(_FRAME)
    begins = [0, *(at + 1 for at, one in enumerate(shown) if one in _FRAME)]
    return next((shown[at:] for at in begins if shown[at:] and said.startswith(shown[at:])), "")
