"""A screen as what a terminal has to print to look like it: colours, cursor, alternate screen, modes. Pure.

Whoever prints it may go on with what the program prints next, as if it had seen all before.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import wcwidth
from pyte import charsets, graphics, modes
from pyte.screens import Char, Cursor

from trunkline_adapters.pty.canvas import Buffer, Canvas

_FOREGROUND: Final = {name: code for code, name in (graphics.FG_ANSI | graphics.FG_AIXTERM).items()}
_BACKGROUND: Final = {name: code for code, name in (graphics.BG_ANSI | graphics.BG_AIXTERM).items()}
_FLAGS: Final = (("bold", 1), ("italics", 3), ("underscore", 4), ("blink", 5), ("reverse", 7), ("strikethrough", 9))
_TOLD: Final = (1, 9, 12, 66, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 2004)
"""Private modes that are the terminal's business: cursor keys, mouse, focus, paste."""
_AFRESH: Final = (
    "\x1b[!p\x1b[0m\x1b[4l\x1b[20l\x1b[?5l\x1b[?6l\x1b[?7h\x1b[?25h\x1b[r\x1b(B\x0f"
    f"\x1b[?{';'.join(map(str, _TOLD))}l\x1b[?1049l"
)
_CLEAR: Final = "\x1b[H\x1b[2J"
_PLAIN: Final = Char(" ")


def paint(canvas: Canvas, title: str, above: Sequence[str] = ()) -> str:
    """The lines `above` are printed before, so that they stand above the screen."""
    flipped = modes.DECSCNM in canvas.mode
    parts = [_AFRESH, _CLEAR]
    if above:
        parts += ["\r\n".join(above), "\r\n" * canvas.lines, _CLEAR]
    if canvas.behind is not None:
        buffer, cursor = canvas.behind
        parts += [
            *_cells(canvas, buffer, flipped=flipped),
            *_place(canvas, buffer, cursor),
            "\x1b[?1049h\x1b[0m",
            _CLEAR,
        ]
    parts += _cells(canvas, canvas.buffer, flipped=flipped)
    parts += _saved(canvas)
    parts += _modes(canvas)
    parts += _place(canvas, canvas.buffer, canvas.cursor)
    if title:
        parts.append(f"\x1b]0;{title}\x07")
    return "".join(parts)


def _cells(canvas: Canvas, buffer: Buffer, *, flipped: bool) -> Iterator[str]:
    """Every row that is not empty, from its first column on."""
    for row in range(canvas.lines):
        line = buffer.get(row)
        last = max((x for x, cell in (line or {}).items() if cell != _PLAIN and x < canvas.columns), default=-1)
        if line is None or last < 0:
            continue
        yield f"\x1b[{row + 1}H"
        look, wide = "", False
        for column in range(last + 1):
            cell = line[column]
            width = wcwidth.wcwidth(cell.data[:1])
            if wide and width == 0:  # its second half, with the marks on it
                yield cell.data
                wide = False
                continue
            if wide:  # something was written over its second half
                yield f"\x1b[{row + 1};{column + 1}H"
            style = _style(cell._replace(data="", reverse=cell.reverse is not flipped))
            if style != look:
                yield style
                look = style
            wide = width == 2
            yield cell.data or " "
        yield "\x1b[0m"


def _saved(canvas: Canvas) -> Iterator[str]:
    if canvas.savepoints:
        cursor = canvas.savepoints[-1].cursor
        yield f"{_at(cursor.y, min(cursor.x, canvas.columns - 1))}{_style(cursor.attrs)}\x1b7\x1b[0m"


def _modes(canvas: Canvas) -> Iterator[str]:
    on = canvas.mode
    if canvas.margins is not None:
        yield f"\x1b[{canvas.margins.top + 1};{canvas.margins.bottom + 1}r"
    for mode in _TOLD:
        if mode << 5 in on:
            yield f"\x1b[?{mode}h"
    for mode in (modes.IRM, modes.LNM):
        if mode in on:
            yield f"\x1b[{mode}h"
    for mode in (modes.DECSCNM, modes.DECOM):
        if mode in on:
            yield f"\x1b[?{mode >> 5}h"
    for mode in (modes.DECAWM, modes.DECTCEM):
        if mode not in on:
            yield f"\x1b[?{mode >> 5}l"
    if canvas.g0_charset == charsets.VT100_MAP:
        yield "\x1b(0"
    if canvas.charset == 1:
        yield "\x0e"


def _place(canvas: Canvas, buffer: Buffer, cursor: Cursor) -> Iterator[str]:
    """Puts the cursor where it is, also where it waits behind the last column."""
    row = cursor.y
    if modes.DECOM in canvas.mode and canvas.margins is not None:
        row -= canvas.margins.top
    yield _at(row, min(cursor.x, canvas.columns - 1))
    if cursor.x >= canvas.columns and modes.IRM not in canvas.mode:
        last = buffer[cursor.y][canvas.columns - 1] if cursor.y in buffer else _PLAIN
        yield f"{_style(last)}{last.data or ' '}"
    yield _style(cursor.attrs)


def _at(row: int, column: int) -> str:
    return f"\x1b[{row + 1};{column + 1}H"


@lru_cache(maxsize=512)
def _style(cell: Char) -> str:
    codes = ["0", *(str(code) for name, code in _FLAGS if getattr(cell, name))]
    codes += _colour(cell.fg, _FOREGROUND, 38) + _colour(cell.bg, _BACKGROUND, 48)
    return f"\x1b[{';'.join(codes)}m"


def _colour(name: str, known: dict[str, int], kind: int) -> list[str]:
    if name == "default":
        return []
    if name in known:
        return [str(known[name])]
    return [str(kind), "2", *(str(int(name[at : at + 2], 16)) for at in (0, 2, 4))]
