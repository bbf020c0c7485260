"""A screen's cells: pyte's, with an alternate screen, and with the lines that scroll away. Pure.

Plain text is drawn a piece at a time, as that is most of what programs print: pyte takes each character by itself.
"""

import unicodedata
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import pyte
import wcwidth
from pyte import charsets, modes
from pyte.screens import Char, Cursor, StaticDefaultDict

SCROLLED: Final = 20_000
"""Lines above the screen that are kept."""
_ALTERNATE: Final = frozenset({47, 1047, 1049})
_COLUMNS_132: Final = frozenset({3, 3 << 5})
_MARKS: Final = 16
"""Characters of one cell: a letter and what is put onto it."""
_SAVED: Final = 16

Buffer = dict[int, StaticDefaultDict[int, Char]]


class Canvas(pyte.Screen):
    """pyte's screen with an alternate one, and with the lines that scroll away."""

    def __init__(self, columns: int, rows: int) -> None:
        self.answers: list[str] = []
        self.scrolled: deque[str] = deque(maxlen=SCROLLED)
        self.gone = 0
        self._kept: tuple[dict[int, StaticDefaultDict[int, Char]], Cursor] | None = None
        super().__init__(columns, rows)

    def text_of(self, row: int) -> str:
        line = self.buffer[row]
        cells = [line[column].data for column in range(self.columns)]
        if "" in cells:
            # The second half of a wide character stands for nothing, but where its first one was written over.
            halves = zip(["", *cells], cells, strict=False)
            cells = [cell or ("" if before and wcwidth.wcwidth(before[0]) == 2 else " ") for before, cell in halves]
        return "".join(cells).rstrip()

    def write_process_input(self, data: str) -> None:
        self.answers.append(data)

    def draw(self, data: str) -> None:
        """Pyte stops at what takes no room and is no mark on a letter, and puts any number of marks onto one."""
        if not (data.isascii() and data.isprintable()):
            super().draw("".join(self._drawable(data)))
        elif self.plain:
            self._draw_plain(data)
        else:
            super().draw(data)

    @property
    def plain(self) -> bool:
        """Whether letters stand for themselves and write over what is there."""
        return modes.IRM not in self.mode and self.charset == 0 and self.g0_charset is charsets.LAT1_MAP

    def _draw_plain(self, data: str) -> None:
        """Printable ASCII, as `plain` says."""
        cursor, columns = self.cursor, self.columns
        cells = _cells(cursor.attrs)
        at = 0
        while at < len(data):
            if cursor.x == columns:
                if modes.DECAWM in self.mode:
                    self.dirty.add(cursor.y)
                    self.carriage_return()
                    self.linefeed()
                else:
                    cursor.x -= 1
            piece = data[at : at + columns - cursor.x]
            end = cursor.x + len(piece)
            self.buffer[cursor.y].update(zip(range(cursor.x, end), [cells[one] for one in piece], strict=True))
            cursor.x = end
            at += len(piece)
        self.dirty.add(cursor.y)

    @property
    def rolls(self) -> bool:
        """Whether lines that are printed now push up all that is there: the cursor stands at the start of an empty last line."""
        at_end = self.cursor.y == self.lines - 1 and self.cursor.x == 0 and not self.buffer.get(self.lines - 1)
        usual = modes.DECAWM in self.mode and modes.DECSCNM not in self.mode and modes.DECOM not in self.mode
        return at_end and usual and self.plain and self.margins is None

    def roll(self, texts: Iterable[str]) -> None:
        """All that is on the screen scrolls away, and these lines after it; the cursor stands at the top of an empty screen."""
        if self._kept is None:
            here = [self.text_of(row) for row in range(self.lines - 1)]
            before = len(here)
            self.scrolled.extend(here)
            for text in texts:
                self.scrolled.append(text)
                before += 1
            self.gone += before
        self.buffer.clear()
        self.cursor.y = self.cursor.x = 0
        self.dirty.update(range(self.lines))

    @property
    def behind(self) -> tuple[Buffer, Cursor] | None:
        """The main screen and its cursor, while the alternate one shows."""
        return self._kept

    def _drawable(self, data: str) -> Iterator[str]:
        column = max(0, self.cursor.x - 1)
        marks = len(self.buffer[self.cursor.y][column].data)
        for character in data:
            if wcwidth.wcwidth(character) > 0:
                marks = 1
                yield character
            elif unicodedata.combining(character) and marks < _MARKS:
                marks += 1
                yield character

    def save_cursor(self) -> None:
        super().save_cursor()
        del self.savepoints[:-_SAVED]

    def index(self) -> None:
        top, bottom = self.margins or (0, self.lines - 1)
        if self.cursor.y == bottom and top == 0 and self._kept is None:
            self.scrolled.append(self.text_of(0))
            self.gone += 1
        super().index()

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Fewer rows: the empty ones below the cursor go first, then lines scroll away (pyte drops the first ones)."""
        fewer = lines if lines is not None and lines < self.lines else None
        if fewer is not None:
            if self._kept is None:
                away = max(0, self.cursor.y + 1 - fewer)
                self.scrolled.extend(self.text_of(row) for row in range(away))
                self.gone += away
            else:
                _shorten(*self._kept, fewer)
            _shorten(self.buffer, self.cursor, fewer)
            self.lines, self.margins = fewer, None
            self.dirty.update(range(fewer))
        super().resize(lines, columns)
        self.ensure_hbounds()

    def erase_in_display(self, how: int = 0, *args: Any, **kwargs: Any) -> None:
        """Pyte leaves cells in which nothing ever stood without the ground's colour."""
        super().erase_in_display(how, *args, **kwargs)
        row = self.cursor.y
        for erased in {0: range(row + 1, self.lines), 1: range(row)}.get(how, range(self.lines)):
            self.buffer.pop(erased, None)
            if self.cursor.attrs.bg != "default":
                ground = self.default_char._replace(bg=self.cursor.attrs.bg)
                self.buffer[erased].update(dict.fromkeys(range(self.columns), ground))

    def set_mode(self, *modes: int, **kwargs: Any) -> None:
        if kwargs.get("private") and not _ALTERNATE.isdisjoint(modes) and self._kept is None:
            self._kept = (self.buffer, self.cursor)
            self.buffer = defaultdict(lambda: StaticDefaultDict[int, Char](self.default_char))
            self.cursor = Cursor(self.cursor.x, self.cursor.y, self.cursor.attrs)
            self.dirty.update(range(self.lines))
        super().set_mode(*(mode for mode in modes if mode not in _COLUMNS_132), **kwargs)

    def reset_mode(self, *modes: int, **kwargs: Any) -> None:
        if kwargs.get("private") and not _ALTERNATE.isdisjoint(modes) and self._kept is not None:
            self.buffer, self.cursor = self._kept
            self._kept = None
            self.ensure_hbounds()
            self.ensure_vbounds()
            self.dirty.update(range(self.lines))
        super().reset_mode(*(mode for mode in modes if mode not in _COLUMNS_132), **kwargs)

    def reset(self) -> None:
        self._kept = None
        super().reset()


def _shorten(buffer: Buffer, cursor: Cursor, lines: int) -> None:
    """The cursor's line stays; what is above moves up, what is below goes where there is no room."""
    away = max(0, cursor.y + 1 - lines)
    kept = {row - away: line for row, line in buffer.items() if away <= row < away + lines}
    buffer.clear()
    buffer.update(kept)
    cursor.y -= away


class _Cells(dict[str, Char]):
    """Cells that look alike, by what stands in them."""

    def __init__(self, look: Char) -> None:
        super().__init__()
        self._look = look

    def __missing__(self, data: str) -> Char:
        cell = self[data] = self._look._replace(data=data)
        return cell


@lru_cache(maxsize=512)
def _cells(look: Char) -> _Cells:
    return _Cells(look)
