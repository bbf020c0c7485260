"""Failures from the field, at the level of framing, translation and fold."""

import json
from typing import Any

import pytest
from tests.unit.claude import native_messages as says
from tests.unit.claude.recorded import CONTEXT, RECORDINGS, new_translator, read, replay_file

from trunkline_adapters.claude.adapter import CAPABILITIES
from trunkline_adapters.claude.native import kind_of
from trunkline_adapters.claude.translate import ClaudeTranslator
from trunkline_agentkit import Context, Fact, LineSplitter, decode_line, translate
from trunkline_fold.session import SessionState, fold_session, initial
from trunkline_testkit.logs import Log
from trunkline_wire.asks import AskDecided
from trunkline_wire.session import SessionStatus
from trunkline_wire.turn import MessageAssistant, MessageUser, TurnCompleted, TurnStarted
from trunkline_wire.work import NativeMessage, UsageUpdated

KB, MB = 1024, 1024 * 1024


def through_the_framer(data: bytes, chunk: int) -> list[Fact]:
    """What bytes on the CLI's stdout mean, read `chunk` bytes at a time."""
    splitter, translator = LineSplitter(), new_translator()
    lines = [line for at in range(0, len(data), chunk) for line in splitter.feed(data[at : at + chunk])]
    found: list[Fact] = []
    for line in [*lines, *splitter.end()]:
        decoded = decode_line(line)
        native = translate(translator, decoded, kind_of(decoded.message or {}))
        json.loads(native.raw)
        found += [out for out in native.out if isinstance(out, Fact)]
    return found


def fold(log: Log) -> SessionState:
    state = initial(log.session)
    for sequence, _, event in log.entries:
        state = fold_session(state, event, sequence)
    return state


def append(log: Log, facts: list[Fact]) -> None:
    for one in facts:
        log.agent(one.data, item=one.item, lane=one.lane, cause=one.cause)


