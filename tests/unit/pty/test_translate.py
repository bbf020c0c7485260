"""The translator by itself: times, asks, what is typed, and that no traffic makes it raise."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.claude.recorded import CONTEXT

from trunkline_adapters.pty import cast, launch
from trunkline_adapters.pty.adapter import PtyAdapter
from trunkline_adapters.pty.native import logged, tick, typed
from trunkline_adapters.pty.profiles import PROFILES
from trunkline_adapters.pty.translate import PtyTranslator
from trunkline_adapters.pty.view import RECORDING_LIMIT
from trunkline_agentkit import Fact, Out, Progress, local_start
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, AskWithdrawn, PermissionRequested
from trunkline_wire.blocks import TextBlock, join_text
from trunkline_wire.turn import MessageAssistant, TerminalScreen, TurnCompleted, TurnStarted


def facts(out: list[Out]) -> list[Any]:
    return [one.data for one in out if isinstance(one, Fact) and not isinstance(one.data, TerminalScreen)]


class Terminal:
    """A translator of aider's terminal; `all` is what came of it."""

    def __init__(self) -> None:
        self.translator = PtyTranslator(CONTEXT, PROFILES.shipped["aider"])
        self.all: list[Out] = []
        self.feed({"type": "opened", "at": 0, "columns": 60, "rows": 10, "command": ["aider"]})

    def feed(self, message: dict[str, Any]) -> list[Any]:
        out = self.translator.feed(message)
        self.all += out
        return facts(out)

    def prints(self, at: float, data: str) -> list[Any]:
        return self.feed({"type": "output", "at": at, "data": data})

    def sends(self, message: dict[str, Any]) -> list[Any]:
        out = self.translator.sent(message)
        self.all += out
        return facts(out)

    def prompt(self, at: float, said: str) -> list[Any]:
        return [*self.sends(typed(said, at)), *self.sends(typed("\r", at + 0.1, begins=True, command="cmd_1"))]


def test_a_turn_goes_from_enter_to_the_prompt() -> None:
    terminal = Terminal()
    terminal.prints(1.0, "Aider\r\n> ")
    assert not terminal.translator.ready
    terminal.sends(tick(1.5))
    assert terminal.translator.ready
    (started,) = terminal.prompt(2.0, "say hi")
    assert isinstance(started, TurnStarted)
    assert [one.cause for one in terminal.all if isinstance(one, Fact) and one.data is started] == ["cmd_1"]
    assert terminal.prints(2.2, "say hi\r\n\r\nHello.\r\n") == []
    assert terminal.prints(3.0, "────\r\n> ") == []
    assert terminal.translator.due is not None
    ended = terminal.sends(tick(3.5))
    assert [type(one) for one in ended] == [MessageAssistant, TurnCompleted]
    assert join_text(ended[0].content) == "Hello."
    assert ended[1].outcome == "success"


def test_an_answer_that_repeats_the_prompt_stays_whole() -> None:
    terminal = Terminal()
    terminal.prints(1.0, "> ")
    terminal.prompt(2.0, "say a long sentence, please")
    terminal.prints(2.2, "say a long sentence, please\r\n\r\nsay a long sentence, please? No.\r\n> ")
    assert join_text(terminal.sends(tick(9.0))[0].content) == "say a long sentence, please? No."


def test_a_failure_shows_as_one() -> None:
    terminal = Terminal()
    terminal.prints(1.0, "> ")
    terminal.prompt(2.0, "say hi")
    terminal.prints(2.2, "say hi\r\nlitellm.InternalServerError: down\r\n> ")
    done = terminal.sends(tick(9.0))[-1]
    assert (done.outcome, done.error.code) == ("error", "agent_failed")
    terminal.prompt(10.0, "say hi")
    terminal.prints(10.2, "say hi\r\nlitellm.AuthenticationError: no\r\n> ")
    assert terminal.sends(tick(19.0))[-1].error.code == "agent_auth"


def asking() -> tuple[Terminal, PermissionRequested]:
    terminal = Terminal()
    terminal.prints(1.0, "> ")
    terminal.prompt(2.0, "do it")
    terminal.prints(2.2, "do it\r\nRun shell command? (Y)es/(N)o [Yes]: ")
    (asked,) = terminal.sends(tick(3.0))
    assert isinstance(asked, PermissionRequested)
    return terminal, asked


