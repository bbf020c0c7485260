"""A thread that ran on when its worker died: the next one tells what the log lacks, and nothing twice."""

from typing import Any

from msgspec.structs import replace
from tests.unit.claude.recorded import CONTEXT
from tests.unit.codex.recorded import feed, new_translator, note
from tests.unit.codex.test_translation import data, item

from trunkline_adapters.codex import tools
from trunkline_adapters.codex.translate import CodexTranslator
from trunkline_agentkit import Fact, Piece, Survivor
from trunkline_agentkit.survivor import OpenCall
from trunkline_fold.asks import AskStatus, PermissionAsk
from trunkline_fold.session import initial
from trunkline_fold.state import OpenTurn, TaskState
from trunkline_wire.asks import AskWithdrawn, PermissionRequested
from trunkline_wire.ids import ask_id, item_id
from trunkline_wire.session import SessionResumed, SessionUpdated
from trunkline_wire.turn import MessageAssistant, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import TaskUpdated

COMMAND = {"type": "commandExecution", "id": "call", "command": "ls", "cwd": "/"}


def ours(native: str) -> str:
    return item_id(CONTEXT.session, CONTEXT.incarnation, native)


def asked(native: str, status: AskStatus = "open", **fields: Any) -> PermissionAsk:
    ask = ask_id(CONTEXT.session, CONTEXT.incarnation, native)
    requested = PermissionRequested(ask=ask, incarnation=CONTEXT.incarnation, name="exec_command")
    about: dict[str, Any] = {"session": CONTEXT.session, "incarnation": CONTEXT.incarnation, "sequence": 1, "time": ""}
    return PermissionAsk(ask=ask, requested=requested, status=status, **about, **fields)


def taken_up(*asks: PermissionAsk, told: tuple[str, ...] = (), **fields: Any) -> CodexTranslator:
    """A translator of a thread `main` whose turn was begun by `cmd_2`, with a command that runs."""
    turn = OpenTurn(id="tur_1", number=2, started="", cause="cmd_2")
    about: dict[str, Any] = {"native_session": "main", "turn": turn, "turns": 2, "mode": "auto", "model": "m"} | fields
    started = tools.started(COMMAND, "call")
    survivor = Survivor(
        session=replace(initial(CONTEXT.session), **about),
        calls={ours("call"): OpenCall(started=started)},
        told=frozenset(map(ours, told)),
        asks={ask.ask: ask for ask in asks},
        prompts=("cmd_1", "cmd_2", *about.get("pending", [])),
    )
    translator = new_translator()
    translator.restore(survivor)
    return translator


def turn(name: str, command: str | None, status: str, *items: dict[str, Any]) -> dict[str, Any]:
    prompt = {"type": "userMessage", "id": f"u{name}", "clientId": command, "completedAtMs": 1}
    return {"id": name, "status": status, "items": [prompt, *items]}


def answered(translator: CodexTranslator, method: str, result: Any, **params: Any) -> list[Any]:
    translator.sent({"id": 9, "method": method, "params": {"threadId": "main"} | params})
    return feed({"id": 9, "result": result}, translator=translator)


def found(translator: CodexTranslator, *turns: dict[str, Any]) -> int:
    answered(translator, "thread/turns/list", {"data": list(turns)}, itemsView="summary")
    return translator.reach


def listed(translator: CodexTranslator, *turns: dict[str, Any]) -> list[Any]:
    return answered(translator, "thread/turns/list", {"data": list(turns)}, itemsView="full")


def asks_again(native: str, request: int = 0) -> dict[str, Any]:
    params = {"threadId": "main", "turnId": "t2", "itemId": native}
    return {"id": request, "method": "item/commandExecution/requestApproval", "params": params}


def test_an_ask_that_comes_again_stands_and_one_that_does_not_is_withdrawn() -> None:
    other = asked("other")
    translator = taken_up(asked("call"), other)
    running = turn("t2", "cmd_2", "inProgress")
    assert found(translator, running) == 1
    assert feed(asks_again("call"), translator=translator) == []
    out = listed(translator, running)
    assert [withdrawn.ask for withdrawn in data(out, AskWithdrawn)] == [other.ask]
    assert translator.open_asks() == {asked("call").ask}
    assert isinstance(out[-1].data, SessionResumed)
    assert out[-1].data.how == "adopted"


def test_a_decision_that_was_not_delivered_can_be_and_a_delivered_one_is_no_more() -> None:
    undelivered, delivered = asked("call", "decided"), asked("done", "decided", delivered=True)
    translator = taken_up(undelivered, delivered)
    found(translator, turn("t2", "cmd_2", "inProgress"))
    assert feed(asks_again("call"), translator=translator) == []
    (again,) = data(feed(asks_again("done", 1), translator=translator), PermissionRequested)
    assert translator.open_asks() == {undelivered.ask, again.ask}
    assert again.ask not in {undelivered.ask, delivered.ask}


