"""The screen: what terminals do that its library does not, and that nothing makes it raise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_adapters.pty.canvas import SCROLLED
from trunkline_adapters.pty.screen import Screen


def shown(*pieces: str, columns: int = 20, rows: int = 4) -> Screen:
    screen = Screen(columns, rows)
    for piece in pieces:
        screen.feed(piece)
    return screen


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (("one\r\ntwo",), "one\ntwo"),
        (("12345", "\r\x1b[2Kab"), "ab"),
        (("\x1b[>4;2mplain",), "plain"),  # XTMODKEYS is no colour
        (("\x1b[4:3mcurly\x1b[0m",), "curly"),
        (("\x1b[38:2::1:2:3mcolour",), "colour"),
        (("\x1b[!pafter",), "after"),
        (("\x1bPq#0;2;0;0;0\x1b\\after",), "after"),
        (("\x1b_Gi=1;AAAA\x1b\\after",), "after"),
        (("\x1b]8;;http://x\x07link\x1b]8;;\x07",), "link"),
        (("\x1b]0;tit", "le\x07text"), "text"),
        (("\x1b[3", "1mred"), "red"),
        (("\x1b[\xb2mnone",), "²mnone"),
        (("\x1b]0;cut\x1b[1moff",), "off"),
        (("\x1b[?5Aup",), "up"),  # a private kind of what has none
        (("\x9dnever ends",), "never ends"),
        (("a❤\ufe0fb",), "a❤b"),
        (("e\u0301te",), "éte"),
        (("日本",), "日本"),
        (("\x1b[?3hwide",), "wide"),
        (("main\x1b[?1049halternate\x1b[?1049l",), "main"),
        (("main\x1b[?1049h\x1b[Halternate",), "alternate"),
    ],
)
def test_what_a_program_prints_is_what_stands_there(pieces: tuple[str, ...], text: str) -> None:
    screen = shown(*pieces)
    assert screen.text == text
    assert (screen.columns, screen.rows) == (20, 4)


def test_a_number_of_any_length_does_no_harm() -> None:
    assert shown("\x1b[" + "9" * 5000 + "mlong").text.replace("\n", "").endswith("9mlong")


def test_a_wide_character_takes_two_columns() -> None:
    assert shown("日x").cursor == (3, 0)


def test_lines_that_scroll_away_are_kept_up_to_a_limit() -> None:
    screen = shown("".join(f"{n}\r\n" for n in range(10)))
    assert screen.top == 7
    assert screen.since(5) == ["5", "6", "7", "8", "9", ""]
    screen = shown("x\r\n" * (SCROLLED + 100))
    assert len(screen.since(0)) == SCROLLED + 4


def test_the_alternate_screen_keeps_nothing() -> None:
    screen = shown("one\r\n\x1b[?1049h" + "x\r\n" * 10 + "\x1b[?1049l")
    assert (screen.top, screen.since(0)[:1]) == (0, ["one"])


def test_questions_to_the_terminal_are_answered_once() -> None:
    screen = shown("ab\x1b[6n\x1b[c\x1b]11;?\x07\x1b]10;?\x1b\\")
    answers = screen.take_answers()
    assert "\x1b[1;3R" in answers
    assert "\x1b[?6c" in answers
    assert "\x1b]11;rgb:0000/0000/0000\x1b\\" in answers
    assert "\x1b]10;rgb:" in answers
    assert screen.take_answers() == ""


def test_it_tells_how_text_looks() -> None:
    assert shown("a\x1b[1;31mbc\x1b[0md").attributes() == [[0, 1, 2, {"bold": True, "fg": "red"}]]


def test_it_knows_of_bracketed_paste_and_the_title() -> None:
    screen = shown("\x1b[?2004h\x1b]2;a title\x07")
    assert (screen.pastes, screen.title) == (True, "a title")
    screen.feed("\x1b[?2004l")
    assert not screen.pastes


def test_a_smaller_size_cuts_from_the_top() -> None:
    screen = shown("one\r\ntwo\r\nthree\r\nfour")
    screen.resize(10, 2)
    assert (screen.text, screen.columns, screen.rows) == ("three\nfour", 10, 2)


def test_a_smaller_size_takes_the_empty_rows_first() -> None:
    screen = shown("one\r\ntwo\r\n", rows=6)
    screen.resize(20, 3)
    assert (screen.text, screen.cursor, screen.top) == ("one\ntwo", (0, 2), 0)
    screen.resize(20, 2)
    assert (screen.text, screen.cursor, screen.since(0)) == ("two", (0, 1), ["one", "two", ""])


def test_a_smaller_size_keeps_the_line_of_the_cursor_behind_the_alternate_screen() -> None:
    screen = shown("one\r\ntwo\r\nthree\x1b[?1049hother", rows=4)
    screen.resize(20, 2)
    screen.feed("\x1b[?1049l!")
    assert screen.text == "two\nthree!"


SEQUENCES = st.sampled_from(
    [
        "\x1b[",
        "\x1b]",
        "\x1bP",
        "\x1b\\",
        "\x07",
        "\x9b",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[2J",
        "\x1b7",
        "\x1b8",
        "\x1bM",
        "\x1b[6n",
        "\x1b[99999A",
        "\x1b[;;;;m",
        "\x1b",
        "\x1b[5;2r",
        "\x1b[?3h",
        "\x1b[96h",
        "\x1b#8",
        "\x1b(0",
        "\x0e",
        "\x00",
        "\x7f",
        "日",
        "é",
        "́́",
        "\u200d",
        "\r",
        "\n",
        "\t",
    ]
)


@given(st.lists(st.one_of(SEQUENCES, st.text(max_size=20)), max_size=60), st.integers(1, 40), st.integers(1, 10))
def test_nothing_makes_it_raise_or_change_its_size(pieces: list[str], columns: int, rows: int) -> None:
    screen = shown(*pieces, columns=columns, rows=rows)
    assert (screen.columns, screen.rows) == (columns, rows)
    assert len(screen.lines) == rows
    assert 0 <= screen.cursor[0] < columns
    assert 0 <= screen.cursor[1] < rows
    screen.attributes()
    screen.feed("\x1bc\x1b\\\x1bcdone")
    assert columns < 4 or "done" in screen.text


@given(st.binary(max_size=400))
def test_binary_garbage_does_no_harm(garbage: bytes) -> None:
    screen = shown(garbage.decode(errors="replace"))
    assert len(screen.text) <= 20 * 4 * 16 + 4


@given(st.lists(st.one_of(SEQUENCES, st.text(max_size=8)), max_size=20), st.data())
def test_it_matters_not_how_the_output_is_cut(pieces: list[str], data: st.DataObject) -> None:
    whole = "".join(pieces)
    at = data.draw(st.integers(0, len(whole)))
    assert shown(whole).text == shown(whole[:at], whole[at:]).text
