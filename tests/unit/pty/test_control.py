"""tmux's control mode: a recorded client, replies, and keys as commands."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_adapters.pty.control import Control, keys
from trunkline_adapters.pty.link import Heard
from trunkline_adapters.pty.screen import Screen
from trunkline_adapters.pty.session import understand
from trunkline_adapters.pty.tmux import held, users
from trunkline_adapters.pty.translate import PtyTranslator
from trunkline_agentkit import Fact
from trunkline_agentkit.protocol import Context
from trunkline_agentkit.replay import INCARNATION, SESSION
from trunkline_wire.work import NativeMessage

CASE = Path(__file__).parents[2] / "recordings" / "tmux" / "aider"


def placed(columns: int = 100, rows: int = 30) -> Control:
    control = Control()
    control.asked("place")
    for line in (b"%begin 1 1 1", f"%0 {columns} {rows} 0 0 aider".encode(), b"%end 1 1 1"):
        control.feed(line, 0.0)
    return control


def test_a_recorded_client_gives_the_screen_that_tmux_has_drawn() -> None:
    """Up to the point at which tmux was asked for it (`refresh-client`, behind it only `/exit`)."""
    control, screen = placed(), Screen(100, 30)
    for entry in map(json.loads, (CASE / "native.jsonl").read_text().splitlines()):
        if entry["from"] == "host" and str(entry["msg"]).startswith("refresh-client"):
            break
        if entry["from"] == "agent":
            messages = control.feed(entry["msg"].encode(), entry["t"])
            assert messages is not None, entry["msg"]
            for message in messages:
                screen.feed(message["data"])
    wanted = [line.rstrip() for line in (CASE / "screen.txt").read_text().splitlines()]
    assert screen.text.splitlines() == "\n".join(wanted).rstrip("\n").splitlines()


def test_a_screen_that_was_asked_for_comes_with_its_size_and_cursor() -> None:
    control = Control()
    control.asked("place")
    control.asked("screen")
    said = [b"%begin 5 1 0", b"%end 5 1 0", b"%begin 5 2 1", b"%3 20 4 2 1 sh its title", b"%end 5 2 1"]
    said += [b"%begin 5 3 1", b"\x1b[31mred", b"%output %3 no output", b"", b""]
    for line in said:
        assert control.feed(line, 1.0) == []
    messages = control.feed(b"%end 5 3 1", 1.0)
    assert messages is not None
    opened, printed = messages
    assert (opened["type"], opened["columns"], opened["rows"], opened["command"]) == ("opened", 20, 4, ["sh"])
    screen = Screen(20, 4)
    screen.feed(printed["data"])
    assert screen.title == "its title"
    assert (screen.text, screen.cursor) == ("red\n%output %3 no output"[:24], (2, 1))


def test_nothing_is_asked_before_the_client_is_attached() -> None:
    """Commands that come before have their answer before, and what is printed between the two is told to nobody."""
    control = Control()
    for line in (b"%begin 1 1 0", b"%end 1 1 0"):
        control.feed(line, 0.0)
        assert not control.stale
    control.feed(b"%session-changed $0 agent", 0.0)
    assert control.stale


def test_output_is_unescaped_over_pieces_and_of_our_pane_alone() -> None:
    control = placed()
    first = control.feed(b"%output %0 a\\134b\\033[1m\\303", 1.0)
    assert first is not None
    assert first[0]["data"] == "a\\b\x1b[1m"
    rest = control.feed(b"%output %0 \\251 " + "日".encode(), 1.0)
    assert rest is not None
    assert rest[0]["data"] == "é 日"
    assert control.feed(b"%output %1 other", 1.0) == []
    assert control.feed(b"%a-kind-of-next-year x", 1.0) == []
    assert control.feed(b"no line of it", 1.0) is None
    ended = control.feed(b"%exit server exited", 2.0)
    assert ended is not None
    assert (ended[0]["type"], ended[0]["reason"]) == ("exit", "server exited")


def test_a_window_of_another_size_is_asked_for_again() -> None:
    control = placed()
    control.feed(b"%layout-change @0 b25d,80x24,0,0,0 b25d,80x24,0,0,0 *", 1.0)
    assert control.stale


@pytest.mark.parametrize(
    ("data", "commands"),
    [
        ("hi", ["send-keys -t %0 -l -- 'hi'"]),
        ("it's; #{x} $HOME", ["send-keys -t %0 -l -- 'it'\"'\"'s; #{x} $HOME'"]),
        ("\r", ["send-keys -t %0 -H d"]),
        ("\x1b[A", ["send-keys -t %0 -H 1b", "send-keys -t %0 -l -- '[A'"]),
        ("", []),
    ],
)
def test_keys_are_commands(data: str, commands: list[str]) -> None:
    assert keys("%0", data) == commands


@given(st.text(max_size=2000))
def test_a_command_is_one_line(data: str) -> None:
    assert all("\n" not in command and "\r" not in command for command in keys("%0", data))


@given(st.lists(st.binary(max_size=60).map(lambda line: line.replace(b"\n", b"")), max_size=20))
def test_no_line_makes_it_raise(lines: list[bytes]) -> None:
    control = placed()
    for line in lines:
        control.feed(line, 1.0)


def test_a_line_of_no_known_kind_is_kept_as_unknown() -> None:
    translator = PtyTranslator(Context(session=SESSION, incarnation=INCARNATION, cwd="/"))
    (fact,) = understand(translator, Heard(raw=b'"banner"', messages=None)).out
    assert isinstance(fact, Fact)
    assert isinstance(fact.data, NativeMessage)
    assert not fact.data.known
    assert not any(isinstance(out, Fact) for out in understand(translator, Heard(raw=b'"%end"', messages=[])).out)


def test_where_the_servers_are() -> None:
    server = held("/usr/bin/tmux", "ses_1", {"TMPDIR": "/t"})
    assert server.attach == "tmux -S /t/tmux attach-session -t agent"
    assert server.client() == [
        "/usr/bin/tmux",
        "-u",
        "-S",
        "/t/tmux",
        "-f",
        "/dev/null",
        "-C",
        "attach-session",
        "-t",
        "=agent",
    ]
    mine = users("tmux", "mine", {"TMUX_TMPDIR": "/x"})
    assert mine.client()[-2:] == ["-f", "ignore-size,read-only"]
    assert mine.client(writable=True)[-2:] == ["-f", "ignore-size"]
