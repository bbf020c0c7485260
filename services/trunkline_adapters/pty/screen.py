"""The screen of a terminal: text in, what stands where out. Pure, and nothing that a program prints can make it raise.

pyte draws (`canvas`); around it stands what it lacks: sequences that it takes for others or for text, answers to what programs ask
their terminal.
"""

import contextlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, cast

import pyte
from pyte.screens import Char

from trunkline_adapters.pty.canvas import Canvas
from trunkline_adapters.pty.paint import paint
from trunkline_adapters.pty.rolling import roll

_HELD: Final = 64 * 1024
"""Characters of a control string without an end that are kept; what is longer is dropped."""
_PASTE: Final = 2004 << 5
_MOST: Final = 2 * 1024 * 1024
"""Characters that wait at most."""

_C1: Final = dict.fromkeys(range(0x80, 0xA0))
_TAKEN_OUT: Final = re.compile(
    r"\x1b\[[<=>][0-?]*[ -/]*[@-~]"  # of a private kind, which pyte takes for the common one
    r"|\x1b\[[0-?]*[!-/]+[@-~]"  # with intermediates, whose end it would draw
    r"|\x1b\[(?P<sgr>[0-9;]*:[0-9;:]*)m"  # with sub-parameters, likewise
    r"|\x1b[PX^_][^\x1b\x07]*(?:\x1b\\|\x07)"  # strings to the device, which it would draw
    r"|\x1b\](?P<osc>[^\x1b\x07]*)(?:\x1b\\|\x07)"
    r"|\x1b[PX^_\]][^\x1b\x07]*(?=\x1b|\Z)"  # a string that breaks off
    r"|\x1b\[(?![0-?]{0,256}[@-~])"  # no sequence at all: pyte fails on it
    r"|\x1b(?=\x1b)"
)
_UNFINISHED: Final = re.compile(r"\x1b+(?:\[[0-?]*[ -/]*|[PX^_\]][^\x1b\x07]*\x1b?)?\Z")
_QUESTION: Final = re.compile(r"\x1b(?:\[[0-?]*[cn]|\][0-9;]*\?|Z|[\[\]0-9;?>=]*\Z)")
"""What a program may wait to be answered, or the beginning of it."""
_SUB: Final = re.compile(r"(?<=\d):[0-9:]*")
_TRUE_COLOUR: Final = re.compile(r"\b([34]8):2:[0-9]*:(\d+):(\d+):(\d+)")
_PALETTE: Final = re.compile(r"\b([34]8):5:(\d+)")
_COLOURS: Final = {"10": "rgb:d8d8/d8d8/d8d8", "11": "rgb:0000/0000/0000"}
"""What a program hears that asks for the colours of text and ground."""

_FLAGS: Final = ("bold", "italics", "underscore", "strikethrough", "reverse", "blink")