def test_what_was_missed_is_told_once() -> None:
    translator = taken_up(told=("m1",))
    said = [{"type": "agentMessage", "id": name, "text": name, "completedAtMs": 1} for name in ("m1", "m2")]
    ran = COMMAND | {"status": "completed", "exitCode": 0, "completedAtMs": 1}
    ended = turn("t2", "cmd_2", "completed", said[0], ran, said[1])
    assert found(translator, ended, turn("t1", "cmd_1", "completed")) == 1
    out = listed(translator, ended)
    assert [message.content[0].text for message in data(out, MessageAssistant)] == ["m2"]
    assert data(out, ToolStarted) == []
    ends = [fact for fact in out if isinstance(fact, Fact) and isinstance(fact.data, ToolCompleted)]
    assert [fact.item for fact in ends] == [ours("call")]
    assert [done.status for done in data(out, ToolCompleted)] == ["completed"]
    assert data(out, TurnStarted) == []
    assert [(done.outcome, done.result) for done in data(out, TurnCompleted)] == [("success", "m2")]


def test_a_prompt_whose_turn_nobody_saw_gets_it() -> None:
    translator = taken_up(turn=None, pending=["cmd_3"])
    reply = {"type": "agentMessage", "id": "m3", "text": "three", "completedAtMs": 1}
    unseen, known = turn("t3", "cmd_3", "completed", reply), turn("t2", "cmd_2", "completed")
    assert found(translator, unseen, known) == 1
    out = listed(translator, unseen)
    assert [fact.cause for fact in out if isinstance(fact, Fact) and isinstance(fact.data, TurnStarted)] == ["cmd_3"]
    assert [done.result for done in data(out, TurnCompleted)] == ["three"]


def test_a_turn_of_no_message_is_the_last_that_no_prompt_has_brought() -> None:
    review = OpenTurn(id="tur_1", number=2, started="", cause="cmd_review")
    translator = taken_up(turn=review)
    assert found(translator, turn("t3", None, "inProgress"), turn("t1", "cmd_1", "completed")) == 1
    assert translator.active_turn() == "t3"


def test_a_thread_without_the_turn_that_was_open_can_not_be_taken_up() -> None:
    assert found(taken_up(), turn("t1", "cmd_1", "completed")) == 0


def test_pieces_of_what_another_worker_began_have_no_place() -> None:
    translator = taken_up()
    running = turn("t2", "cmd_2", "inProgress")
    found(translator, running)
    listed(translator, running)
    halves = [
        note("item/agentMessage/delta", turnId="t2", itemId="m1", delta="half"),
        note("item/commandExecution/outputDelta", turnId="t2", itemId="call", delta="half"),
    ]
    whole = [
        item("started", turn="t2", type="agentMessage", id="m2", text=""),
        note("item/agentMessage/delta", turnId="t2", itemId="m2", delta="whole"),
    ]
    out = feed(*halves, *whole, translator=translator)
    assert [one.text for one in out if isinstance(one, Piece) and one.text] == ["whole"]


def test_a_sub_agent_that_ended_meanwhile_gets_its_end() -> None:
    task = TaskState(task="sub", started="", updated="", kind="subagent", status="running", tool="itm_spawn")
    translator = taken_up(tasks=[task])
    found(translator, turn("t2", "cmd_2", "inProgress"))
    assert translator.sub_agents == ["sub"]
    reply = {"type": "agentMessage", "id": "m", "text": "found it", "completedAtMs": 1}
    ended = {"id": "s1", "status": "completed", "items": [reply]}
    out = answered(translator, "thread/turns/list", {"data": [ended]}, threadId="sub", itemsView="full")
    assert [fact.lane for fact in out if isinstance(fact, Fact) and isinstance(fact.data, MessageAssistant)] == [
        "itm_spawn"
    ]
    assert [(update.task, update.status) for update in data(out, TaskUpdated)] == [("sub", "completed")]
    assert translator.sub_agents == []


def test_a_thread_says_that_it_waits_until_it_has_asked_again() -> None:
    translator = taken_up(asked("call"))
    found(translator, turn("t2", "cmd_2", "inProgress"))
    status = {"type": "active", "activeFlags": ["waitingOnApproval"]}
    out = answered(translator, "thread/resume", {"thread": {"id": "main", "status": status}, "model": "n"})
    assert [update.model for update in data(out, SessionUpdated)] == ["n"]
    assert translator.awaiting
    feed(asks_again("call"), translator=translator)
    assert not translator.awaiting


def test_a_call_is_known_again_by_what_was_told_of_it() -> None:
    items: list[dict[str, Any]] = [
        COMMAND,
        {"type": "fileChange", "id": "f", "changes": [{"path": "a", "kind": {"type": "add"}, "diff": "x"}]},
        {"type": "mcpToolCall", "id": "m", "server": "lab", "tool": "echo", "arguments": {"a": 1}},
        {"type": "dynamicToolCall", "id": "d", "tool": "weather", "arguments": {"city": "x"}},
        {"type": "collabAgentToolCall", "id": "c", "tool": "spawnAgent", "prompt": "p"},
        {"type": "webSearch", "id": "w", "query": "q"},
    ]
    for one in items:
        told = tools.started(one, one["id"])
        assert tools.started(tools.reopened(told), one["id"]) == told
        assert tools.reopened(told)["type"] == one["type"]
