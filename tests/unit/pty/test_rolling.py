"""Text that rolls by: what is left out and what is drawn quicker leaves the same screen as drawing every character."""

from typing import Any

import pyte
from hypothesis import example, given
from hypothesis import strategies as st

from trunkline_adapters.pty.screen import Screen

COLUMNS, ROWS = 12, 4

PLAIN = st.text(st.sampled_from("ab Z~é│"), max_size=30)
COLOURS = st.sampled_from(["\x1b[31m", "\x1b[0m", "\x1b[1;44m", "\x1b[m", "\x1b[38;5;200m"])
LINES = st.lists(st.lists(st.one_of(PLAIN, COLOURS), max_size=3).map("".join), max_size=60).map("\r\n".join)
SEQUENCES = st.sampled_from(
    [
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[2;3r",
        "\x1b[r",
        "\x1b[?7l",
        "\x1b[?7h",
        "\x1b[4h",
        "\x1b[4l",
        "\x1b(0",
        "\x1b(B",
        "\x1b[H",
        "\x1b[2J",
        "\x1b[3A",
        "\x1b[2L",
        "\x1bM",
        "日本",
        "\t",
        "\x1b7",
        "\x1b8",
        "\n",
        "\r\n",
    ]
)


def seen(screen: Screen) -> tuple[Any, ...]:
    return screen.text, screen.attributes(), screen.cursor, screen.top, screen.since(0), screen.pastes


@given(st.lists(st.one_of(LINES, SEQUENCES), max_size=8).map("".join))
@example("\x1b[31m" + "".join(f"{n}\r\n" for n in range(100)) + "end")
@example("".join("x" * 25 + "\r\n" for _ in range(100)))
def test_what_rolls_by_at_once_is_as_if_it_had_been_drawn(text: str) -> None:
    at_once, bit_by_bit = Screen(COLUMNS, ROWS), Screen(COLUMNS, ROWS)
    at_once.feed(text)
    for line in text.splitlines(keepends=True):
        bit_by_bit.feed(line)
    assert seen(at_once) == seen(bit_by_bit)


def test_a_flood_is_kept_as_lines_that_have_scrolled_away() -> None:
    screen = Screen(20, 4)
    screen.feed("before\r\n" + "".join(f"\x1b[3{n % 8}mline {n}\x1b[0m\r\n" for n in range(1000)))
    assert screen.text == "line 997\nline 998\nline 999"
    assert screen.top == 998
    assert screen.since(0)[:3] == ["before", "line 0", "line 1"]
    assert screen.attributes()[0] == [0, 0, 8, {"fg": "magenta"}]


@given(
    st.lists(
        st.one_of(
            st.text(st.sampled_from("abc ~"), max_size=40),
            st.sampled_from(["\x1b[?7l", "\x1b[?7h", "\r", "\n", "\x1b[5G"]),
        )
    )
)
def test_plain_text_is_drawn_as_pyte_draws_it(pieces: list[str]) -> None:
    ours, theirs = Screen(COLUMNS, ROWS), pyte.Screen(COLUMNS, ROWS)
    stream = pyte.Stream(theirs)
    for piece in pieces:
        ours.feed(piece)
        stream.feed(piece)
    assert ours.text == "\n".join(line.rstrip() for line in theirs.display).rstrip("\n")
    assert ours.cursor == (min(theirs.cursor.x, COLUMNS - 1), theirs.cursor.y)


def test_much_text_that_asks_its_terminal_is_answered_at_once() -> None:
    screen = Screen(20, 4)
    screen.feed("x" * 20_000 + "\r\n\x1b[6")
    screen.feed("n" + "y" * 20_000)
    assert screen.take_answers() == "\x1b[4;1R"
