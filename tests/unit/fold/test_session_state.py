"""What a session's state says of identity, tools, tasks, plans, errors; and that it stays small."""

import msgspec

from trunkline_fold.session import (
    SessionState,
    decode_state,
    encode_state,
    fold_session,
    initial,
    join_state,
    split_state,
)
from trunkline_fold.state import STATIC_FIELDS
from trunkline_testkit.logs import HOST, WORKSPACE, Log
from trunkline_wire import AgentRef, Data, ErrorInfo, UnknownData
from trunkline_wire.asks import PermissionRequested
from trunkline_wire.blocks import BlobRef, Choice, Location, TextBlock, ThinkingBlock
from trunkline_wire.events import UnknownEvent
from trunkline_wire.session import (
    Capabilities,
    McpServer,
    SessionCompacted,
    SessionForked,
    SessionHandedOver,
    SessionInitialized,
    SessionOptions,
    SessionReset,
    SessionResumed,
    SessionUpdated,
)
from trunkline_wire.turn import (
    MessageAssistant,
    MessageUser,
    TerminalClosed,
    TerminalOpened,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import (
    CommandAccepted,
    CommandRejected,
    ErrorRaised,
    FileChanged,
    NativeMessage,
    PlanEntry,
    PlanUpdated,
    TaskUpdated,
)

ERROR = ErrorInfo(code="stale_target", message="no such turn")


def folded(log: Log) -> SessionState:
    state = initial(log.session)
    for sequence, _, event in log.entries:
        state = fold_session(state, event, sequence)
    return state


def after(*datas: Data) -> SessionState:
    log = Log()
    log.created()
    for data in datas:
        log.agent(data)
    return folded(log)


def test_creation_and_positions() -> None:
    log = Log()
    created = log.created(title="T", parent="ses_p", spawn="spn", options=SessionOptions(model="big", mode="plan"))
    log.agent(CommandAccepted(command="cmd_1", verb="prompt", cmd_seq=17))
    last = log.agent(CommandRejected(command="cmd_2", cmd_seq=12, error=ERROR))
    state = folded(log)
    assert (state.adapter, state.cwd, state.host, state.workspace) == ("demo", "/src/app", HOST, WORKSPACE)
    assert (state.title, state.parent, state.spawn, state.model, state.mode) == ("T", "ses_p", "spn", "big", "plan")
    assert (state.created, state.updated) == (created.time, last.time)
    assert (state.sequence, state.seq, state.epoch, state.cmd_seq) == (3, 3, 1, 17)


def test_scenario_6_the_native_id_changes_on_resume_twice() -> None:
    log = Log()
    log.created()
    log.agent(SessionInitialized(capabilities=Capabilities(), native_session="n1"))
    log.agent(MessageUser(content=[TextBlock(text="first")]))
    log.claimed()
    log.agent(SessionResumed(how="native", native_session="n2"))
    log.agent(SessionInitialized(capabilities=Capabilities(), native_session="n2"))
    log.claimed()
    log.agent(SessionUpdated(native_session="n3"))
    log.agent(SessionUpdated(native_session="n3"))
    state = folded(log)
    assert state.native_session == "n3"
    assert state.aliases == ["n1", "n2", "n3"]
    assert (state.title, state.counts.prompts, state.epoch) == ("first", 1, 3)
    log.agent(SessionUpdated(native_session="n1"))
    assert folded(log).native_session == "n1"
    assert folded(log).aliases == ["n1", "n2", "n3"]


def test_aliases_are_capped_with_a_count_of_the_rest() -> None:
    state = after(*(SessionUpdated(native_session=f"n{n}") for n in range(25)))
    assert state.aliases == [f"n{n}" for n in range(5, 25)]
    assert state.rest == {"aliases": 5}


def test_initialized_and_updated() -> None:
    log = Log()
    log.created()
    log.agent(
        SessionInitialized(
            capabilities=Capabilities(interrupt=True),
            incarnation="inc",
            model="big",
            tools=["Bash", "Read"],
            commands=[Choice(id="compact", description="d" * 500)],
            models=[Choice(id="big")],
            mcp_servers=[McpServer(name="git", status="connected")],
            version="2.1.0",
            account={"email": "a@b"},
        ),
        agent=AgentRef(adapter="demo", agent="Demo", version="2.1.0"),
    )
    state = folded(log)
    assert state.capabilities == Capabilities(interrupt=True)
    assert (state.incarnation, state.model, state.version, state.agent) == ("inc", "big", "2.1.0", "Demo")
    assert state.commands == [Choice(id="compact", description="d" * 200)]
    log.agent(SessionUpdated(mode="plan", title="New", mcp_servers=[McpServer(name="git", status="failed", error="e")]))
    state = folded(log)
    assert (state.model, state.mode, state.title) == ("big", "plan", "New")
    assert state.mcp_servers == [McpServer(name="git", status="failed", error="e")]
    assert state.tools == ["Bash", "Read"]


def test_lists_that_an_agent_fills_are_capped() -> None:
    state = after(
        SessionInitialized(
            capabilities=Capabilities(),
            commands=[Choice(id=f"c{n}") for n in range(503)],
            tools=[f"t{n}" for n in range(501)],
        ),
        PlanUpdated(entries=[PlanEntry(content=str(n)) for n in range(204)]),
    )
    assert (len(state.commands), len(state.tools), len(state.plan)) == (500, 500, 200)
    assert state.rest == {"commands": 3, "tools": 1, "plan": 4}
    assert after(PlanUpdated(entries=[PlanEntry(content="only")])).rest == {}


def test_the_title_is_the_first_prompt_until_someone_gives_one() -> None:
    log = Log()
    log.created()
    log.agent(MessageUser(content=[TextBlock(text="  Fix\n\nthe   parser " + "x" * 100)]))
    log.agent(MessageUser(content=[TextBlock(text="second")]))
    title = folded(log).title
    assert title is not None
    assert title.startswith("Fix the parser xxx")
    assert len(title) == 80
    log.agent(SessionUpdated(title="Parser"))
    assert folded(log).title == "Parser"


def test_last_text_is_a_preview_in_code_points() -> None:
    log = Log()
    log.created()
    log.agent(MessageAssistant(content=[ThinkingBlock(text="hm")]), item="itm_1")
    assert folded(log).last_text is None
    log.agent(MessageAssistant(content=[TextBlock(text="\U0001f600" * 300)]), item="itm_1")
    assert folded(log).last_text == "\U0001f600" * 200
    assert folded(log).last_author == "assistant"
    log.agent(MessageAssistant(content=[TextBlock(text="of a subagent")]), item="itm_2", lane="itm_task")
    assert folded(log).last_text == "\U0001f600" * 200
    log.agent(MessageUser(content=[TextBlock(text=BlobRef(sha256="0" * 64, size=10**6, preview="big"))]))
    assert (folded(log).last_text, folded(log).last_author) == ("big", "user")


def test_turns_and_tools() -> None:
    log = Log()
    log.created()
    started = log.agent(TurnStarted(number=1), turn="tur_1", cause="cmd_1")
    log.agent(
        ToolStarted(name="Bash", kind="execute", title="ls", locations=[Location(path="/x")]),
        item="itm_1",
        turn="tur_1",
    )
    log.agent(ToolStarted(name="Read", kind="read"), item="itm_2", turn="tur_1")
    log.agent(ToolStarted(name="Grep"), item="itm_3", turn="tur_1", lane="itm_2")
    state = folded(log)
    assert state.turn is not None
    assert (state.turn.id, state.turn.cause, state.turn.started) == ("tur_1", "cmd_1", started.time)
    assert list(state.open_tools) == ["itm_1", "itm_2", "itm_3"]
    assert (state.open_tools["itm_1"].title, state.open_tools["itm_3"].lane) == ("ls", "itm_2")
    log.agent(ToolCompleted(status="failed"), item="itm_1", turn="tur_1")
    assert list(folded(log).open_tools) == ["itm_2", "itm_3"]
    done = log.agent(TurnCompleted(outcome="error", error=ErrorInfo(code="agent_failed", message="500"), duration_ms=9))
    state = folded(log)
    assert list(state.open_tools) == ["itm_3"], "a subagent's tool outlives the turn"
    assert (state.counts.tools, state.counts.tools_failed) == (3, 1)
    assert state.turn is None
    assert state.last_turn is not None
    assert (state.last_turn.id, state.last_turn.outcome, state.last_turn.completed) == ("tur_1", "error", done.time)
    assert state.last_error is not None
    assert (state.last_error.code, state.last_error.message) == ("agent_failed", "500")


def test_tasks_are_merged_and_the_oldest_ended_ones_forgotten() -> None:
    log = Log()
    log.created()
    log.agent(TaskUpdated(task="a", kind="shell", status="running", description="build", background=True))
    log.agent(TaskUpdated(task="a", status="completed", summary="s" * 300))
    (task,) = folded(log).tasks
    assert (task.kind, task.status, task.description, task.background) == ("shell", "completed", "build", True)
    assert task.summary == "s" * 200
    for n in range(200):
        log.agent(TaskUpdated(task=f"t{n}", status="running"))
    state = folded(log)
    assert len(state.tasks) == 200
    assert state.tasks[0].task == "t0"
    assert state.rest == {"tasks": 1}


def test_a_reset_leaves_the_native_session_and_keeps_it_as_an_alias() -> None:
    log = Log()
    log.created(options=SessionOptions(model="m", resume_native="nat_0"))
    log.agent(SessionUpdated(native_session="nat_1", suggestion="s"))
    log.agent(PlanUpdated(entries=[PlanEntry(content="p", status="pending")]))
    log.agent(SessionReset(by="ann"))
    state = folded(log)
    assert (state.native_session, state.aliases, state.plan, state.suggestion) == (None, ["nat_1"], [], None)
    assert state.options == SessionOptions(model="m")
    log.agent(SessionInitialized(capabilities=Capabilities(), native_session="nat_2"))
    assert folded(log).aliases == ["nat_1", "nat_2"]


def test_counts() -> None:
    log = Log()
    log.created()
    log.agent(FileChanged(path="/x"))
    log.agent(SessionCompacted(trigger="auto"))
    log.agent(ErrorRaised(code="agent_failed", message="m"))
    log.agent(NativeMessage(known=True, kind="ping"))
    log.agent(NativeMessage(known=False, kind="new"))
    log.agent(PermissionRequested(ask="ask_1", name="Bash", incarnation="i"))
    counts = folded(log).counts
    assert (counts.files, counts.compactions, counts.errors, counts.asks) == (1, 1, 1, 1)
    assert (counts.native_known, counts.native_unknown) == (1, 1)


def test_an_event_of_an_unknown_type_is_counted_and_moves_the_state_on() -> None:
    event = UnknownEvent(
        id="e",
        v=1,
        session=Log().session,
        time="2026-11-27T21:00:09.000000Z",
        seq=4,
        data=UnknownData(kind="moon.landed"),
    )
    state = fold_session(initial(Log().session), event, 9)
    assert (state.counts.unknown_types, state.sequence, state.seq) == (1, 9, 4)


def test_fork_interface_terminal() -> None:
    state = after(
        SessionForked(parent="ses_p", at="itm_9", native_session="n9"),
        SessionHandedOver(to="terminal"),
        TerminalOpened(columns=80, rows=24),
    )
    assert (state.parent, state.forked_at, state.native_session, state.interface) == (
        "ses_p",
        "itm_9",
        "n9",
        "terminal",
    )
    assert state.terminal is not None
    assert (state.terminal.columns, state.terminal.rows) == (80, 24)
    assert after(TerminalOpened(columns=80, rows=24), TerminalClosed()).terminal is None


def test_at_or_below_its_sequence_a_state_stays_as_it_is() -> None:
    log = Log()
    log.created()
    log.agent(FileChanged(path="/x"))
    state = folded(log)
    for sequence, _, event in log.entries:
        assert fold_session(state, event, sequence) is state


def test_bytes_are_the_same_and_read_back() -> None:
    state = after(SessionInitialized(capabilities=Capabilities(), tools=["a"]), PlanUpdated(entries=[]))
    raw = encode_state(state)
    assert decode_state(raw) == state
    assert encode_state(decode_state(raw)) == raw
    static, hot = split_state(state)
    assert join_state(static, hot) == state
    assert msgspec.json.decode(static)["tools"] == ["a"]
    assert set(msgspec.json.decode(static)) == STATIC_FIELDS
    assert not set(msgspec.json.decode(hot)) & STATIC_FIELDS


def test_a_session_of_thousands_of_events_has_a_state_of_a_few_kilobytes() -> None:
    log = Log()
    log.created()
    for n in range(1000):
        log.agent(TurnStarted(number=n), turn=f"tur_{n:032}")
        log.agent(MessageUser(content=[TextBlock(text="p" * 1000)], delivery="steered"))
        log.agent(ToolStarted(name="Bash", input={"command": "x" * 1000}), item=f"itm_{n:032}")
        log.agent(ToolCompleted(status="completed", content=[TextBlock(text="o" * 1000)]), item=f"itm_{n:032}")
        log.agent(MessageAssistant(content=[TextBlock(text="a" * 1000)]), item=f"itm_a{n:031}")
        log.agent(TurnCompleted(outcome="success", result="r" * 1000), turn=f"tur_{n:032}")
    state = folded(log)
    assert state.turns == 1000
    assert len(encode_state(state)) < 8000
