"""Text that rolls by is not drawn: of many plain lines at once only those are that are still on the screen afterwards. Pure.

What is left out is kept as lines that have scrolled away, and the colours that it leaves behind still hold, so that a screen is the
same as if all of it had been drawn.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Final

from trunkline_adapters.pty.canvas import Canvas

_PLAIN: Final = re.compile("(?:[ -~\u00a1-\u00ac\u00ae-\u02ff\u2500-\u259f]++|\x1b\\[[0-9;]*+m)*+")
"""A line of characters that take one column each, with colours."""
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_RESET: Final = frozenset({"\x1b[m", "\x1b[0m"})
_LINE_END: Final = "\r\n"


def roll(canvas: Canvas, draw: Callable[[str], None], text: str) -> None:
    """Draws a text on a canvas. `draw` is what draws there."""
    few = 2 * canvas.lines
    if text.count(_LINE_END) <= 2 * few:
        draw(text)
        return
    *lines, rest = text.split(_LINE_END)
    waiting: list[str] = []
    for plain, group in groupby(lines, lambda line: _PLAIN.fullmatch(line) is not None):
        some = list(group)
        if plain and len(some) > 2 * few:
            # At the end of a screenful of lines the cursor stands where lines push up what is there.
            draw(_joined([*waiting, *some[: canvas.lines]]))
            waiting, some = [], some[canvas.lines :]
            if canvas.rolls:
                some = _without_gone(canvas, draw, some)
        waiting += some
    draw(_joined(waiting) + rest)


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}{_LINE_END}" for line in lines)


def _without_gone(canvas: Canvas, draw: Callable[[str], None], lines: list[str]) -> list[str]:
    """The lines that have still to be drawn once all before them has rolled away."""
    first, height = len(lines), 0
    while height < canvas.lines - 1:
        first -= 1
        height += max(1, -(-len(_COLOURS.sub("", lines[first])) // canvas.columns))
    gone = lines[:first]
    canvas.roll(piece for line in gone for piece in _rows(_COLOURS.sub("", line), canvas.columns))
    draw("".join(_left_behind(gone)))
    return lines[first:]


def _rows(line: str, columns: int) -> Iterator[str]:
    """The rows that a line takes."""
    if len(line) <= columns:
        yield line.rstrip()
    else:
        yield from (line[at : at + columns].rstrip() for at in range(0, len(line), columns))


def _left_behind(lines: list[str]) -> deque[str]:
    """The colours that still hold behind these lines."""
    found: deque[str] = deque()
    for line in reversed(lines):
        for colour in reversed(_COLOURS.findall(line)):
            found.appendleft(colour)
            if colour in _RESET:
                return found
    return found
