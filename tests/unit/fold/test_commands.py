"""Commands: ids of the last 24 hours, their outcomes, and where the next owner reads on."""

from hypothesis import given
from hypothesis import strategies as st

from trunkline_fold.commands import CommandsState, fold_commands
from trunkline_testkit.logs import Log
from trunkline_wire import Data, ErrorInfo
from trunkline_wire.session import SessionClosed, SessionErased
from trunkline_wire.work import CommandAccepted, CommandFailed, CommandFinished, CommandRejected

UNKNOWN = ErrorInfo(code="outcome_unknown", message="the owner died")


def folded(log: Log, start: CommandsState | None = None) -> CommandsState:
    state = start or CommandsState()
    for sequence, _, event in log.entries:
        state = fold_commands(state, event, sequence)
    return state


def accepted(command: str, cmd_seq: int, verb: str = "prompt") -> CommandAccepted:
    return CommandAccepted(command=command, verb=verb, cmd_seq=cmd_seq)


def test_accepted_finished_failed_rejected() -> None:
    log = Log()
    log.created()
    log.agent(accepted("c1", 10))
    log.agent(accepted("c2", 12, "interrupt"))
    log.agent(CommandFinished(command="c1", how="emulated", result={"x": 1}))
    log.agent(
        CommandRejected(command="c3", cmd_seq=15, verb="steer", error=ErrorInfo(code="unsupported", message="no"))
    )
    state = folded(log)
    assert [record.command for record in state.open] == ["c2"]
    assert state.open[0].epoch == 1
    first = state.commands["c1"]
    assert (first.outcome, first.how, first.result, first.verb, first.cmd_seq) == (
        "finished",
        "emulated",
        {"x": 1},
        "prompt",
        10,
    )
    refused = state.commands["c3"]
    assert refused.error is not None
    assert (refused.outcome, refused.error.code, refused.verb) == ("rejected", "unsupported", "steer")
    assert state.cmd_seq == 15
    log.agent(CommandFailed(command="c2", error=UNKNOWN))
    state = folded(log)
    assert (state.open, state.commands["c2"].outcome) == ([], "failed")


def test_an_id_has_one_outcome_the_first() -> None:
    log = Log()
    log.agent(accepted("c1", 10))
    log.agent(CommandFinished(command="c1"))
    log.agent(CommandFailed(command="c1", error=UNKNOWN))
    log.agent(accepted("c1", 11))
    log.agent(CommandFinished(command="never"))
    state = folded(log)
    assert (state.commands["c1"].outcome, state.commands["c1"].cmd_seq, state.cmd_seq, state.late) == (
        "finished",
        10,
        11,
        2,
    )


def test_ids_live_for_24_hours_of_event_time_and_open_ones_until_they_end() -> None:
    log = Log()
    log.agent(accepted("open", 1))
    log.agent(accepted("old", 2))
    log.agent(CommandFinished(command="old"))
    log.wait(24 * 3600 - 3)
    log.agent(accepted("day", 3))
    assert set(folded(log).commands) == {"open", "old", "day"}
    log.agent(CommandFinished(command="day"))
    log.agent(accepted("later", 4))
    state = folded(log)
    assert set(state.commands) == {"open", "day", "later"}
    assert state.order == ["open", "day", "later"]
    log.agent(CommandFailed(command="open", error=UNKNOWN))
    log.agent(accepted("last", 5))
    assert set(folded(log).commands) == {"day", "later", "last"}


def test_a_closed_session_names_what_it_has_read() -> None:
    log = Log()
    log.agent(accepted("c1", 10))
    log.agent(SessionClosed(reason="closed", cmd_seq=22))
    assert folded(log).cmd_seq == 22


def test_large_results_stay_in_the_log() -> None:
    log = Log()
    log.agent(accepted("c1", 1))
    log.agent(CommandFinished(command="c1", result="x" * 3000))
    assert folded(log).commands["c1"].result is None


def test_an_erasure_leaves_nothing() -> None:
    log = Log()
    log.agent(accepted("c1", 10))
    log.agent(SessionErased(by="operator"))
    assert folded(log) == CommandsState(sequence=2)


ids = st.sampled_from(["a", "b", "c"])


def finished(command: str) -> CommandFinished:
    return CommandFinished(command=command)


def failed(command: str) -> CommandFailed:
    return CommandFailed(command=command, error=UNKNOWN)


def rejected(command: str, cmd_seq: int) -> CommandRejected:
    return CommandRejected(command=command, cmd_seq=cmd_seq, error=UNKNOWN)


numbers = st.integers(1, 50)
datas: st.SearchStrategy[Data] = st.one_of(
    st.builds(accepted, ids, numbers),
    st.builds(finished, ids),
    st.builds(failed, ids),
    st.builds(rejected, ids, numbers),
)


@given(st.lists(st.tuples(datas, st.sampled_from([0, 3600, 40_000])), max_size=20), st.data())
def test_any_prefix_then_the_rest_and_redelivery_give_the_same_bytes(
    steps: list[tuple[Data, int]], data: st.DataObject
) -> None:
    log = Log()
    for step, seconds in steps:
        log.wait(seconds)
        log.agent(step)
    whole = folded(log)
    cut = data.draw(st.integers(0, len(steps)))
    first, rest = Log(), Log()
    first.entries = log.entries[:cut]
    rest.entries = log.entries[data.draw(st.integers(0, cut)) :]
    assert folded(rest, folded(first)) == whole
    read = [step.cmd_seq for step, _ in steps if isinstance(step, CommandAccepted | CommandRejected)]
    assert whole.cmd_seq == max(read, default=0)
