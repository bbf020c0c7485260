"""A screen as what a terminal prints to look like it: whoever prints it goes on as if it had seen all before."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trunkline_adapters.pty.screen import Screen

COLUMNS, ROWS = 14, 5
WORDS = st.lists(st.sampled_from([*"ab Z~é│日本\r\n\t", "e\u0301"]), max_size=20).map("".join)
SEQUENCES = st.sampled_from(
    [
        "\x1b[31;1m",
        "\x1b[44m",
        "\x1b[0m",
        "\x1b[38;2;1;2;3m",
        "\x1b[7m",
        "\x1b[95;105m",
        "\x1b[K",
        "\x1b[2J",
        "\x1b[H",
        "\x1b[3;4H",
        "\x1b[5;14H",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[2;4r",
        "\x1b[r",
        "\x1b[?2004h",
        "\x1b[?25l",
        "\x1b[?1h",
        "\x1b[?7l",
        "\x1b[4h",
        "\x1b[4l",
        "\x1b(0",
        "\x1b(B",
        "\x1b7",
        "\x1b8",
        "\x1b[?6h",
        "\x1bM",
        "\x1b[2P",
        "\x1b[2@",
        "\x1b]2;title\x07",
    ]
)
PRINTED = st.lists(st.one_of(WORDS, SEQUENCES), max_size=25).map("".join)


def seen(screen: Screen) -> tuple[Any, ...]:
    return screen.text, screen.attributes(), screen.cursor, screen.pastes, screen.title


def repainted(screen: Screen, history: int = 0) -> Screen:
    other = Screen(screen.columns, screen.rows)
    other.feed("whatever stood there before\x1b[?1049h\x1b[31;2004h\x1b[2;3r")
    other.feed(screen.paint(history))
    return other


@given(PRINTED, PRINTED)
@example("12345678901234", "x")
@example("main\x1b[31m\x1b[?1049halternate", "\x1b[?1049lagain")
@example("\x1b[3;1Hone\x1b7two", "\x1b8three")
def test_what_is_printed_next_looks_the_same_on_both(before: str, after: str) -> None:
    screen = Screen(COLUMNS, ROWS)
    screen.feed(before)
    other = repainted(screen)
    assert seen(other) == seen(screen)
    for one in (screen, other):
        one.feed("\x1b[0m" + after)
    assert seen(other) == seen(screen)


def test_what_has_scrolled_away_stands_above_the_screen() -> None:
    screen = Screen(20, 3)
    screen.feed("".join(f"line {n}\r\n" for n in range(10)) + "now")
    other = Screen(20, 3)
    other.feed(screen.paint(5))
    assert other.text == "line 8\nline 9\nnow"
    assert other.since(0)[:5] == [f"line {n}" for n in range(3, 8)]


@pytest.mark.parametrize(
    ("printed", "painted"),
    [
        ("a\x1b[1;31mb", "\x1b[1H\x1b[0ma\x1b[0;1;31mb\x1b[0m"),
        ("\x1b[48;5;196m ", "\x1b[1H\x1b[0;48;2;255;0;0m \x1b[0m"),
        ("\x1b[?2004h", "\x1b[?2004h"),
        ("\x1b[?25l", "\x1b[?25l"),
    ],
)
def test_how_it_is_painted(printed: str, painted: str) -> None:
    screen = Screen(20, 3)
    screen.feed(printed)
    assert painted in screen.paint()