def test_a_dialog_is_an_ask_that_keys_answer() -> None:
    terminal, asked = asking()
    assert asked.title == "Run shell command?"
    assert terminal.translator.pending == {asked.ask}
    assert terminal.translator.keys_for(asked.ask, AskDecided(ask=asked.ask, behaviour="deny", by="me")) == ("n\r",)
    keys = terminal.translator.keys_for(asked.ask, AskDecided(ask=asked.ask, behaviour="allow", by="me"))
    assert keys == ("y\r",)
    assert terminal.sends(typed(keys[0], 4.0, answers=asked.ask)) == []
    assert terminal.translator.pending == set()
    with pytest.raises(TrunklineError) as refused:
        terminal.translator.keys_for(asked.ask, AskDecided(ask=asked.ask, behaviour="allow", by="me"))
    assert refused.value.code == "unknown_ask"
    terminal.prints(4.2, "y\r\nran\r\n> ")
    assert [type(one) for one in terminal.sends(tick(9.0))] == [MessageAssistant, TurnCompleted]


def test_an_option_that_is_not_offered_is_refused() -> None:
    terminal, asked = asking()
    with pytest.raises(TrunklineError) as refused:
        terminal.translator.keys_for(asked.ask, AskDecided(ask=asked.ask, behaviour="allow", by="me", option="all"))
    assert refused.value.code == "bad_answer"


def test_a_dialog_that_goes_was_answered_by_somebody_else() -> None:
    terminal, asked = asking()
    terminal.prints(4.0, "y\r\nrunning it now\r\n")
    (withdrawn,) = terminal.sends(tick(5.0))
    assert withdrawn == AskWithdrawn(ask=asked.ask, why="answered_elsewhere")


def test_an_interrupt_withdraws_the_dialog() -> None:
    terminal, asked = asking()
    assert terminal.sends(typed("\x03", 4.0)) == [AskWithdrawn(ask=asked.ask, why="interrupted")]
    terminal.prints(4.1, "\r\n> ")
    assert terminal.sends(tick(9.0))[-1].outcome == "interrupted"


def test_what_its_own_log_has_is_told_in_place_of_the_screen() -> None:
    terminal = Terminal()
    terminal.prints(1.0, "> ")
    terminal.prompt(2.0, "hi")
    assert terminal.sends(logged("**One.**", 2.2)) == [MessageAssistant(content=[TextBlock(text="**One.**")])]
    (second,) = terminal.sends(logged("Two.", 2.3))
    terminal.prints(2.5, "hi\r\nOne.\r\nTwo.\r\n> ")
    ended = terminal.sends(tick(9.0))
    assert [type(one) for one in ended] == [TurnCompleted]
    said = [out for out in terminal.all if isinstance(out, Fact) and isinstance(out.data, MessageAssistant)]
    assert said[1].data == second
    assert len({fact.item for fact in said}) == 2
    # Too late, it is no part of any turn.
    assert terminal.sends(logged("Three.", 9.1)) == []


def test_the_screen_is_streamed_ten_times_a_second_and_not_when_it_is_the_same() -> None:
    terminal = Terminal()
    for n in range(100):
        terminal.prints(1 + n / 100, f"\r{n}")
    terminal.sends(tick(3.0))
    shown = [one.data for one in terminal.all if isinstance(one, Progress)]
    assert 10 <= len(shown) <= 12
    assert isinstance(shown[-1], TerminalScreen)
    assert shown[-1].text == "99"
    before = len(terminal.all)
    terminal.prints(4.0, "\r99")
    terminal.sends(tick(5.0))
    assert not any(isinstance(one, Progress) for one in terminal.all[before:])


