"""What a terminal shows, for those who watch and for the log: its screen, when that is told, and the recording. Pure."""

from typing import Final

from trunkline_adapters.pty.cast import Cast
from trunkline_adapters.pty.screen import Screen
from trunkline_agentkit.protocol import Fact, Out, Progress
from trunkline_wire.turn import TerminalOpened, TerminalScreen

SHOW_EVERY_S: Final = 0.1
"""Seconds between two screens that are streamed."""
MUCH: Final = 16 * 1024
"""Characters that make a flood: most of what is printed then is gone before anybody could read it."""
FLOODED_S: Final = 0.25
"""Seconds between two looks, and two screens, in a flood."""
RECORDING_LIMIT: Final = 1024 * 1024
"""Characters of the recording after which it is told in mid-turn."""
_LAST_LINES: Final = 40


def paced(usual: float, printed: int) -> float:
    """Seconds to wait, given what was printed meanwhile."""
    return FLOODED_S if printed > MUCH else usual


class View:
    """`records`: whether what is printed and typed is kept."""

    def __init__(self, *, records: bool) -> None:
        self.screen = Screen(80, 24)
        self._records = records
        self._cast = Cast()
        self._shown_at = -SHOW_EVERY_S
        self._shown: tuple[str, tuple[int, int]] | None = None
        self._fresh = 0
        """Characters that were printed since a screen was streamed."""

    @property
    def due(self) -> float | None:
        """When the screen is to be streamed."""
        return self._shown_at + paced(SHOW_EVERY_S, self._fresh) if self._fresh else None

    @property
    def recorded(self) -> int:
        """Characters of the recording so far."""
        return self._cast.size

    @property
    def last_words(self) -> str:
        """The end of what the terminal shows."""
        return "\n".join(self.screen.text.splitlines()[-_LAST_LINES:])

    def open(self, columns: int, rows: int) -> Out:
        self.screen = Screen(columns, rows)
        return Fact(data=TerminalOpened(columns=columns, rows=rows))

    def printed(self, at: float, data: str) -> None:
        self._record(at, "o", data)
        self.screen.feed(data)
        self._fresh += max(1, len(data))

    def typed(self, at: float, data: str) -> None:
        self._record(at, "i", data)

    def resize(self, at: float, columns: int, rows: int) -> Out:
        self._record(at, "r", f"{columns}x{rows}")
        self.screen.resize(columns, rows)
        return Fact(data=TerminalOpened(columns=columns, rows=rows, title=self.screen.title or None))

    def show(self, at: float) -> list[Out]:
        """The screen as it is, for those who watch, if it is time for that."""
        if not self._fresh or at < self._shown_at + paced(SHOW_EVERY_S, self._fresh):
            return []
        self._fresh, self._shown_at = 0, at
        now = (self.screen.text, self.screen.cursor)
        if now == self._shown:
            return []
        self._shown = now
        return [Progress(data=self._picture())]

    def snapshot(self) -> Out:
        """The screen as a fact, with all that was recorded since the one before."""
        return Fact(data=self._picture(self._cast.take(self.screen.columns, self.screen.rows)))

    def _picture(self, recording: str | None = None) -> TerminalScreen:
        screen = self.screen
        return TerminalScreen(
            text=screen.text,
            columns=screen.columns,
            rows=screen.rows,
            cursor=screen.cursor,
            attributes=screen.attributes() or None,
            recording=recording,
        )

    def _record(self, at: float, code: str, data: str) -> None:
        if self._records:
            self._cast.add(at, code, data)
