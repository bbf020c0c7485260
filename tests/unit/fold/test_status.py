"""A session's status, case by case, as a person would tell it from the log."""

import pytest

from trunkline_fold.session import SessionState, fold_session, initial
from trunkline_testkit.logs import Log
from trunkline_wire import Data, ErrorInfo
from trunkline_wire.asks import AskDecided, AskExpired, AskWithdrawn, PermissionRequested, PlanProposed, QuestionAsked
from trunkline_wire.blocks import TextBlock
from trunkline_wire.session import (
    Capabilities,
    SessionArchived,
    SessionClosed,
    SessionCompacted,
    SessionErased,
    SessionInitialized,
    SessionResumed,
    SessionStatus,
)
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import AuthUpdated, CommandFailed, HookFired, NativeMessage, TaskUpdated

READY = SessionInitialized(capabilities=Capabilities(), incarnation="inc")


def folded(log: Log) -> SessionState:
    state = initial(log.session)
    for sequence, _, event in log.entries:
        state = fold_session(state, event, sequence)
    return state


def prompt(log: Log, text: str = "go", command: str = "cmd_1") -> None:
    log.agent(MessageUser(content=[TextBlock(text=text)], command=command), item="itm_" + command)


def running(log: Log, number: int = 1) -> None:
    log.created()
    log.agent(READY)
    prompt(log)
    log.agent(TurnStarted(number=number), turn="tur_1")


def say(log: Log, text: str = "hm") -> None:
    log.agent(MessageAssistant(content=[TextBlock(text=text)]), item="itm_a", turn="tur_1")


def test_a_session_that_was_only_created_is_idle() -> None:
    log = Log()
    log.created()
    assert folded(log).status == "idle"


def test_from_the_prompt_to_the_end_of_the_turn() -> None:
    log = Log()
    seen: list[str] = []
    for step in (
        log.created,
        lambda: log.agent(SessionStatus(status="starting")),
        lambda: log.agent(MessageUser(content=[TextBlock(text="go")], command="cmd_1")),
        lambda: log.agent(READY),
        lambda: log.agent(TurnStarted(number=1), turn="tur_1"),
        lambda: log.agent(TurnCompleted(outcome="success"), turn="tur_1"),
    ):
        step()
        seen.append(folded(log).status)
    assert seen == ["idle", "starting", "starting", "running", "running", "idle"]


def test_a_sent_prompt_runs_before_its_turn_begins_and_a_cancelled_one_does_not() -> None:
    log = Log()
    log.created()
    prompt(log)
    assert folded(log).status == "running"
    log.agent(MessageUser(content=[], command="cmd_1", delivery="cancelled"))
    assert folded(log).status == "idle"


def test_a_turn_takes_up_the_prompts_that_were_sent_before_it() -> None:
    log = Log()
    log.created()
    prompt(log, command="cmd_1")
    prompt(log, command="cmd_2")
    assert folded(log).pending == ["cmd_1", "cmd_2"]
    log.agent(TurnStarted(number=1), turn="tur_1", cause="cmd_1")
    assert folded(log).pending == []


def test_a_prompt_that_failed_does_not_run_for_ever() -> None:
    log = Log()
    log.created()
    prompt(log)
    log.agent(CommandFailed(command="cmd_1", error=ErrorInfo(code="agent_failed", message="gone")))
    assert folded(log).status == "idle"


def test_a_queued_prompt_of_a_running_turn_is_no_turn_of_its_own() -> None:
    log = Log()
    running(log)
    log.agent(MessageUser(content=[TextBlock(text="and")], delivery="queued", command="cmd_2"), turn="tur_1")
    log.agent(TurnCompleted(outcome="success"), turn="tur_1")
    assert folded(log).status == "idle"


def test_a_message_that_the_agent_wrote_in_the_users_name_is_no_prompt() -> None:
    log = Log()
    log.created()
    log.agent(MessageUser(content=[TextBlock(text="summary")], synthetic=True))
    state = folded(log)
    assert (state.status, state.title, state.counts.prompts) == ("idle", None, 0)