def test_a_long_recording_is_told_in_parts() -> None:
    terminal = Terminal()
    for n in range(3):
        terminal.prints(1.0 + n, "x" * (RECORDING_LIMIT // 2))
    parts = [
        one.data.recording for one in terminal.all if isinstance(one, Fact) and isinstance(one.data, TerminalScreen)
    ]
    assert len(parts) == 1
    assert str(parts[0]).startswith('{"version": 2, "width": 60, "height": 10}\n')


def test_a_program_that_leaves_in_order_ends_its_turn() -> None:
    terminal = Terminal()
    terminal.prints(1.0, "> ")
    terminal.prompt(2.0, "/exit")
    ended = terminal.feed({"type": "exit", "at": 3.0, "code": 0, "signal": None})
    assert [one.TYPE for one in ended] == ["turn.completed", "terminal.closed"]
    terminal = Terminal()
    terminal.prompt(2.0, "crash")
    ended = terminal.feed({"type": "exit", "at": 3.0, "code": 3, "signal": None})
    assert [one.TYPE for one in ended] == ["terminal.closed"]


MESSAGES = st.one_of(
    st.fixed_dictionaries({"type": st.just("output"), "at": st.floats(0, 100), "data": st.text(max_size=30)}),
    st.fixed_dictionaries(
        {"type": st.just("output"), "data": st.sampled_from(["> ", "\r\n> ", "Go? (Y)es/(N)o [Yes]: "])}
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("input"),
            "at": st.floats(0, 100),
            "data": st.sampled_from(["x", "\r", "\x03"]),
            "begins": st.booleans(),
        }
    ),
    st.fixed_dictionaries({"type": st.just("resize"), "columns": st.integers(-5, 5000), "rows": st.integers(-5, 5000)}),
    st.fixed_dictionaries({"type": st.just("tick"), "at": st.floats(0, 10_000)}),
    st.dictionaries(
        st.sampled_from(["type", "at", "data", "columns"]), st.one_of(st.none(), st.text(), st.integers(), st.floats())
    ),
)


@given(st.lists(st.tuples(st.booleans(), MESSAGES), max_size=30))
def test_no_traffic_makes_it_raise_and_turns_stay_paired(traffic: list[tuple[bool, dict[str, Any]]]) -> None:
    translator = PtyTranslator(CONTEXT, PROFILES.shipped["aider"])
    out: list[Out] = []
    for ours, message in traffic:
        out += translator.sent(message) if ours else translator.feed(message)
    turns = [type(one) for one in facts(out) if isinstance(one, TurnStarted | TurnCompleted)]
    assert turns == [TurnStarted if n % 2 == 0 else TurnCompleted for n in range(len(turns))]


@pytest.mark.parametrize(
    ("source", "locale"),
    [
        ({}, "C.UTF-8"),
        ({"LANG": "C"}, "C.UTF-8"),
        ({"LANG": "de_DE.UTF-8"}, None),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "POSIX"}, "C.UTF-8"),
    ],
)
def test_a_terminal_is_always_in_utf_8(source: dict[str, str], locale: str | None) -> None:
    start = local_start(PtyAdapter({}), Path("/"), agent="shell", source=source)
    start.environment.update(source)
    assert launch.environment(start, PROFILES.shipped["shell"], {}).get("LC_ALL") == locale


def test_a_prompt_holds_no_keys() -> None:
    assert launch.prompt_text([TextBlock(text="a\x1b[201~\x03b\tc\r\nd\x9b")]) == "a[201~b\tc\nd"
    assert launch.keystrokes("a\nb", pastes=True) == "\x1b[200~a\nb\x1b[201~"
    assert launch.keystrokes("a\nb", pastes=False) == "a\rb"
    with pytest.raises(TrunklineError) as refused:
        launch.prompt_text([TextBlock(text="\x03 \x1b")])
    assert refused.value.code == "bad_params"


@pytest.mark.parametrize(
    "line",
    [b'{"version": 1, "width": 80, "height": 24, "stdout": []}', b'{"version": 3, "term": {"cols": 80, "rows": 24}}'],
)
def test_another_version_of_a_recording_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="convert it"):
        cast.is_cast(line)


def test_a_broken_recording_names_its_line() -> None:
    with pytest.raises(ValueError, match="line 3"):
        list(cast.recorded([b'{"version": 2}', b'[1.0, "o", "x"]', b"[1.0"]))
    with pytest.raises(ValueError, match="line 2"):
        list(cast.recorded([b'{"version": 2}', b'["o", 1.0, "x"]']))
