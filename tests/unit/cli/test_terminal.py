"""What is typed at a session's terminal, and its painting as text."""

import pytest

from trunkline_adapters.pty.screen import Screen
from trunkline_cli.commands.terminal import plain
from trunkline_cli.terminal import Keys


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ([b"ls\r"], [b"ls\r"]),
        ([b"\x03\x1b[A"], [b"\x03\x1b[A"]),
        ([b"ab\x1ddc"], [b"ab", "leave", b"c"]),
        ([b"\x1d", b"t"], ["take"]),
        ([b"\x1d\x1dx"], [b"\x1dx"]),
        ([b"\x1dq"], ["help"]),
        ([b"\x1dr\x1ds"], ["release", "start"]),
    ],
)
def test_keys_and_acts(typed: list[bytes], found: list[bytes | str]) -> None:
    keys = Keys()
    assert [one for data in typed for one in keys.feed(data)] == found


def test_a_painting_as_text_has_its_lines_and_what_is_above_them() -> None:
    screen = Screen(20, 4)
    screen.feed("".join(f"line {n}\r\n" for n in range(6)) + "\x1b[31mred\x1b[0m here\x1b[2;5H")
    assert plain(screen.paint()) == "line 3\nline 4\nline 5\nred here"
    assert plain(screen.paint(2)) == "line 1\nline 2\nline 3\nline 4\nline 5\nred here"
    screen.feed("\x1b[?1049h\x1b[3;1Hother")
    assert plain(screen.paint()) == "\n\nother"