@pytest.mark.parametrize("size", [70 * KB, 300 * KB, 1200 * KB, 16 * MB, 64 * MB])
def test_a_line_of_any_size_and_the_small_one_after_it(size: int) -> None:
    # 4
    said = "é" * (size // 2)
    big = json.dumps(says.assistant("msg_big", says.text(said)), ensure_ascii=False).encode()
    small = json.dumps(says.assistant("msg_small", says.text("ok"))).encode()
    assert len(big) > size
    # An odd chunk cuts between the two bytes of a letter; the last line has no line end.
    found = through_the_framer(big + b"\n" + small, 64 * KB - 1)
    messages = [fact.data for fact in found if isinstance(fact.data, MessageAssistant)]
    assert [message.content[0] for message in messages] == [
        MessageAssistant(content=[block]).content[0] for block in (_block(said), _block("ok"))
    ]


def _block(said: str) -> Any:
    (fact,) = (out for out in new_translator().feed(says.assistant("m", says.text(said))) if _is_message(out))
    assert isinstance(fact, Fact)
    assert isinstance(fact.data, MessageAssistant)
    return fact.data.content[0]


def _is_message(out: object) -> bool:
    return isinstance(out, Fact) and isinstance(out.data, MessageAssistant)


def test_what_nobody_expects_is_kept_and_the_stream_goes_on() -> None:
    # 5
    lines = [
        b"Welcome to a new version!",
        json.dumps({"type": "brand_new", "x": 1}).encode(),
        json.dumps({"type": "system", "subtype": "brand_new"}).encode(),
        json.dumps({"type": "result_v2", "subtype": "success"}).encode(),
        json.dumps({"type": "assistant"}).encode(),
        b'{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"caf\xe9 \\ud800"}]}}',
        json.dumps({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected"}}).encode(),
        json.dumps({"no": "type"}).encode(),
        b"[1, 2]",
        json.dumps(says.result()).encode(),
    ]
    found = through_the_framer(b"\n".join(lines), 7)
    drift = [fact.data.kind for fact in found if isinstance(fact.data, NativeMessage) and not fact.data.known]
    assert drift == ["untyped", "brand_new", "system/brand_new", "result_v2", "untyped", "untyped"]
    assert [fact.data for fact in found if isinstance(fact.data, UsageUpdated)] == [
        UsageUpdated(rate_limits={"status": "rejected"})
    ]
    repaired = [fact.data for fact in found if isinstance(fact.data, MessageAssistant)][-1].content
    assert repaired == [_block("caf� �")]
    assert isinstance(found[-1].data, TurnCompleted)
    assert found[-1].data.outcome == "success"


def test_a_rate_limit_in_the_middle_of_a_turn_does_not_end_it() -> None:
    # 5, with real traffic
    kinds = [
        fact.data.TYPE
        for step in replay_file(RECORDINGS / "62b-rate-limit-headers-dummy-oauth" / "native.jsonl")
        for fact in step.facts
    ]
    assert kinds.index("turn.started") < kinds.index("usage.updated") < kinds.index("turn.completed")


def test_one_session_keeps_its_history_over_two_changes_of_the_native_id() -> None:
    # 6
    log = Log(CONTEXT.session)
    log.created()
    for number, native in enumerate(("first-id", "second-id", "third-id")):
        context = Context(session=CONTEXT.session, incarnation=f"run-{number}", cwd="/")
        translator = ClaudeTranslator(context, CAPABILITIES, resumed=number > 0)
        append(
            log,
            says.facts(translator, says.init(session_id=native), says.assistant("m", says.text("hi")), says.result()),
        )
    state = fold(log)
    assert state.native_session == "third-id"
    assert state.aliases == ["first-id", "second-id", "third-id"]
    assert state.turns == 3
    assert state.counts.messages == 3


def test_usage_of_a_message_told_three_times_is_counted_once() -> None:
    # 7
    log, translator = Log(CONTEXT.session), new_translator()
    log.created()
    cache = {"input_tokens": 10, "cache_read_input_tokens": 61_608}
    lines = [
        says.assistant("msg_1", says.text(str(output)), usage={**cache, "output_tokens": output})
        for output in (5, 90, 90)
    ]
    append(log, says.facts(translator, says.init(), *lines))
    running = fold(log)
    assert (running.usage.output, running.usage.cache_read) == (90, 61_608)
    end = says.result(usage={**cache, "output_tokens": 90}, total_cost_usd=0.0421)
    append(log, says.facts(translator, end))
    state = fold(log)
    assert (state.usage.output, state.usage.cache_read) == (90, 61_608)
    assert state.cost_usd == pytest.approx(0.0421)
    for sequence, _, event in log.entries:
        state = fold_session(state, event, sequence)
    assert (state.usage.output, state.usage.cache_read) == (90, 61_608)
    assert fold(log) == state


def test_a_background_task_starts_a_turn_of_its_own_and_nothing_runs_in_between() -> None:
    # 10
    log = Log(CONTEXT.session)
    log.created()
    statuses: list[str] = []
    state = initial(log.session)
    translator = new_translator()
    for _, speaker, message in read(RECORDINGS / "19-bash-background" / "native.jsonl"):
        if speaker == "host":
            translator.sent(message)
            if message["type"] == "control_response":
                tool = "toolu_fake012_09fb9066"
                log.permission(AskDecided(ask=says.ask(tool), behaviour="allow", by="someone"))
        elif speaker == "agent":
            append(log, [out for out in translator.feed(message) if isinstance(out, Fact)])
            state = fold(log)
            if message["type"] == "result" or message.get("subtype") in ("init", "task_notification"):
                statuses.append(f"{message.get('subtype')} {state.status}")
    assert statuses == [
        "init running",
        "success idle",
        "task_notification idle",
        "init running",
        "success idle",
    ]
    turns = [event.data for _, _, event in log.entries if isinstance(event.data, TurnStarted | TurnCompleted)]
    assert [turn.trigger for turn in turns] == ["prompt", "prompt", "background", "background"]


def test_ten_minutes_of_errors_show_as_retrying_and_an_interrupt_still_ends_the_turn() -> None:
    # 11
    log, translator = Log(CONTEXT.session), new_translator()
    log.created()
    append(log, says.facts(translator, says.init()))
    for attempt in range(1, 11):
        retry = {
            "type": "system",
            "subtype": "api_retry",
            "attempt": attempt,
            "max_retries": 10,
            "retry_delay_ms": 60_000,
        }
        append(
            log, says.facts(translator, retry | {"error_status": 429 if attempt % 2 else 500, "error": "rate_limit"})
        )
        state = fold(log)
        assert state.status == "retrying"
        assert state.retry is not None
        assert (state.retry.attempt, state.retry.after_ms) == (attempt, 60_000)
    translator.sent({"type": "control_request", "request_id": "i", "request": {"subtype": "interrupt"}})
    end = says.result(subtype="error_during_execution", is_error=True, terminal_reason="aborted_streaming", result="")
    found = says.facts(translator, end)
    append(log, found)
    assert [type(fact.data) for fact in found] == [SessionStatus, TurnCompleted]
    last = found[-1].data
    assert isinstance(last, TurnCompleted)
    assert last.outcome == "interrupted"
    state = fold(log)
    assert state.status == "idle"
    assert state.retry is None


def test_a_prompt_that_waits_is_told_once_it_is_folded_in_or_dropped() -> None:
    translator = new_translator()
    for uuid, command in (("u1", "cmd_1"), ("u2", "cmd_2"), ("u3", "cmd_3")):
        translator.prompt(says.user_line(uuid, uuid), command, "sent" if uuid == "u1" else "queued")
    (begun,) = says.facts(translator, says.lifecycle("u1", "queued"), says.lifecycle("u1", "started"))
    assert isinstance(begun.data, TurnStarted)
    assert begun.cause == "cmd_1"
    (folded,) = says.facts(translator, says.lifecycle("u2", "started"))
    (dropped,) = says.facts(translator, says.lifecycle("u3", "cancelled"))
    assert isinstance(folded.data, MessageUser)
    assert isinstance(dropped.data, MessageUser)
    assert (folded.data.delivery, folded.item) == ("steered", says.item("cmd_2"))
    assert (dropped.data.delivery, dropped.item) == ("cancelled", says.item("cmd_3"))
    (end,) = says.datas(translator, says.result(user_message_uuids=["u1", "u2"]))
    assert isinstance(end, TurnCompleted)


def test_a_prompt_that_the_agent_has_had_before_is_told_as_dropped() -> None:
    translator = new_translator()
    translator.prompt(says.user_line("again", "u1"), "cmd_1")
    (dropped,) = says.datas(translator, says.lifecycle("u1", "completed"))
    assert isinstance(dropped, MessageUser)
    assert dropped.delivery == "cancelled"
    assert says.datas(translator, says.lifecycle("u1", "completed")) == []