@pytest.mark.parametrize(
    "ask",
    [
        PermissionRequested(ask="ask_1", name="Bash", incarnation="inc"),
        QuestionAsked(ask="ask_1", incarnation="inc"),
        PlanProposed(ask="ask_1", incarnation="inc", plan="1. go"),
    ],
)
@pytest.mark.parametrize(
    "end",
    [
        AskDecided(ask="ask_1", behaviour="allow", by="me"),
        AskExpired(ask="ask_1"),
        AskWithdrawn(ask="ask_1", why="cancelled"),
    ],
)
def test_it_waits_while_an_ask_is_open(ask: Data, end: Data) -> None:
    log = Log()
    running(log)
    asked = log.agent(ask)
    state = folded(log)
    assert (state.status, state.status_since, state.open_asks) == ("waiting", asked.time, ["ask_1"])
    log.agent(end) if isinstance(end, AskWithdrawn) else log.permission(end)
    state = folded(log)
    assert (state.status, state.open_asks) == ("running", [])
    log.agent(ask)
    assert folded(log).status == "running", "an ask that has ended does not open again"


def test_of_two_open_asks_the_last_one_ends_the_waiting() -> None:
    log = Log()
    running(log)
    for ask in ("ask_1", "ask_2"):
        log.agent(PermissionRequested(ask=ask, name="Bash", incarnation="inc"))
    log.permission(AskDecided(ask="ask_1", behaviour="deny", by="me"))
    assert folded(log).status == "waiting"
    log.permission(AskDecided(ask="ask_2", behaviour="deny", by="me"))
    assert folded(log).status == "running"


def test_an_owner_without_the_agent_leaves_no_ask_and_no_prompt_open() -> None:
    log = Log()
    running(log)
    log.agent(PermissionRequested(ask="ask_1", name="Bash", incarnation="inc"))
    log.claimed(incarnation="inc")
    assert folded(log).status == "waiting"
    log.claimed(incarnation=None)
    assert (folded(log).status, folded(log).open_asks) == ("running", [])
    log.agent(TurnCompleted(outcome="aborted"), turn="tur_1")
    assert folded(log).status == "idle"


def test_scenario_10_a_background_task_starts_a_turn_by_itself() -> None:
    """The agent answers, a task of its goes on in the background and ends a minute later with a turn of its own."""
    log = Log()
    running(log)
    log.agent(TaskUpdated(task="bg1", status="running", background=True), turn="tur_1")
    ended = log.agent(TurnCompleted(outcome="success"), turn="tur_1")
    state = folded(log)
    assert (state.status, state.status_since, state.turns) == ("idle", ended.time, 1)
    log.wait(60)
    log.agent(TaskUpdated(task="bg1", status="completed"))
    assert folded(log).status == "idle"
    second = log.agent(TurnStarted(number=2, trigger="background"), turn="tur_2", cause="bg1")
    state = folded(log)
    assert (state.status, state.status_since, state.turns) == ("running", second.time, 2)
    log.agent(TurnCompleted(outcome="success", trigger="background"), turn="tur_2")
    state = folded(log)
    assert (state.status, state.turns) == ("idle", 2)
    assert state.last_turn is not None
    assert (state.last_turn.trigger, state.last_turn.cause, state.last_turn.number) == ("background", "bg1", 2)


def test_scenario_11_the_model_answers_429_for_ten_minutes() -> None:
    log = Log()
    running(log)
    first = log.agent(SessionStatus(status="retrying", attempt=1, max_attempts=10, after_ms=2000, reason="rate_limit"))
    state = folded(log)
    assert (state.status, state.status_since) == ("retrying", first.time)
    assert state.retry is not None
    assert (state.retry.attempt, state.retry.max_attempts, state.retry.after_ms) == (1, 10, 2000)
    assert (state.retry.reason, state.retry.time) == ("rate_limit", first.time)
    log.wait(300)
    fourth = log.agent(SessionStatus(status="retrying", attempt=4, max_attempts=10, after_ms=16000))
    state = folded(log)
    assert state.retry is not None
    assert (state.status_since, state.retry.attempt, state.retry.time) == (first.time, 4, fourth.time)
    log.wait(300)
    silent = log.agent(SessionStatus(status="stalled", since="2026-11-27T21:08:00.000000Z"))
    state = folded(log)
    assert (state.status, state.status_since, state.retry) == ("stalled", "2026-11-27T21:08:00.000000Z", None)
    assert silent.time > state.status_since if state.status_since else False
    log.agent(SessionStatus(status="interrupting"))
    assert folded(log).status == "interrupting", "interrupt still works"
    log.agent(TurnCompleted(outcome="interrupted"), turn="tur_1")
    state = folded(log)
    assert (state.status, state.retry, state.condition) == ("idle", None, None)


