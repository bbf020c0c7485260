"""Which lines of a screen are the answer."""

from trunkline_adapters.pty.answer import answer
from trunkline_adapters.pty.profiles import PROFILES

NOISE = PROFILES.shipped["codex"].noise


def test_a_title_that_repeats_the_prompt_is_no_echo() -> None:
    shown = [
        "\u203a SCENARIO=err400",
        "",
        "■ it failed",
        "",
        "\u203a Ask Codex to do anything",
        "  GPT-5.5 · ~/project · SCENARIO=err400",
    ]
    assert answer(shown, shown, "SCENARIO=err400\r", NOISE) == "■ it failed"


def test_a_prompt_of_whatever_words_stands_before_the_echo() -> None:
    shown = ["you@host:~/x$ ls -l", "total 0", "you@host:~/x$"]
    assert answer(shown, shown, "ls -l\r", [r"\$$"]) == "total 0"


def test_without_an_echo_all_is_the_answer() -> None:
    assert answer(["above", "asked", "word"], ["asked", "word"], "secret\r", []) == "asked\nword"
