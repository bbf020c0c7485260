"""What a screen says, and from when on it counts. Times are derived by hand from the profile."""

from pathlib import Path

import msgspec
import pytest

from trunkline_adapters.pty.infer import STANDS_S, Asking, Watch, look
from trunkline_adapters.pty.profiles import PROFILES, Answer, Dialog, Profile

SCREENS = Path(__file__).parents[2] / "recordings" / "screens"
PLAIN = Profile(
    command=("p",),
    prompt=r"^>\Z",
    prompt_s=0.5,
    silent_s=10,
    dialogs=(
        Dialog(
            name="run",
            pattern=r"^(?P<title>Run (?P<about>\w+)\?)$",
            answers=(
                Answer(id="yes", name="Yes", kind="allow_once", keys=("{n}",), match=r"(?P<n>\d)\. Yes"),
                Answer(id="all", name="All", kind="allow_always", keys=("a",), match="All"),
            ),
        ),
    ),
)
BUSY = msgspec.structs.replace(PLAIN, busy="working", prompt="^>")


def shown(name: str) -> str:
    """A recorded screen."""
    return (SCREENS / f"{name}.txt").read_text().rstrip("\n")


def test_a_dialog_offers_what_it_shows() -> None:
    found = look(PLAIN, "text\nRun ls?\n 2. Yes\n")
    assert isinstance(found, Asking)
    assert (found.title, found.about, found.keys) == ("Run ls?", "ls", {"yes": ("2",)})
    assert [option.id for option in found.options] == ["yes"]


def test_work_goes_before_a_prompt_and_a_dialog_before_both() -> None:
    assert look(BUSY, "working\n>") == "busy"
    assert isinstance(look(BUSY, "working\nRun ls?\n1. Yes\n>"), Asking)
    assert look(BUSY, "something\n>") == "prompt"
    assert look(BUSY, "something") is None


def test_a_prompt_counts_once_it_has_stood() -> None:
    watch = Watch(PLAIN)
    watch.see(1.0, "text\n>")
    assert (watch.settled, watch.due) == (None, 1.5)
    watch.see(1.2, "text\nmore")
    watch.see(1.3, "text\nmore\n>")
    assert watch.due == 1.8
    watch.pass_time(1.79)
    assert watch.settled is None
    watch.pass_time(1.8)
    assert (watch.settled, watch.due) == ("prompt", None)


def test_a_dialog_that_is_redrawn_stays_the_same() -> None:
    watch = Watch(PLAIN)
    watch.see(1.0, "Run ls?\n1. Yes")
    watch.see(1.2, "spinner\nRun ls?\n1. Yes")
    watch.pass_time(1.0 + STANDS_S)
    assert isinstance(watch.settled, Asking)
    watch.see(2.0, "half drawn")
    watch.see(2.1, "Run ls?\n1. Yes")
    watch.pass_time(9.0)
    assert isinstance(watch.settled, Asking)
    watch.see(9.0, "gone")
    assert watch.due == 9.0 + STANDS_S
    watch.pass_time(9.0 + STANDS_S)
    assert watch.settled is None


def test_silence_counts_as_waiting() -> None:
    watch = Watch(PLAIN)
    watch.see(1.0, "password")
    assert watch.due == 11.0
    watch.pass_time(11.0)
    assert (watch.settled, watch.due) == ("prompt", None)


def test_a_prompt_that_always_shows_counts_after_work_was_seen() -> None:
    watch = Watch(BUSY)
    watch.restart(1.0)
    watch.see(1.1, ">")
    assert watch.due == 1.0 + 5.0
    watch.see(2.0, "working\n>")
    assert watch.settled == "busy"
    watch.see(3.0, "done\n>")
    assert watch.due == 3.5


def test_work_that_nobody_asked_for_has_to_stand() -> None:
    watch = Watch(BUSY)
    watch.see(1.0, ">")
    watch.pass_time(1.5)
    watch.see(2.0, "working\n>")
    assert (watch.settled, watch.due) == ("prompt", 2.0 + STANDS_S)
    watch.see(2.1, ">")
    watch.pass_time(9.0)
    assert watch.settled == "prompt"
    watch.see(10.0, "working\n>")
    watch.pass_time(10.0 + STANDS_S)
    assert watch.settled == "busy"