@pytest.mark.parametrize("status", ["retrying", "stalled", "compacting"])
@pytest.mark.parametrize(
    "progress",
    [
        MessageAssistant(content=[TextBlock(text="here")]),
        ToolStarted(name="Bash"),
        SessionCompacted(trigger="auto"),
        SessionStatus(status=None),
    ],
)
def test_what_is_over_is_not_reported_any_longer(status: str, progress: Data) -> None:
    log = Log()
    running(log)
    log.agent(SessionStatus(status=status))  # type: ignore[arg-type]  # each is one of the literals
    assert folded(log).status == status
    log.agent(progress, item="itm_p")
    assert folded(log).status == "running"


def test_noise_does_not_hide_that_an_agent_is_stalled() -> None:
    log = Log()
    running(log)
    log.agent(SessionStatus(status="stalled"))
    log.agent(HookFired(hook_event="Notification"))
    log.agent(NativeMessage(known=True, kind="ping"))
    assert folded(log).status == "stalled"


def test_interrupting_ends_with_its_turn_and_nothing_before() -> None:
    log = Log()
    running(log)
    log.agent(SessionStatus(status="interrupting"))
    say(log)
    log.agent(SessionStatus(status=None))
    log.agent(SessionStatus(status="retrying", attempt=1))
    assert folded(log).status == "interrupting"
    log.agent(TurnCompleted(outcome="interrupted"), turn="tur_1")
    assert folded(log).status == "idle"


def test_interrupting_nothing_is_no_status() -> None:
    log = Log()
    log.created()
    log.agent(SessionStatus(status="interrupting"))
    assert folded(log).status == "idle"


def test_stopped_closed_resumed_archived() -> None:
    log = Log()
    running(log)
    log.agent(TurnCompleted(outcome="success"), turn="tur_1")
    log.agent(SessionStatus(status="stopped"))
    assert folded(log).status == "stopped"
    log.claimed()
    assert folded(log).status == "stopped", "who only renames a stopped session does not start it"
    prompt(log, command="cmd_2")
    assert folded(log).status == "running"
    log.agent(SessionClosed(reason="crash_loop", exit_code=1, last_error="no such model", cmd_seq=9))
    state = folded(log)
    assert (state.status, state.pending, state.cmd_seq) == ("closed", [], 9)
    assert state.closed is not None
    assert (state.closed.reason, state.closed.exit_code) == ("crash_loop", 1)
    log.agent(SessionArchived(by="me"))
    assert folded(log).status == "archived"
    log.agent(SessionResumed(how="unarchived"))
    assert folded(log).status == "closed"
    log.agent(SessionResumed(how="reopened"))
    assert (folded(log).status, folded(log).closed) == ("idle", None)


def test_signing_in() -> None:
    log = Log()
    log.created()
    log.agent(AuthUpdated(authenticating=True, methods=["browser"]))
    state = folded(log)
    assert state.status == "authenticating"
    assert state.auth is not None
    assert state.auth.methods == ["browser"]
    log.agent(AuthUpdated(authenticating=False, error="denied"))
    assert folded(log).status == "idle"


def test_a_dead_agents_condition_ends_with_its_owner() -> None:
    log = Log()
    running(log)
    log.agent(SessionStatus(status="retrying", attempt=1))
    log.claimed()
    log.agent(TurnCompleted(outcome="aborted"), turn="tur_1")
    assert folded(log).status == "idle"


def test_a_subagents_turn_is_none_of_the_sessions() -> None:
    log = Log()
    running(log)
    log.agent(TurnStarted(number=1), turn="tur_s", lane="itm_task")
    log.agent(TurnCompleted(outcome="success"), turn="tur_s", lane="itm_task")
    state = folded(log)
    assert (state.status, state.turns) == ("running", 1)


def test_an_erased_session_keeps_nothing() -> None:
    log = Log()
    running(log)
    log.agent(SessionErased(by="operator"))
    state = folded(log)
    only = fold_session(initial(log.session), log.entries[-1][2], log.entries[-1][0])
    assert state == only
    assert (state.status, state.title, state.cwd, state.last_text) == ("closed", None, None, None)
    assert (state.seq, state.epoch) == (5, 1)