class Screen:
    """`feed` text; `text` is what stands on it. `answers` are what the program waits to read, until they are taken.

    Text is drawn only once somebody looks: of what a flood prints most has rolled by until then.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self._own = Canvas(columns, rows)
        self._stream = pyte.Stream(cast("pyte.Screen", _Guarded(self._own)))
        self._waiting: list[str] = []
        self._waits = 0
        self._held = ""
        self._answers: list[str] = []
        self._lines: list[str] = [""] * rows
        self._title = ""

    @property
    def _canvas(self) -> Canvas:
        """With all that was fed."""
        if self._waiting:
            text = "".join(self._waiting)
            self._waiting.clear()
            self._waits = 0
            self._draw(text)
        return self._own

    @property
    def title(self) -> str:
        self._canvas  # noqa: B018  # what waits may set it
        return self._title

    @property
    def columns(self) -> int:
        return self._own.columns

    @property
    def rows(self) -> int:
        return self._own.lines

    @property
    def cursor(self) -> tuple[int, int]:
        """Column and row, from 0."""
        canvas = self._canvas
        return min(canvas.cursor.x, self.columns - 1), canvas.cursor.y

    @property
    def pastes(self) -> bool:
        """Whether the program wants to know what was pasted (bracketed paste)."""
        return _PASTE in self._canvas.mode

    @property
    def top(self) -> int:
        """The number of lines that have scrolled away: the number of the screen's first line."""
        return self._canvas.gone

    @property
    def here(self) -> int:
        """The number of the cursor's line."""
        return self.top + self.cursor[1]

    def feed(self, text: str) -> None:
        """Takes what the program has printed; a sequence that is not whole waits for the rest."""
        self._waiting.append(text)
        self._waits += len(text)
        if self._waits > _MOST or self._held or _QUESTION.search(text) is not None:
            self._canvas  # noqa: B018  # draws

    def _draw(self, text: str) -> None:
        text = self._held + text.translate(_C1)
        self._held = ""
        if (cut := _UNFINISHED.search(text)) is not None:
            self._held = cut[0] if len(cut[0]) <= _HELD else ""
            text = text[: cut.start()]
        # Whatever a program prints, the session goes on.
        with contextlib.suppress(Exception):
            roll(self._own, self._stream.feed, _TAKEN_OUT.sub(self._replace, text))
        self._answers += self._own.answers
        self._own.answers.clear()

    def resize(self, columns: int, rows: int) -> None:
        self._canvas.resize(rows, columns)
        self._lines = [""] * rows
        self._canvas.dirty.update(range(rows))

    def take_answers(self) -> str:
        """What the program is to read, once."""
        answers, self._answers = "".join(self._answers), []
        return answers

    @property
    def lines(self) -> list[str]:
        """The screen's lines, without blanks at their ends."""
        for row in self._canvas.dirty:
            if row < len(self._lines):
                self._lines[row] = self._canvas.text_of(row)
        self._canvas.dirty.clear()
        return self._lines

    @property
    def text(self) -> str:
        """The lines joined, without empty ones at the end."""
        return "\n".join(self.lines).rstrip("\n")

    def since(self, line: int) -> list[str]:
        """The lines from number `line` on, as far as they are kept."""
        canvas = self._canvas
        first = canvas.gone - len(canvas.scrolled)
        above = list(canvas.scrolled)[max(0, line - first) :] if line < canvas.gone else []
        return above + self.lines[max(0, line - canvas.gone) :]

    def attributes(self) -> list[list[Any]]:
        """How the text looks where it does not look plain: `[row, column, length, {fg, bg, bold, …}]`, colours as pyte names them."""
        runs: list[list[Any]] = []
        for row in range(self.rows):
            cells = self._canvas.buffer.get(row)
            if not cells:
                continue
            for column in sorted(cells):
                if column < self.columns and (style := _style(cells[column][1:])):
                    last = runs[-1] if runs else None
                    if last and last[0] == row and last[1] + last[2] == column and last[3] == style:
                        last[2] += 1
                    else:
                        runs.append([row, column, 1, style])
        return runs

    def paint(self, history: int = 0, above: list[str] | None = None) -> str:
        """What a terminal of this size has to print to look like this one: first `above`, else `history` of the lines that have
        scrolled away.
        """
        canvas = self._canvas
        if above is None:
            above = list(canvas.scrolled)[-history:] if history > 0 else []
        return paint(canvas, self._title, above)

    def _replace(self, found: re.Match[str]) -> str:
        if (sgr := found["sgr"]) is not None:
            sgr = _PALETTE.sub(r"\1;5;\2", _TRUE_COLOUR.sub(r"\1;2;\2;\3;\4", sgr))
            return f"\x1b[{_SUB.sub('', sgr)}m"
        if (osc := found["osc"]) is not None:
            code, _, rest = osc.partition(";")
            if rest == "?" and code in _COLOURS:
                self._answers.append(f"\x1b]{code};{_COLOURS[code]}\x1b\\")
            elif code in {"0", "2"}:
                self._title = rest[:200]
        return ""


@lru_cache(maxsize=1024)
def _style(look: tuple[str | bool, ...]) -> dict[str, Any]:
    """Of a cell without what stands in it."""
    cell = Char("", *look)  # pyright: ignore[reportArgumentType]  # its own fields
    style: dict[str, Any] = {name: True for name in _FLAGS if getattr(cell, name)}
    if cell.fg != "default":
        style["fg"] = cell.fg
    if cell.bg != "default":
        style["bg"] = cell.bg
    return style


class _Guarded:
    """What pyte's parser calls. A sequence with parameters that its handler does not take does nothing."""

    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas

    def __getattr__(self, name: str) -> Callable[..., None]:
        handler = getattr(self._canvas, name)

        def call(*args: Any, **kwargs: Any) -> None:
            with contextlib.suppress(Exception):
                handler(*args, **kwargs)

        return call