def test_work_may_show_in_the_title_alone() -> None:
    silent = msgspec.structs.replace(PLAIN, prompt="^>", busy_title="^\\*")
    assert look(silent, "text\n>", "* program") == "busy"
    assert look(silent, "text\n>", "program") == "prompt"
    watch = Watch(silent)
    watch.restart(1.0)
    watch.see(1.1, ">", "program")
    assert watch.due == 1.0 + 5.0


def test_every_profile_of_the_package_tells_prompt_from_work() -> None:
    assert set(PROFILES.shipped) == {"aider", "claude", "codex", "gemini", "kilo", "opencode", "shell"}
    assert look(PROFILES.shipped["aider"], "Tokens: 1 sent, 2 received.\n───\n>") == "prompt"
    assert look(PROFILES.shipped["aider"], "───\n> say hi") is None
    assert look(PROFILES.shipped["shell"], "total 0\nuser@host:~$") == "prompt"
    assert look(PROFILES.shipped["shell"], "building…") is None


def test_aider_asks_with_letters() -> None:
    found = look(
        PROFILES.shipped["aider"], "Create new file?\nAdd a.py to the chat? (Y)es/(N)o/(D)on't ask again [Yes]:"
    )
    assert isinstance(found, Asking)
    assert (found.title, found.about) == ("Add a.py to the chat?", None)
    assert found.keys == {"yes": ("y\r",), "no": ("n\r",), "never": ("d\r",)}
    found = look(
        PROFILES.shipped["aider"], "Tokens: 600 sent, 13 received.\n\nasked\nCreate new file? (Y)es/(N)o [Yes]:"
    )
    assert isinstance(found, Asking)
    assert (found.title, found.about) == ("Create new file?", "asked")


def test_codex_waits_once_it_has_started_and_works_as_its_title_says() -> None:
    profile = PROFILES.shipped["codex"]
    assert look(profile, shown("codex-starts")) is None
    assert look(profile, shown("codex-waits"), "project") == "prompt"
    assert look(profile, shown("codex-waits"), "⠧ project") == "busy"


@pytest.mark.parametrize("program", ["kilo", "opencode"])
def test_opencode_shows_its_prompt_always_and_how_its_work_is_stopped(program: str) -> None:
    profile = PROFILES.shipped[program]
    assert look(profile, shown("opencode-waits")) == "prompt"
    assert look(profile, shown("opencode-works")) == "busy"


@pytest.mark.parametrize(
    ("program", "screen", "name", "title", "about", "keys"),
    [
        (
            "codex",
            shown("codex-asks"),
            "approval",
            "Would you like to run the following command?",
            "Environment: local\n$ rm -rf nothing",
            {"once": ("1",), "always": ("2",), "no": ("3",)},
        ),
        (
            "codex",
            shown("codex-trusts"),
            "trust",
            "Trust this folder?",
            "/home/me/project",
            {"yes": ("1", "\r"), "no": ("2",)},
        ),
        (
            "codex",
            shown("codex-offers"),
            "model",
            "Meet GPT-6 Sol",
            "Our latest Sol is more intelligent and more efficient so your usage limits go further.",
            {"new": ("1",), "old": ("2",)},
        ),
        (
            "claude",
            shown("claude-asks"),
            "approval",
            "Do you want to proceed?",
            "touch asked",
            {"once": ("1",), "always": ("2",), "no": ("4",)},
        ),
        (
            "opencode",
            shown("opencode-asks"),
            "approval",
            "Permission required",
            "# Shell command\n$ touch asked",
            {"once": ("\r",), "always": ("\x1b[C", "\r", "\r"), "no": ("\x1b[C", "\x1b[C", "\r")},
        ),
    ],
)
def test_what_programs_ask(
    program: str, screen: str, name: str, title: str, about: str, keys: dict[str, tuple[str, ...]]
) -> None:
    found = look(PROFILES.shipped[program], screen)
    assert isinstance(found, Asking)
    assert (found.name, found.title, found.about, found.keys) == (name, title, about, keys)
