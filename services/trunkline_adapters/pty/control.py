"""tmux's control mode: its lines as messages of a terminal, and keys as its commands. Pure.

https://github.com/tmux/tmux/wiki/Control-Mode (3.2 and later)
"""

import codecs
import re
from collections import deque
from typing import Final, Literal

from trunkline_agentkit.fields import Obj

PLACE: Final = "#{pane_id} #{pane_width} #{pane_height} #{cursor_x} #{cursor_y} #{pane_current_command} #{pane_title}"
"""What is asked for before the screen: where it is, how large, where its cursor stands, what runs there, its title."""

Asked = Literal["place", "screen", "nothing"]

_OCTAL: Final = re.compile(rb"\\([0-7]{3})")
_RUN: Final = re.compile(r"[^\x00-\x1f\x7f]+|[\x00-\x1f\x7f]")
_KEYS_AT_A_TIME: Final = 500


class Control:
    """Reads what a client in control mode prints. `asked` notes what each of our commands asks for, in order."""

    def __init__(self) -> None:
        self._asked: deque[Asked] = deque()
        self._block: tuple[str, bool, list[str]] | None = None
        """The reply that is being read: what ends it, whether it is to one of our commands, its lines."""
        self._place: list[str] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.stale = False
        """We have come, or the window has changed: its place and screen have to be asked for."""

    @property
    def pane(self) -> str:
        return self._place[0] if self._place else ""

    def asked(self, what: Asked) -> None:
        self._asked.append(what)

    def feed(self, line: bytes, at: float) -> list[Obj] | None:
        """The messages in a line; None for one that is of no known kind."""
        if self._block is not None:
            return self._in_block(line.decode(errors="replace"), at)
        kind, _, rest = line.partition(b" ")
        match kind:
            case b"%begin":
                number = rest.decode(errors="replace")
                self._block = (number, number.endswith(" 1"), [])
            case b"%output":
                pane, _, data = rest.partition(b" ")
                if pane.decode(errors="replace") == self.pane:
                    raw = _OCTAL.sub(lambda found: bytes([int(found[1], 8) & 0xFF]), data)
                    return [{"type": "output", "at": at, "data": self._decoder.decode(raw)}]
            case b"%exit":
                return [{"type": "exit", "at": at, "code": None, "reason": rest.decode(errors="replace") or None}]
            case b"%layout-change" | b"%session-changed":
                # The latter tells that we are attached: before it a screen may be given, and what follows is not.
                self.stale = True
            case _ if not kind.startswith(b"%"):
                return None
            case _:
                pass  # of windows and sessions beside ours
        return []

    def _in_block(self, line: str, at: float) -> list[Obj]:
        assert self._block is not None
        number, ours, lines = self._block
        if line not in {f"%end {number}", f"%error {number}"}:
            lines.append(line)
            return []
        self._block = None
        asked = self._asked.popleft() if ours and self._asked else "nothing"
        if line.startswith("%error"):
            return []
        if asked == "place" and lines:
            self._place = lines[0].split(" ")
        if asked == "screen" and len(self._place) >= 6:
            return self._screen(lines, at)
        return []

    def _screen(self, lines: list[str], at: float) -> list[Obj]:
        _, columns, rows, x, y, program, *title = self._place
        self._decoder.reset()
        drawn = (
            f"\x1b]2;{' '.join(title)}\x07\x1b[H\x1b[2J"
            + "\r\n".join(lines)
            + f"\x1b[0m\x1b[{int(y) + 1};{int(x) + 1}H"
        )
        opened = {"type": "opened", "at": at, "columns": int(columns), "rows": int(rows), "command": [program]}
        return [opened, {"type": "output", "at": at, "data": drawn}]


def keys(pane: str, data: str) -> list[str]:
    """The commands that type `data`: text as it is, control characters by their numbers."""
    commands: list[str] = []
    for run in _RUN.findall(data):
        if run < " " or run == "\x7f":
            commands.append(f"send-keys -t {pane} -H {ord(run):x}")
        else:
            pieces = (run[at : at + _KEYS_AT_A_TIME] for at in range(0, len(run), _KEYS_AT_A_TIME))
            commands += [f"send-keys -t {pane} -l -- {_quoted(piece)}" for piece in pieces]
    return commands


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"
