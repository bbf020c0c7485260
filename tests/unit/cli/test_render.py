"""What a person reads: each text once, whether it came in pieces or whole; nothing that could steer the terminal."""

import io
from typing import Any

from trunkline_cli.line import event_line, matches
from trunkline_cli.output import Screen, ago, short
from trunkline_cli.render import Renderer
from trunkline_fold.awaiting import Awaited
from trunkline_wire import Data, Event, make_event
from trunkline_wire.asks import AskDecided, PermissionRequested
from trunkline_wire.blocks import BlobRef, TextBlock, Usage
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.session import SessionClosed, SessionStatus
from trunkline_wire.turn import (
    MessageAssistant,
    MessageDelta,
    MessageUser,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import CommandRejected, PlanEntry, PlanUpdated

SESSION = "ses_" + "0" * 32
BEGIN = "2026-11-27T10:00:00.000000Z"


def event(data: Data, **fields: Any) -> Event:
    return make_event(data, session=SESSION, **{"time": BEGIN, **fields})


def show(*events: Event) -> tuple[str, str]:
    """(output, notes)"""
    out, notes = io.StringIO(), io.StringIO()
    renderer = Renderer(Screen(out, notes))
    renderer.mine.add("cmd_mine")
    for one in events:
        renderer.feed(one)
    return out.getvalue(), notes.getvalue()


def piece(text: str, at: int, block: int = 0) -> Event:
    return event(MessageDelta(block=block, at=at, text=text), item="m1")


def message(*texts: str, block: int | None = None, item: str = "m1", **fields: Any) -> Event:
    data = MessageAssistant(content=[TextBlock(text=text) for text in texts], block=block)
    return event(data, item=item, seq=1, **fields)


def test_pieces_are_written_as_they_come_and_the_whole_adds_only_what_is_missing() -> None:
    out, _ = show(piece("Hel", 0), piece("lo", 3), message("Hello world"))
    assert out == "Hello world\n"


def test_the_whole_block_again_repeats_nothing_and_a_hole_waits_for_it() -> None:
    out, _ = show(piece("one", 0), piece("lost", 8), piece("one two", 0), message("one two three"))
    assert out == "one two three\n"


def test_a_message_without_pieces_is_written_and_one_that_differs_is_written_anew() -> None:
    assert show(message("plain"))[0] == "plain\n"
    assert show(piece("draft", 0), message("final"))[0] == "draft\nfinal\n"


def test_what_is_too_large_to_be_shown_is_named_and_repeats_nothing() -> None:
    large = BlobRef(sha256="a" * 64, size=20_000_000, preview="begin")
    told = event(MessageAssistant(content=[TextBlock(text=large)]), item="m1", seq=1)
    for before, shown in ((), "begin\n"), ((piece("begin and more", 0),), "begin and more\n"):
        out, notes = show(*before, told)
        assert out == shown
        assert f"20,000,000 bytes in all: `trunkline blob {'a' * 64}`" in notes


def test_blocks_of_a_message_are_apart() -> None:
    out, _ = show(piece("one", 0, 0), piece("two", 0, 1), message("one", block=0), message("two!", block=1))
    assert out == "one\ntwo\n!\n"


def test_control_characters_of_an_agent_do_not_reach_the_terminal() -> None:
    out, notes = show(
        message("a\x1b[2Jb\x07"), event(ToolStarted(name="Bash", input={"command": "\x1b]0;x\x07"}), item="t")
    )
    assert out == "a\ufffd[2Jb\ufffd\n"
    assert "\x1b" not in notes


def test_tools_tell_what_and_how_long() -> None:
    _, notes = show(
        event(ToolStarted(name="Bash", input={"command": "ls  -l"}), item="t1"),
        event(ToolCompleted(status="completed"), item="t1", time="2026-11-27T10:00:02.500000Z"),
        event(ToolStarted(name="Read", title="a.py"), item="t2", lane="t0"),
        event(ToolCompleted(status="failed", reason="no such file"), item="t2", lane="t0"),
    )
    assert notes.splitlines() == [
        "  · Bash: ls -l",
        "    Bash done in 2.5 s",
        "    · Read: a.py",
        "      Read failed: no such file",
    ]


def test_turns_prompts_plans_asks_and_ends_are_told() -> None:
    _, notes = show(
        event(MessageUser(content=[TextBlock(text="hi")], author="ann")),
        event(MessageUser(content=[TextBlock(text="typed here")], command="cmd_mine")),
        event(PlanUpdated(entries=[PlanEntry(content="build", status="in_progress")])),
        event(PermissionRequested(ask="ask_1", name="Bash", incarnation="i", input={"command": ["rm", "x"]})),
        event(AskDecided(ask="ask_1", behaviour="deny", by="policy", rule="no-rm")),
        event(SessionStatus(status="retrying", after_ms=4000, reason="overloaded")),
        event(
            TurnCompleted(
                outcome="success", duration_ms=1500, cost_usd=0.01, usage=Usage(input=900, output=100, cache_read=234)
            )
        ),
        event(TurnCompleted(outcome="error", error=ErrorInfo(code="agent_failed", message="boom"))),
        event(SessionClosed(reason="done", exit_code=0)),
    )
    assert notes.splitlines() == [
        "> ann: hi",
        "  [~] build",
        "  ? Bash: rm x",
        "    deny by policy (rule no-rm)",
        "  retrying in 4 s: overloaded",
        "— done (1.5 s, 1,234 tokens, $0.0100)",
        "— error: agent_failed: boom",
        "— session closed: done, exit 0",
    ]


def test_an_event_in_a_line_is_cut_and_patterns_pick_types() -> None:
    line = event_line(event(ToolStarted(name="Bash", input={"command": "x" * 500}), seq=12))
    assert line.startswith("    12  10:00:00.000  tool.started           name=Bash")
    assert len(line) < 220
    assert event_line(event(TurnStarted(number=1)), with_session=True).split()[1] == SESSION[:16]
    assert matches("tool.started", [])
    assert matches("tool.started", ["turn.*", "tool.*"])
    assert not matches("tool.started", ["turn.*"])


def test_short_and_ago() -> None:
    assert short("a\n b  c") == "a b c"
    assert short("x" * 10, 5) == "xxxx…"
    assert ago("2000-01-01T00:00:00Z").endswith(" d")
    assert ago(None) == ""


def turn(outcome: Any, turn: str = "t1") -> Event:
    return event(TurnCompleted(outcome=outcome), turn=turn)


def said(delivery: Any = "sent", turn: str | None = None) -> Event:
    return event(MessageUser(content=[TextBlock(text="x")], command="cmd_1", delivery=delivery), turn=turn)


def awaited(*events: Event) -> list[bool | None]:
    waiting = Awaited("cmd_1")
    return [waiting.feed(one) for one in events]


def test_a_prompt_is_over_when_the_turn_it_caused_is() -> None:
    began = event(TurnStarted(number=2), turn="t2", cause="cmd_1")
    assert awaited(said(), began, turn("success", "t2"))[-1] is True
    assert awaited(said(), began, turn("error", "t2"))[-1] is False


def test_a_queued_prompt_waits_behind_the_running_turn() -> None:
    began = event(TurnStarted(number=2), turn="t2", cause="cmd_1")
    assert awaited(said("queued"), turn("success", "t1"), began, turn("max_turns", "t2")) == [None, None, None, False]


def test_a_steered_prompt_ends_with_the_turn_it_went_into() -> None:
    assert awaited(said("steered", "t1"), turn("success", "t1")) == [None, True]


def test_a_refused_or_cancelled_prompt_is_over_at_once() -> None:
    error = ErrorInfo(code="session_closed", message="")
    assert awaited(event(CommandRejected(command="cmd_1", cmd_seq=1, error=error))) == [False]
    assert awaited(said("cancelled")) == [False]
    assert awaited(event(CommandRejected(command="cmd_2", cmd_seq=1, error=error))) == [None]
