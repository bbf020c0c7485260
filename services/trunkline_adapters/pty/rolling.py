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

_NARROW: Final = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff\u2500-\u259f]*+")
"""Characters that take one column each."""
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
    bare = _COLOURS.sub("", text).split(_LINE_END)
    waiting: list[str] = []
    at = 0
    for plain, group in groupby(bare[: len(lines)], _is_plain):
        begin, at = at, at + len(list(group))
        if plain and at - begin > 2 * few:
            # At the end of a screenful of lines the cursor stands where lines push up what is there.
            head = begin + canvas.lines
            draw(_joined([*waiting, *lines[begin:head]]))
            waiting, begin = [], head
            if canvas.rolls:
                begin = _roll(canvas, draw, lines, bare, head, at)
        waiting += lines[begin:at]
    draw(_joined(waiting) + rest)


def _is_plain(line: str) -> bool:
    return line.isprintable() and (line.isascii() or _NARROW.fullmatch(line) is not None)


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}{_LINE_END}" for line in lines)


def _roll(canvas: Canvas, draw: Callable[[str], None], lines: list[str], bare: list[str], begin: int, end: int) -> int:
    """Has the lines from `begin` on roll away; the first of those that have still to be drawn."""
    first, height = end, 0
    while height < canvas.lines - 1:
        first -= 1
        height += max(1, -(-len(bare[first]) // canvas.columns))
    canvas.roll(row for line in bare[begin:first] for row in _rows(line, canvas.columns))
    draw("".join(_left_behind(lines[begin:first])))
    return first


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
